"""Hosts embedded agents for anybody's client: each (dialect, agent) pair on a loopback port of its own.

The dialect's server half does the talking, `rig.agents.host_session` the conversation; here are the sockets, their
limits, and the process. Not hardened for an open network: loopback unless told otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import anyio
from aiohttp import ClientError, WSMsgType, web

from adapters import registry
from adapters.server import ChecksHandshake, Handshake, ServerDialect
from captures.frames import OutFrame
from rig.agents import brain_wire, children, parent
from rig.agents.agent import AGENT_NAMES, EmbeddedAgent
from rig.agents.brain_client import BrainClient, Ears
from rig.agents.host_session import Agent, HostSession

MAX_SESSIONS = 256
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_CLOSE_TIMEOUT_S = 2.0
_MAX_REASON_BYTES = 123
"""RFC 6455: a close frame holds 125 bytes, two of them the code."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a dialect's clients expect it."""

    paths: tuple[str, ...]
    base_path: str
    """Path of the base URL that a client is given."""
    websocket: bool = True


ROUTES: dict[str, Route] = {
    "openai_realtime": Route(("/v1/realtime",), "/v1/realtime"),
    "openai_live": Route(("/v1/live/sessions",), "/v1/live/sessions"),
    "openai_realtime_beta": Route(("/v1/realtime",), "/v1/realtime"),
    "azure_realtime": Route(("/openai/v1/realtime",), "/openai/v1/realtime"),
    "azure_realtime_preview": Route(("/openai/realtime",), "/openai/realtime"),
    "xai_realtime": Route(("/v1/realtime",), "/v1/realtime"),
    "vercel_gateway": Route(("/v4/ai/realtime-model",), "/v4/ai/realtime-model"),
    "rig_socket": Route(("/", "/agent"), "/"),
    "chat_audio": Route(("/v1/chat/completions",), "/v1", websocket=False),
    "gemini_live": Route(
        ("/ws/{service}", "/ws/{service}/BidiGenerateContent"),  # of any version, and as Vertex has it
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    ),
}


class EmulatorError(RuntimeError):
    """An emulator cannot be started; one line that says why and what to do."""


def base_url(dialect_name: str, host: str, port: int, *, tls: bool = False) -> str:
    """What a client of the dialect is given to reach an emulator."""
    route = ROUTES[dialect_name]
    shown = f"[{host}]" if ":" in host else host
    return f"{'ws' if route.websocket else 'http'}{'s' if tls else ''}://{shown}:{port}{route.base_path}"


