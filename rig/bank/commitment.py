"""A commitment to a bank: hashes by which anybody can check later that nothing was changed, added or taken away.

Every file of the bank that a run can depend on is one entry, named by its path; an item's entry holds its id too. The
root is the SHA-256 of all entries in order. For items that are held back, `hidden` commitments name nothing: each entry
is an HMAC-SHA256 under a random secret of 32 bytes, which stays with the owner and is needed to check.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from captures.durable import write_file
from rig.bank.loader import NOT_ITEMS, read_bank
from rig.bank.models import Bank

MAX_COMMITMENT_BYTES = 64 * 1024 * 1024
_READ_AT_ONCE = 1 << 20
_AUDIO = (".flac", ".wav")


class CommitmentError(ValueError):
    """A commitment that cannot be made or read; one line that says why and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Strict):
    """One file."""

    path: str
    sha256: str
    item_id: str | None = None


class Commitment(_Strict):
    """What is published."""

    format: Literal[1] = 1
    bank: str
    version: str
    made: str
    """UTC, ISO 8601."""
    hidden: bool
    root: str
    files: int
    items: int
    clips: int
    entries: tuple[Entry, ...] | tuple[str, ...]
    """Open: the files. Hidden: an HMAC for each, sorted, which names nothing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that is not as it was committed to. `what`: changed, added, missing."""

    what: Literal["changed", "added", "missing"]
    where: str


def entries_of(bank: Bank) -> list[Entry]:
    """All files of a bank, in the order of their paths. Raises CommitmentError."""
    ids = {source: item_id for item_id, source in bank.sources.items()}
    found = []
    for path in _files(bank.root):
        relative = path.relative_to(bank.root).as_posix()
        try:
            found.append(Entry(path=relative, sha256=_hash(path), item_id=ids.get(relative)))
        except OSError as error:
            raise CommitmentError(f"{path}: cannot be read ({error.strerror})") from None
    return found


def commit(folder: str, secret: bytes | None = None) -> Commitment:
    """A commitment to the bank in `folder`; hidden under `secret`, if there is one.

    Raises:
        BankError: there is no such folder.
        CommitmentError: the bank has errors, or a file cannot be read.
    """
    bank = _whole(folder)
    entries = entries_of(bank)
    told: tuple[Entry, ...] | tuple[str, ...] = tuple(entries)
    if secret is not None:
        told = tuple(sorted(_veiled(entry, secret) for entry in entries))
    return Commitment(
        bank=bank.name,
        version=bank.version,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        hidden=secret is not None,
        root=root_of(told),
        files=len(entries),
        items=len(bank.items),
        clips=sum(entry.path.endswith(_AUDIO) for entry in entries),
        entries=told,
    )


def differences(folder: str, committed: Commitment, secret: bytes | None = None) -> list[Difference]:
    """How the bank in `folder` differs from what was committed to; empty when nothing does.

    Raises:
        BankError, CommitmentError: as `commit`; also a hidden commitment without its secret, or with a wrong root.
    """
    if committed.root != root_of(committed.entries):
        raise CommitmentError("the commitment's own root does not fit its entries: it was altered")
    now = entries_of(_whole(folder))
    if not committed.hidden:
        return _compared([entry for entry in committed.entries if isinstance(entry, Entry)], now)
    if secret is None:
        raise CommitmentError("the commitment is hidden: give its secret with --secret")
    veiled = {_veiled(entry, secret): entry.path for entry in now}
    wanted = {one for one in committed.entries if isinstance(one, str)}
    if wanted and not wanted & veiled.keys():
        raise CommitmentError("nothing of the bank is in the commitment: another secret, or another bank")
    added = [
        Difference("added", path) for one, path in sorted(veiled.items(), key=lambda pair: pair[1]) if one not in wanted
    ]
    lost = len(wanted - veiled.keys())
    return [*added, *([Difference("missing", f"{lost} committed entries (changed or taken away)")] if lost else [])]


def root_of(entries: Sequence[Entry | str]) -> str:
    """SHA-256 over all entries, a line each."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(_line(entry) if isinstance(entry, Entry) else entry.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def new_secret() -> bytes:
    """For a hidden commitment."""
    return secrets.token_bytes(32)


def save(path: Path, committed: Commitment) -> None:
    """Write it. Raises CommitmentError."""
    _write(path, json.dumps(committed.model_dump(mode="json"), indent=1).encode() + b"\n")


def save_secret(path: Path, secret: bytes) -> None:
    """Write a secret, readable by its owner alone; never over another. Raises CommitmentError."""
    if path.exists():
        raise CommitmentError(f"{path}: is there already; a secret is not written over")
    _write(path, secret.hex().encode() + b"\n")
    path.chmod(0o600)


def load(path: Path) -> Commitment:
    """Read one. Raises CommitmentError."""
    try:
        return Commitment.model_validate_json(_read(path))
    except ValidationError as error:
        first: Mapping[str, Any] = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise CommitmentError(f"{path}: is no commitment ({where}: {first['msg']})") from None


def load_secret(path: Path) -> bytes:
    """Read a secret. Raises CommitmentError; its text shows nothing of it."""
    try:
        secret = bytes.fromhex(_read(path).decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise CommitmentError(f"{path}: holds no secret of a commitment (64 hexadecimal digits)")
    return secret


def _compared(before: Sequence[Entry], now: Sequence[Entry]) -> list[Difference]:
    old, new = ({entry.path: entry for entry in side} for side in (before, now))
    found: list[Difference] = []
    for path in sorted(old.keys() | new.keys()):
        name = next(e.item_id for e in (old.get(path), new.get(path)) if e is not None)
        shown = f"{path} ({name})" if name else path
        if path not in new:
            found.append(Difference("missing", shown))
        elif path not in old:
            found.append(Difference("added", shown))
        elif old[path] != new[path]:
            found.append(Difference("changed", shown))
    return found


def _whole(folder: str) -> Bank:
    bank = read_bank(folder)
    if bank.unread:
        files = ", ".join(sorted(bank.unread)[:3])
        raise CommitmentError(f"bank {folder}: has errors in {files}: mend them first (rig bank lint)")
    return bank


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if any(part.startswith(".") for part in relative.parts) or not path.is_file():
            continue
        if path.suffix == ".yaml" or path.name in NOT_ITEMS or path.suffix in _AUDIO:
            yield path


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_READ_AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()


def _line(entry: Entry) -> bytes:
    return json.dumps([entry.path, entry.item_id, entry.sha256], ensure_ascii=False).encode()


def _veiled(entry: Entry, secret: bytes) -> str:
    return hmac.new(secret, _line(entry), hashlib.sha256).hexdigest()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_COMMITMENT_BYTES + 1)
    except OSError as error:
        raise CommitmentError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > MAX_COMMITMENT_BYTES:
        raise CommitmentError(f"{path}: is larger than any commitment")
    return content


def _write(path: Path, content: bytes) -> None:
    try:
        write_file(path, content)
    except OSError as error:
        raise CommitmentError(f"{path}: cannot be written ({error.strerror})") from None
