"""Transport of file mode: posts one JSON body through the OpenAI SDK's async client. The only importer of `openai`.

Its tap is the JSON boundary: exact request and response bodies (of a streamed answer, each event's JSON and the closing
`[DONE]`), not what HTTP and TLS made of them. The connection is opened by the first request, so that request's time
includes it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import anyio

from adapters.chat_audio.answers import DONE
from adapters.chat_audio.faults import answers_all_the_same
from adapters.chat_audio.wire import BASE_URL, PATH
from adapters.foreign_json import brief, masked, text_of
from adapters.target_settings import secret_values
from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import MAX_MESSAGE_BYTES, Endpoint, TransportError

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, AsyncOpenAI, Omit

_CONNECT_LIMIT_S: Final = 10.0
_ANSWER_LIMIT_S: Final = 600.0
"""Backstop alone: the caller's turn limit comes first and closes the transport."""
_CLOSE_LIMIT_S: Final = 2.0
_EXPLANATION_LIMIT: Final = 2_000
_EXPLAINS: Final = ("message", "type", "code", "param", "failed_generation")
_EVENT_STREAM: Final = "text/event-stream"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class RequestParts:
    """One POST: JSON as it stands, or a form with a file."""

    path: str
    """Below the base URL."""
    json: bytes = b""
    fields: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, bytes, str] | None = None
    """Name, content and type of the form's `file`; None for JSON."""


class SdkTransport:
    """Requests to one endpoint for one attempt. Meets `transports.transport.Transport`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.on_failed: Callable[[TransportError], None] = _unheard
        """Called with a request that brought no body of status 200; set before the first `write`."""
        self._client: Any = None
        self.endpoint = Endpoint("")
        self._on_frame: Callable[[InFrame], None] = lambda _: None
        self._on_closed: Callable[[ClosedBy], None] = lambda _: None
        self._requests: dict[asyncio.Task[None], int] = {}
        """Running requests, each with the size of its body; owned here and ended by `close`."""

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """Make the SDK's client. No connection is opened yet: HTTP opens one with the request.

        Importing the SDK takes most of a second, so it happens in a thread: other sessions are being paced.
        """
        self.endpoint, self._on_frame, self._on_closed = endpoint, on_frame, on_closed
        self._client = await anyio.to_thread.run_sync(self.make_client, endpoint)

    def write(self, frame: OutFrame) -> None:
        """Start the request with this body. Its answer comes as a frame, its failure through `on_failed`."""
        if self._client is None:
            return
        # Not a task group: one entered in `connect` would be left in another scope than the caller's limit on it.
        task = asyncio.get_running_loop().create_task(self._post(self._client, frame.payload))
        self._requests[task] = len(frame.payload)
        task.add_done_callback(self._finished)

    def backlog_bytes(self) -> int:
        """Bodies whose request is still running, in bytes: nothing finer is known."""
        return sum(self._requests.values())

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Cancel running requests and release the client; bounded, and safe to call twice."""
        client, self._client = self._client, None
        if client is None:
            return
        running = list(self._requests)
        for task in running:
            task.cancel()
        with anyio.move_on_after(_CLOSE_LIMIT_S, shield=True):
            await asyncio.gather(*running, return_exceptions=True)
            await self.close_client(client)
        self._on_closed(ClosedBy(self._clock.now_ns(), code, reason, by_peer=False))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._requests.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A fault of ours in a callback: the loop's handler reports it, and the session gets an end.
            task.get_loop().call_exception_handler({"message": "a request's callback failed", "exception": error})
            self.on_failed(TransportError(f"internal error: {type(error).__name__}", code="internal"))

    async def _post(self, client: Any, payload: bytes) -> None:
        try:
            await self.post(client, payload)
            return
        except TransportError as error:
            failure = error
        # Outside the handler: what the error came from holds the request with its key.
        failure.__context__ = None
        if answers_all_the_same(failure):
            self.on_frame(failure.body.encode())
        else:
            self.on_failed(failure)

    def on_frame(self, payload: bytes) -> None:
        """Hand on what arrived just now."""
        self._on_frame(InFrame(payload, False, self._clock.now_ns()))

    # What an SDK changes

    def make_client(self, endpoint: Endpoint) -> Any:
        """The SDK's client; called in a thread."""
        return _make_client(endpoint)

    async def close_client(self, client: Any) -> None:
        """Release its connections."""
        await client.close()

    def request_parts(self, payload: bytes) -> RequestParts:
        """What is posted for a frame."""
        return RequestParts(PATH, payload)

    async def post(self, client: Any, payload: bytes) -> None:
        """One request; what its answer holds goes to `on_frame`. Raises TransportError."""
        import httpx2
        import openai

        failure: TransportError
        try:
            response = await _sent(client, self.request_parts(payload), self.endpoint)
            try:
                await self._read(response)
                return
            finally:
                await response.aclose()
        except openai.APIStatusError as error:
            failure = _refused(error, self.endpoint)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = not_served(error, self.endpoint)
        raise failure

    async def _read(self, response: httpx2.Response) -> None:
        """Hand on the body as one frame, or each event of a stream as one. Raises TransportError for a cut stream."""
        if not response.headers.get("content-type", "").startswith(_EVENT_STREAM):
            await response.aread()
            self.on_frame(response.content)
            return
        async for line in response.aiter_lines():
            name, _, data = line.partition(":")
            # Comments and other fields say nothing here; an event of several data lines is sent by nobody.
            if name != "data" or not data.strip():
                continue
            stripped = data.strip().encode()
            self.on_frame(stripped)
            if stripped == DONE:
                return
        raise TransportError(f"the answer of {self.endpoint.label} ended before its end", code="stream_cut")


