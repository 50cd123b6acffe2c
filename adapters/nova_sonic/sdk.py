"""Nova Sonic's stream over Amazon's SDK (optional extra `nova`, Python 3.12 or later): the one place that imports it.

What it taps is the JSON of the stream's chunks; signing, HTTP/2 and the binary event stream are the SDK's. An address
with `ws` is handed to our own WebSocket transport, which needs no SDK. Seen against aws_sdk_bedrock_runtime 0.12.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final
from urllib.parse import urlsplit

import anyio

from adapters.foreign_json import brief, masked
from adapters.nova_sonic import wire
from adapters.nova_sonic.faults import NO_CREDENTIALS, SDK_MISSING
from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, Transport, TransportError

_CLOSE_LIMIT_S: Final = 2.0
OpenStream = Callable[[Endpoint, str, str, str | None], Coroutine[Any, Any, "tuple[Any, Callable[[bytes], Any]]"]]
"""(endpoint, access key id, secret key, session token) → the SDK's duplex stream, and what makes its input events."""


def _no_listener(error: TransportError) -> None:
    """Before a session listens."""


class NovaTransport:
    """Meets `transports.transport.Transport` and `ReportsFailures`."""

    def __init__(self, clock: Clock, open_stream: OpenStream | None = None) -> None:
        """`open_stream` stands in for the SDK in tests."""
        self.on_failed: Callable[[TransportError], None] = _no_listener
        self._clock = clock
        self._open_stream = open_stream or _open_bedrock
        self._other: Transport | None = None
        self._stream: Any = None
        self._input_event: Callable[[bytes], Any] = bytes
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._unsent_bytes = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._secrets: tuple[str, ...] = ()
        self._closed = False

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """See `Transport.connect`. The service answers only after the first events, so refusals may come later."""
        self._on_frame, self._on_closed = on_frame, on_closed
        if urlsplit(endpoint.url).scheme in ("ws", "wss"):
            from transports.websocket import WebSocketTransport

            self._other = WebSocketTransport(self._clock)
            await self._other.connect(endpoint, on_frame, on_closed)
            return
        names = endpoint.headers["access-key-env"], endpoint.headers["session-token-env"]
        key_id, token = (os.environ.get(name) for name in names)
        secret = endpoint.headers["secret-key"]
        if not key_id or not secret:
            missing = "api_key_env (of the AWS secret access key)" if not secret else f"environment variable {names[0]}"
            raise TransportError(f"AWS credentials: {missing} is not set", code=NO_CREDENTIALS)
        self._secrets = tuple(value for value in (token, secret, key_id) if value)
        try:
            self._stream, self._input_event = await self._open_stream(endpoint, key_id, secret, token)
        except TransportError:
            raise
        except Exception as error:  # noqa: BLE001 - the SDK and its parts raise many kinds; all mean "not connected"
            failure = self._failure(error)
        else:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._send_all()), loop.create_task(self._receive_all())]
            return
        raise failure

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`."""
        if self._other is not None:
            self._other.write(frame)
        elif not self._closed:
            self._unsent.put_nowait(frame.payload)
            self._unsent_bytes += len(frame.payload)

    def backlog_bytes(self) -> int:
        """Bytes that the SDK has not taken."""
        return self._unsent_bytes if self._other is None else self._other.backlog_bytes()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`: what was written is still sent, within a bound."""
        if self._other is not None:
            await self._other.close(code, reason)
            return
        if self._closed or not self._tasks:
            return
        sender, receiver = self._tasks
        self._unsent.put_nowait(None)
        with anyio.move_on_after(_CLOSE_LIMIT_S, shield=True):
            await asyncio.wait([sender])
            await self._stream.input_stream.close()
        for task in (sender, receiver):
            task.cancel()
        with anyio.move_on_after(_CLOSE_LIMIT_S, shield=True):
            await asyncio.gather(sender, receiver, return_exceptions=True)
        self._end(ClosedBy(self._clock.now_ns(), code, reason, by_peer=False))

    async def _send_all(self) -> None:
        while (payload := await self._unsent.get()) is not None:
            try:
                await self._stream.input_stream.send(self._input_event(payload))
            except Exception as error:  # noqa: BLE001 - as in `connect`
                self._failed(error)
                return
            finally:
                self._unsent_bytes -= len(payload)

    async def _receive_all(self) -> None:
        try:
            _, output = await self._stream.await_output()
            while (received := await output.receive()) is not None:
                self._take(received.value)
        except Exception as error:  # noqa: BLE001 - as in `connect`
            self._failed(error)
        self._end(ClosedBy(self._clock.now_ns(), 1000, "the stream ended", by_peer=True))

    def _take(self, value: Any) -> None:
        payload = getattr(value, "bytes_", None)
        if payload is None:
            # An exception of the stream, as the SDK models it.
            message = masked(str(getattr(value, "message", "")), self._secrets)
            payload = wire.exception(type(value).__name__, brief(message)).payload
        self._on_frame(InFrame(payload, False, self._clock.now_ns()))

    def _failed(self, error: Exception) -> None:
        if not self._closed:
            self.on_failed(self._failure(error))

    def _failure(self, error: Exception) -> TransportError:
        return TransportError(brief(masked(str(error), self._secrets)), code=type(error).__name__)

    def _end(self, closed: ClosedBy) -> None:
        if not self._closed:
            self._closed = True
            self._on_closed(closed)


async def _open_bedrock(
    endpoint: Endpoint, key_id: str, secret: str, token: str | None
) -> tuple[Any, Callable[[bytes], Any]]:
    python = tuple(sys.version_info[:2])
    if python < (3, 12):
        this = f"{python[0]}.{python[1]}"
        raise TransportError(f"Amazon's SDK for Nova Sonic needs Python 3.12; this is {this}", code=SDK_MISSING)
    try:
        from aws_sdk_bedrock_runtime.client import AsyncBedrockRuntimeClient
        from aws_sdk_bedrock_runtime.config import AsyncBedrockRuntimeConfig
        from aws_sdk_bedrock_runtime.models import (
            BidirectionalInputPayloadPart,
            InvokeModelWithBidirectionalStreamInputChunk,
            InvokeModelWithBidirectionalStreamOperationInput,
        )
        from smithy_aws_core.identity.components import AWSCredentialsIdentity
        from smithy_aws_core.identity.static import StaticCredentialsResolver
        from smithy_http.aio.crt import AWSCRTHTTPClient
    except ImportError as error:
        missing = error.name or "a part"
    else:
        identity = AWSCredentialsIdentity(access_key_id=key_id, secret_access_key=secret, session_token=token)
        config = await AsyncBedrockRuntimeConfig.resolve(
            region=endpoint.headers["region"],
            endpoint_uri=endpoint.url,
            aws_credentials_identity_resolver=StaticCredentialsResolver(identity),
            transport=AWSCRTHTTPClient(),  # the default one cannot send and receive at once
        )
        stream = await AsyncBedrockRuntimeClient(config).invoke_model_with_bidirectional_stream(
            InvokeModelWithBidirectionalStreamOperationInput(model_id=endpoint.headers["model"])
        )

        def input_event(payload: bytes) -> Any:
            return InvokeModelWithBidirectionalStreamInputChunk(BidirectionalInputPayloadPart(bytes_=payload))

        return stream, input_event
    raise TransportError(
        f"Amazon's SDK for Nova Sonic is not installed ({missing}): pip install 'voice-agent-rig[nova]'",
        code=SDK_MISSING,
    )
