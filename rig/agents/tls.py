"""A certificate of its own for an emulator: some vendors' clients speak TLS alone. Nobody vouches for it."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rig.agents.emulator import EmulatorError

if TYPE_CHECKING:
    from cryptography import x509

_VALID = datetime.timedelta(days=7)


def self_signed(host: str, certificate: Path) -> ssl.SSLContext:
    """A server context with a fresh certificate for `host`, localhost and the loopback addresses.

    The certificate is written to `certificate`, for clients to trust; its key is not kept. Raises EmulatorError.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise EmulatorError("TLS needs the package cryptography: install voice-agent-rig[google]") from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "voice-agent-rig emulator")])
    places = dict.fromkeys(("localhost", "127.0.0.1", "::1", host))
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([_named(place) for place in places]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="rig-tls-") as folder:
        both = Path(folder) / "both.pem"
        both.touch(mode=0o600)
        both.write_bytes(public + secret)
        context.load_cert_chain(both)
    try:
        certificate.write_bytes(public)
    except OSError as error:
        raise EmulatorError(f"{certificate}: cannot be written: {os.strerror(error.errno or 0)}") from error
    return context


def _named(place: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(place))
    except ValueError:
        return x509.DNSName(place)
