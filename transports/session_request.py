"""The HTTP request that some vendors want before the socket: its answer says where the session is to be found.

Not here: what stands in the request or its answer, which the dialect knows.
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlsplit

import httpx2

from transports.transport import SessionRequest, TransportError, is_loopback

_LIMIT_S: Final = 30.0
MAX_ANSWER_BYTES: Final = 256 * 1024
_BODY_SHOWN: Final = 2000


async def session_address(request: SessionRequest, label: str, ssl_context: ssl.SSLContext | None) -> str:
    """Make the request; the address in its answer (ws or wss), which may hold a credential.

    Redirects are not followed: they would carry the key to another host. Raises TransportError.
    """
    remote = not is_loopback(urlsplit(request.url).hostname or "")
    failure: TransportError
    try:
        async with (
            httpx2.AsyncClient(timeout=_LIMIT_S, trust_env=remote, verify=ssl_context or True) as client,
            client.stream(request.method, request.url, headers=dict(request.headers), content=request.body) as answer,
        ):
            body = b""
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise TransportError(
                        f"{label} answered with more than {MAX_ANSWER_BYTES:,} bytes", code="bad_answer"
                    )
            if answer.status_code >= 300:
                retry_after = answer.headers.get("Retry-After", "")
                raise TransportError(
                    f"{label} refused to make a session with HTTP {answer.status_code}",
                    code=f"http_{answer.status_code}",
                    status=answer.status_code,
                    body=body[:_BODY_SHOWN].decode("utf-8", "replace"),
                    retry_after_s=float(retry_after) if retry_after.isdigit() else None,
                )
            address = request.read(body)
            if address is None:
                raise TransportError(f"{label}: its answer holds no ws or wss address", code="bad_answer")
            return address
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        # The library's own text and chain hold the request with its key.
        failure = TransportError(f"{label} could not be asked for a session ({type(error).__name__})", code="network")
    raise failure
