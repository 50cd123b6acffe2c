"""What carries an emulator's frames to a client: a WebSocket, or the one response body of file mode."""

from __future__ import annotations

import anyio
from aiohttp import ClientError, web
from anyio.abc import TaskGroup

from captures.frames import OutFrame

_MAX_REASON_BYTES = 123
"""RFC 6455: a close frame holds 125 bytes, two of them the code."""
_EVENT = b"data: "


class WebSocketLine:
    """`rig.agents.host_session.Line` over a WebSocket; `tasks` are those of the conversation."""

    def __init__(self, request: web.Request, response: web.WebSocketResponse, tasks: TaskGroup) -> None:
        self._request = request
        self._response = response
        self._tasks = tasks

    async def send(self, frame: OutFrame) -> None:
        """See `Line`."""
        try:
            if frame.binary:
                await self._response.send_bytes(frame.payload)
            else:
                await self._response.send_str(frame.payload.decode())
        except (ClientError, ConnectionError):
            # The client has gone in the middle of a frame of ours: nobody is left to answer.
            self._tasks.cancel_scope.cancel()

    async def end(self, code: int | None, reason: str) -> None:
        """See `Line`."""
        if code is None:
            abort(self._request)
        else:
            message = reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore").encode()
            # Shielded: the reader, woken by the close, ends the conversation's tasks, and this may be one of them.
            with anyio.CancelScope(shield=True):
                await self._response.close(code=code, message=message)
        self._tasks.cancel_scope.cancel()


class BodyLine:
    """`rig.agents.host_session.Line` for one request: the last frame is the body.

    Unless frames carry the framing of server-sent events: then each is sent as it comes.
    """

    def __init__(self, request: web.Request, tasks: TaskGroup) -> None:
        self._request = request
        self._tasks = tasks
        self.body: bytes | None = None
        self.stream: web.StreamResponse | None = None
        """The response that was begun, for a stream of events."""
        self.lost = False
        """The connection is to be cut without a response, or without the rest of it."""

    async def send(self, frame: OutFrame) -> None:
        """See `Line`."""
        if not frame.payload.startswith(_EVENT):
            self.body = frame.payload
            return
        try:
            if self.stream is None:
                self.stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                await self.stream.prepare(self._request)
            await self.stream.write(frame.payload)
        except (ClientError, ConnectionError):
            # The client has gone: nobody is left to answer.
            self.lost = True
            self._tasks.cancel_scope.cancel()

    async def end(self, code: int | None, reason: str) -> None:
        """See `Line`."""
        self.lost = True
        self._tasks.cancel_scope.cancel()


def abort(request: web.Request) -> None:
    """Cut a connection without a word."""
    if request.transport is not None:
        request.transport.abort()
