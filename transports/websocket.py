"""WebSocket client transport over picows.

picows hands over each frame inside the socket's own read callback: the stamp is taken there, with no queue or task in
between. No compression is offered, pings measure and never keep alive (a slow peer must not kill a measured call), and
an environment proxy is used for remote hosts only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import urllib.request
from collections.abc import Callable, ItemsView, Mapping
from urllib.parse import urlsplit

import aiohappyeyeballs
import picows
from picows.url import WSParsedURL

from captures.capture import NetworkTimes
from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import MAX_MESSAGE_BYTES, Endpoint, RequestedEndpoint, TransportError, is_loopback

# What picows says of a peer's fault reaches users through the capture, not through the root logger.
logging.getLogger("picows").addHandler(logging.NullHandler())

_CLOSE_LIMIT_S = 2.0
_BODY_LIMIT = 2000
_PROXIED_UPGRADE_S = 120.0
"""After which picows itself gives up an upgrade through a proxy, whose socket is not ours to close."""

_MAX_PINGS = 16
_HAPPY_EYEBALLS_S = 0.25

_TEXT, _BINARY, _CONTINUATION, _CLOSE, _PONG = (
    picows.WSMsgType.TEXT,
    picows.WSMsgType.BINARY,
    picows.WSMsgType.CONTINUATION,
    picows.WSMsgType.CLOSE,
    picows.WSMsgType.PONG,
)


class WebSocketTransport:
    """One WebSocket connection. Meets `transports.transport.Transport`."""

    def __init__(self, clock: Clock, ssl_context: ssl.SSLContext | None = None) -> None:
        self._clock = clock
        self._ssl_context = ssl_context
        self._ws: picows.WSTransport | None = None
        self._listener: _Listener | None = None
        self._way = NetworkTimes()
        self._tcp_done_ns: int | None = None
        self._socket: socket.socket | None = None

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """See `Transport.connect`. Redirects are not followed: they would carry the key to another host."""
        if isinstance(endpoint, RequestedEndpoint) and endpoint.first is not None:
            from transports.session_request import session_address

            address = await session_address(endpoint.first, endpoint.label, self._ssl_context)
            endpoint = Endpoint(address, endpoint.headers, endpoint.label)
        listener = _Listener(self._clock, self._opened, on_frame, on_closed)
        proxy = _proxy_for(endpoint.url)
        headers = _Headers(endpoint.headers, self._clock)
        failure: TransportError
        try:
            made: tuple[picows.WSTransport, picows.WSListener | None] = await picows.ws_connect(
                lambda: listener,
                endpoint.url,
                ssl_context=self._ssl_context,
                websocket_handshake_timeout=_PROXIED_UPGRADE_S if proxy else None,
                max_frame_size=MAX_MESSAGE_BYTES,
                extra_headers=headers,
                max_redirects=0,
                proxy=proxy,
                socket_factory=None if proxy else self._connected,
            )
            # Against its type, picows gives no listener, and raises nothing, for a connection lost in the handshake.
            if made[1] is not None:
                self._ws, self._listener = made[0], listener
                self._note_handshakes(headers.read_ns)
                return
            failure = TransportError(f"{endpoint.label} closed the connection during the handshake", code="network")
        except (picows.WSError, OSError, ssl.SSLError, ValueError) as error:
            failure = _typed(error, endpoint)
        except asyncio.CancelledError:
            self._hang_up()
            raise
        self._ws = None
        # Raised outside the handler: the original holds the request with its authorization header.
        raise failure

    def _hang_up(self) -> None:
        """picows leaves the connection of a handshake that is given up open, for as long as the peer does."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _opened(self, ws: picows.WSTransport) -> None:
        """A greeting may come with the handshake, and what it is answered with must not be lost."""
        self._ws = ws

    async def _connected(self, url: WSParsedURL) -> socket.socket:
        """A socket connected to the host, with the times of both steps noted."""
        loop = asyncio.get_running_loop()
        started_ns = self._clock.now_ns()
        addresses = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
        found_ns = self._clock.now_ns()
        made = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=_HAPPY_EYEBALLS_S, loop=loop)
        self._socket, self._tcp_done_ns = made, self._clock.now_ns()
        self._way = NetworkTimes(resolve_ns=found_ns - started_ns, tcp_ns=self._tcp_done_ns - found_ns)
        return made

    def _note_handshakes(self, requested_ns: int | None) -> None:
        done_ns, since_ns = self._clock.now_ns(), self._tcp_done_ns
        if since_ns is None or requested_ns is None or self._ws is None:
            return
        tls_ns = requested_ns - since_ns if self._ws.is_secure else None
        self._way = self._way.model_copy(update={"tls_ns": tls_ns, "upgrade_ns": done_ns - requested_ns})

    def ping(self) -> None:
        """See `MeasuresNetwork.ping`."""
        if self._ws is not None and self._listener is not None and not self._ws.is_disconnected:
            self._listener.ping(self._ws)

    def network_times(self) -> NetworkTimes:
        """See `MeasuresNetwork.network_times`."""
        pings = self._listener.round_trips_ns if self._listener is not None else []
        return self._way.model_copy(update={"ping_ns": tuple(pings)})

    def write(self, frame: OutFrame) -> None:
        """See `Transport.write`."""
        if self._ws is not None and not self._ws.is_disconnected:
            self._ws.send(_BINARY if frame.binary else _TEXT, frame.payload)

    def backlog_bytes(self) -> int:
        """See `Transport.backlog_bytes`."""
        if self._ws is None or self._ws.is_disconnected:
            return 0
        size: int = self._ws.underlying_transport.get_write_buffer_size()
        return size

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`. A peer that does not answer the close within 2 s is cut off."""
        ws, self._ws = self._ws, None
        if ws is None:
            return
        if not ws.is_disconnected:
            ws.send_close(picows.WSCloseCode(code), reason.encode()[:120])
        try:
            async with asyncio.timeout(_CLOSE_LIMIT_S):
                await ws.wait_disconnected()
        except (TimeoutError, picows.WSError):
            pass  # a peer that broke the protocol was reported through on_closed
        finally:
            ws.disconnect(graceful=False)


class _Listener(picows.WSListener):
    def __init__(
        self,
        clock: Clock,
        on_opened: Callable[[picows.WSTransport], None],
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        super().__init__()
        self._clock = clock
        self._on_opened = on_opened
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._parts: list[bytes] = []
        self._parts_binary = False
        self._parts_bytes = 0
        self._too_big = False
        self._pinged_ns: int | None = None
        self._pings = 0
        self.round_trips_ns: list[int] = []

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self._on_opened(transport)

    def ping(self, transport: picows.WSTransport) -> None:
        """Send one, unless one is under way or enough were sent."""
        if self._pinged_ns is None and self._pings < _MAX_PINGS:
            self._pings += 1
            self._pinged_ns = self._clock.now_ns()
            transport.send_ping(b"%d" % self._pings)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        t_ns = self._clock.now_ns()
        kind = frame.msg_type
        if kind in (_TEXT, _BINARY) and frame.fin:
            self._on_frame(InFrame(frame.get_payload_as_bytes(), kind == _BINARY, t_ns))
        elif kind in (_TEXT, _BINARY, _CONTINUATION):
            self._gather(transport, frame, t_ns)
        elif kind == _CLOSE:
            transport.send_close(picows.WSCloseCode.OK)
            transport.disconnect()
        elif kind == _PONG and self._pinged_ns is not None and frame.get_payload_as_bytes() == b"%d" % self._pings:
            self.round_trips_ns.append(t_ns - self._pinged_ns)
            self._pinged_ns = None

    def _gather(self, transport: picows.WSTransport, frame: picows.WSFrame, t_ns: int) -> None:
        """Join the pieces of a fragmented message."""
        if frame.msg_type != _CONTINUATION:
            self._parts, self._parts_bytes = [], 0
            self._parts_binary = frame.msg_type == _BINARY
        self._parts_bytes += frame.payload_size
        if self._parts_bytes > MAX_MESSAGE_BYTES:
            self._too_big = True
            transport.disconnect(graceful=False)
            return
        self._parts.append(frame.get_payload_as_bytes())
        if frame.fin:
            payload, self._parts = b"".join(self._parts), []
            self._on_frame(InFrame(payload, self._parts_binary, t_ns))

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        t_ns = self._clock.now_ns()
        handshake = transport.close_handshake
        received = handshake.recv if handshake is not None else None
        sent = handshake.sent if handshake is not None else None
        if received is not None and handshake.recv_then_sent:
            self._on_closed(ClosedBy(t_ns, _number(received.code), received.reason or "", by_peer=True))
        elif self._too_big:
            self._on_closed(ClosedBy(t_ns, 1009, f"a message over {MAX_MESSAGE_BYTES >> 20} MiB", by_peer=False))
        elif sent is not None and _number(sent.code) not in (None, 1000):
            # picows closes like this when the peer breaks the protocol.
            self._on_closed(ClosedBy(t_ns, _number(sent.code), sent.reason or "", by_peer=False))
        else:
            by_peer = sent is None
            self._on_closed(ClosedBy(t_ns, None, "connection lost" if by_peer else "closed by us", by_peer))


class _Headers(dict[str, str]):
    """Headers of the upgrade. They are read as it is requested, which is when TLS is done."""

    def __init__(self, headers: Mapping[str, str], clock: Clock) -> None:
        super().__init__(headers)
        self._clock = clock
        self.read_ns: int | None = None

    def __bool__(self) -> bool:
        return True  # none at all are read, too

    def items(self) -> ItemsView[str, str]:  # type: ignore[override]
        """As of any dict."""
        if self.read_ns is None:
            self.read_ns = self._clock.now_ns()
        return super().items()


def _proxy_for(url: str) -> str | None:
    host = urlsplit(url).hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get("https" if url.startswith("wss") else "http")


def _typed(error: Exception, endpoint: Endpoint) -> TransportError:
    """The failure in our words: the library's own text may hold the request."""
    where = endpoint.label
    if isinstance(error, picows.WSHandshakeError) and error.response is not None:
        status = int(error.response.status)
        body = (error.raw_body or b"")[:_BODY_LIMIT].decode("utf-8", "replace")
        retry_after = error.response.headers.get("Retry-After", "")
        return TransportError(
            f"{where} refused the connection with HTTP {status}",
            code=f"http_{status}",
            status=status,
            body=body,
            retry_after_s=float(retry_after) if retry_after.isdigit() else None,
        )
    if isinstance(error, picows.WSInvalidURL | ValueError):
        return TransportError(f"{where} is not a WebSocket address (ws:// or wss://)", code="bad_address")
    if isinstance(error, picows.WSError):
        return TransportError(f"{where} does not speak WebSocket", code="not_websocket")
    if isinstance(error, ssl.SSLError):
        return TransportError(f"TLS with {where} failed: {error.reason}", code="tls")
    if isinstance(error, socket.gaierror):
        return TransportError(f"the host of {where} has no address", code="dns")
    if isinstance(error, ConnectionRefusedError):
        return TransportError(f"nothing listens at {where}", code="refused")
    return TransportError(f"connection to {where} failed: {type(error).__name__}", code="network")


def _number(code: object) -> int | None:
    value = getattr(code, "value", code)
    return value if isinstance(value, int) else None