@asynccontextmanager
async def serve(
    dialect_name: str,
    agent: Agent,
    host: str = "127.0.0.1",
    port: int = 0,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Serve an agent in a dialect while the context lasts; gives the port (a free one for `port` 0).

    Over TLS with an `ssl_context`. Raises EmulatorError when there is no such dialect or the port cannot be had.
    """
    if dialect_name not in ROUTES:
        raise EmulatorError(f"no dialect {dialect_name!r} to emulate; there are {', '.join(ROUTES)}")
    route = ROUTES[dialect_name]
    endpoint = _Endpoint(dialect_name, agent)
    application = web.Application(client_max_size=MAX_MESSAGE_BYTES)
    for path in route.paths:
        if route.websocket:
            application.router.add_get(path, endpoint.websocket)
        else:
            application.router.add_post(path, endpoint.post)
    runner = web.AppRunner(
        application, access_log=None, handle_signals=False, handler_cancellation=True, shutdown_timeout=_CLOSE_TIMEOUT_S
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=ssl_context)
        try:
            await site.start()
        except OSError as error:
            raise EmulatorError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        with anyio.CancelScope(shield=True):
            endpoint.stop()
            await runner.cleanup()


class _Endpoint:
    """Handlers of one (dialect, agent) pair."""

    def __init__(self, dialect_name: str, agent: Agent) -> None:
        self._dialect = registry.dialect(dialect_name)
        self._agent = agent
        self._sessions: set[anyio.CancelScope] = set()

    def stop(self) -> None:
        """End all conversations."""
        for scope in tuple(self._sessions):
            scope.cancel()

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Counts a conversation, and lets `stop` end it."""
        scope = anyio.CancelScope()
        self._sessions.add(scope)
        try:
            with scope:
                yield
        finally:
            self._sessions.discard(scope)

    def _refuse_when_full(self) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_SESSIONS} sessions are open")

    async def websocket(self, request: web.Request) -> web.StreamResponse:
        """One conversation over one WebSocket."""
        self._refuse_when_full()
        response = web.WebSocketResponse(compress=False, max_msg_size=MAX_MESSAGE_BYTES, timeout=_CLOSE_TIMEOUT_S)
        if request.transport is not None and (plain := request.transport.get_extra_info("socket")) is not None:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dialect = self._dialect.server()
        if isinstance(dialect, ChecksHandshake):
            headers = {name.lower(): value for name, value in request.headers.items()}
            denied = dialect.denied(Handshake(request.path, dict(request.query), headers))
            if denied is not None:
                return web.Response(status=denied.status, body=denied.body, content_type="application/json")
        with self._session():
            await response.prepare(request)
            await self._converse(dialect, request, response)
        if not response.closed:
            await response.close(code=1001, message=b"server stops")
        return response

    async def _converse(self, dialect: ServerDialect, request: web.Request, response: web.WebSocketResponse) -> None:
        async with anyio.create_task_group() as tasks:

            async def send(frame: OutFrame) -> None:
                try:
                    if frame.binary:
                        await response.send_bytes(frame.payload)
                    else:
                        await response.send_str(frame.payload.decode())
                except (ClientError, ConnectionError):
                    # The client has gone in the middle of a frame of ours: nobody is left to answer.
                    tasks.cancel_scope.cancel()

            for frame in dialect.greeting(dict(request.query)):
                await send(frame)
            session = HostSession(dialect, self._agent, send, tasks)
            async for message in response:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                binary = message.type is WSMsgType.BINARY
                closing = await session.take(message.data if binary else message.data.encode(), binary)
                if closing is not None:
                    await response.close(code=closing[0], message=closing[1].encode()[:_MAX_REASON_BYTES])
                    break
            tasks.cancel_scope.cancel()

    async def post(self, request: web.Request) -> web.Response:
        """One conversation of one turn: a request's body in, one frame out."""
        self._refuse_when_full()
        frames: list[OutFrame] = []

        async def send(frame: OutFrame) -> None:
            frames.append(frame)

        body = await request.read()
        status = 503
        with self._session():
            async with anyio.create_task_group() as tasks:
                session = HostSession(self._dialect.server(), self._agent, send, tasks)
                refused = await session.take(body, False)
            # In file mode a refusal's close code is its HTTP status.
            status = refused[0] if refused is not None else 500 if session.failed else 200
        if not frames:
            raise web.HTTPServiceUnavailable(text="the emulator stops")
        return web.Response(body=frames[-1].payload, content_type="application/json", status=status)


async def emulate(
    dialect: str,
    agent: str,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    ssl_context: ssl.SSLContext | None = None,
) -> None:
    """Run brain and emulator of one pair until cancelled; `on_ready` is given the base URL.

    Names may be written with hyphens. Raises EmulatorError or `rig.agents.children.ChildError`.
    """
    name = dialect.replace("-", "_")
    _check(name, agent)
    async with children.brain() as client, serve(name, EmbeddedAgent(agent, client), host, port, ssl_context) as bound:
        on_ready(base_url(name, host, bound, tls=ssl_context is not None))
        await anyio.sleep_forever()


def _check(dialect: str, agent: str) -> None:
    if dialect not in ROUTES:
        raise EmulatorError(f"no dialect {dialect!r} to emulate; there are {', '.join(ROUTES)}")
    if agent not in AGENT_NAMES:
        raise EmulatorError(f"no agent {agent!r}; there are {', '.join(AGENT_NAMES)}")


async def run(pairs: Sequence[tuple[str, str]], brain: Ears) -> None:
    """Serve several (dialect, agent) pairs on free loopback ports until stopped. Raises EmulatorError."""
    async with AsyncExitStack() as stack:
        ports = []
        for dialect, agent in pairs:
            ports.append(await stack.enter_async_context(serve(dialect, EmbeddedAgent(agent, brain))))
        parent.announce({"ports": ports})
        await parent.until_stopped()


def main() -> None:
    """Entry of the process; the brain's token comes in the environment."""
    parser = argparse.ArgumentParser(prog="rig.agents.emulator", description=__doc__)
    parser.add_argument("--serve", action="append", required=True, metavar="DIALECT/AGENT", help="may be repeated")
    parser.add_argument("--brain-port", type=int, required=True, help="loopback port of the brain")
    chosen = parser.parse_args()
    token = os.environ.pop(brain_wire.TOKEN_ENV, "")
    if not token:
        sys.exit(f"{brain_wire.TOKEN_ENV} is not set")
    pairs = [(dialect, agent) for dialect, _, agent in (pair.partition("/") for pair in chosen.serve)]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        for pair in pairs:
            _check(*pair)
        anyio.run(
            run,
            pairs,
            BrainClient(chosen.brain_port, token),
            backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None},
        )
    except EmulatorError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