async def _sent(client: AsyncOpenAI, parts: RequestParts, endpoint: Endpoint) -> httpx2.Response:
    """The response, its body unread, whatever it turns out to be: a streamed one is handed on piece by piece."""
    import httpx2
    import openai

    if parts.file is None:
        response = await client.post(
            parts.path,
            cast_to=httpx2.Response,
            content=parts.json,
            options={"headers": _request_headers(endpoint, "application/json")},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
    else:
        response = await client.post(
            parts.path,
            cast_to=httpx2.Response,
            body=dict(parts.fields),
            files={"file": parts.file},
            options={"headers": _request_headers(endpoint, "multipart/form-data")},
            stream=True,
            stream_cls=openai.AsyncStream[object],
        )
    # The SDK hands on a response as it is where that type is asked for, streamed or not.
    return cast("httpx2.Response", response)


def _unheard(error: TransportError) -> None:
    raise error


def preload() -> None:
    """Do now what the first request would spend its time on: import the SDK, read the certificates."""
    _make_client(Endpoint("http://127.0.0.1"))


def _make_client(endpoint: Endpoint) -> AsyncOpenAI:
    import httpx2
    import openai

    return openai.AsyncOpenAI(
        api_key="in-headers",
        base_url=endpoint.url,
        max_retries=0,
        timeout=httpx2.Timeout(_ANSWER_LIMIT_S, connect=_CONNECT_LIMIT_S),
        http_client=http_client(endpoint),
    )


def http_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """What an SDK sends its requests with: no redirects, no compression, bounded bodies, no proxy for loopback."""
    import httpx2

    host = urlsplit(endpoint.url).hostname or ""
    return httpx2.AsyncClient(
        verify=tls(),
        trust_env=host not in _LOOPBACK and not host.startswith("127."),
        timeout=httpx2.Timeout(_ANSWER_LIMIT_S, connect=_CONNECT_LIMIT_S),
        # A redirect would carry headers of the target to another host.
        follow_redirects=False,
        event_hooks={"response": [_bound]},
    )


def _request_headers(endpoint: Endpoint, content_type: str) -> Mapping[str, str | Omit]:
    """The endpoint's headers; what the SDK would add from the environment goes to its own vendor alone."""
    import openai

    headers: dict[str, str | Omit] = {"Content-Type": content_type, "Accept-Encoding": "identity"}
    if urlsplit(endpoint.url).hostname != urlsplit(BASE_URL).hostname:
        headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    headers["Authorization"] = openai.Omit()
    given = {name.lower() for name in endpoint.headers}
    return {name: value for name, value in headers.items() if name.lower() not in given} | dict(endpoint.headers)


@functools.cache
def tls() -> ssl.SSLContext:
    """One for all sessions: making it takes tens of milliseconds."""
    import httpx2

    return httpx2.create_ssl_context()


async def _bound(response: httpx2.Response) -> None:
    """Response hook: stop reading a body past the limit. A compressed one was not asked for and could hide its size."""
    import httpx2

    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise TransportError("the response is compressed although that was not asked for", code="compressed")

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in self._inner:
                size += len(piece)
                if size > MAX_MESSAGE_BYTES:
                    raise TransportError(
                        f"the response is larger than {MAX_MESSAGE_BYTES >> 20} MiB", code="message_too_big"
                    )
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = Bounded(response.stream)


def _refused(error: APIStatusError, endpoint: Endpoint) -> TransportError:
    """A status other than 200, with the vendor's explanation rebuilt as JSON short enough to stay whole."""
    status = error.status_code
    stated = error.body if isinstance(error.body, dict) else {}
    explained: dict[str, str] = {key: brief(text) for key in stated if (text := text_of(stated, key)) is not None}
    if not explained:
        explained = {"message": brief(error.response.text, _EXPLANATION_LIMIT)}
    body = json.dumps({"error": {key: explained[key] for key in _EXPLAINS if key in explained}})
    return TransportError(
        f"{endpoint.label} answered with HTTP {status}",
        code=f"http_{status}",
        status=status,
        body=masked(body, secret_values(endpoint.headers)),
        retry_after_s=retry_after_s(error.response.headers.get("retry-after", "")),
    )


def retry_after_s(header: str) -> float | None:
    """Seconds of a `Retry-After` header that holds whole ones."""
    return float(header) if header.isascii() and header.isdigit() and len(header) <= 5 else None


def not_served(error: Exception, endpoint: Endpoint) -> TransportError:
    """A request without any response. Only types are told: texts below may hold the request."""
    import httpx2
    import openai

    where = endpoint.label
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return TransportError(f"TLS with {where} failed", code="tls")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return TransportError(f"the host of {where} has no address", code="dns")
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return TransportError(f"nothing listens at {where}", code="refused")
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return TransportError(f"{where} did not answer in time", code="timeout")
    if any(isinstance(cause, httpx2.InvalidURL | httpx2.LocalProtocolError) for cause in causes):
        return TransportError(f"{where} or a header cannot be sent as HTTP", code="bad_address")
    return TransportError(f"the request to {where} failed: {type(causes[-1]).__name__}", code="network")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__
