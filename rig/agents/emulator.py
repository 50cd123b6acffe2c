"""Hosts embedded agents for anybody's client: each (dialect, agent) pair on a loopback port of its own.

The dialect's server half does the talking, `rig.agents.host_session` the conversation; here are the sockets, their
limits, and the process. Not hardened for an open network: loopback unless told otherwise.
"""

from __future__ import annotations

import argparse
import hmac
import importlib.util
import logging
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
import orjson
from aiohttp import WSMsgType, web
from aiohttp.typedefs import Handler, Middleware
from anyio.abc import TaskGroup

from adapters import registry
from adapters.dialect import DialectInfo
from adapters.server import ChecksHandshake, Handshake, ServerDialect
from adapters.template_socket.emulated.server import PATHS
from rig.agents import brain_wire, children, faults, parent
from rig.agents.agent import AGENT_NAMES, EmbeddedAgent, Traits
from rig.agents.brain_client import BrainClient, Ears
from rig.agents.faults import FaultError, FaultPlan, HttpRefusal, SessionFaults
from rig.agents.host_session import Agent, HostSession, Line
from rig.agents.lines import BodyLine, WebSocketLine, abort
from rig.agents.send_stamps import SendStamps
from transports.transport import is_loopback

MAX_SESSIONS = 256
MAX_MESSAGE_BYTES = 32 * 1024 * 1024
_CLOSE_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Route:
    """Where a dialect's clients expect it."""

    paths: tuple[str, ...]
    base_path: str
    """Path of the base URL that a client is given."""
    websocket: bool = True


_COMPLETIONS = Route(("/v1/chat/completions",), "/v1", websocket=False)
ROUTES: dict[str, Route] = {
    "openai_realtime": Route(("/v1/realtime",), "/v1/realtime"),
    "nova_sonic": Route(("/nova-sonic",), "/nova-sonic"),
    "openai_live": Route(("/v1/live/sessions",), "/v1/live/sessions"),
    "openai_realtime_beta": Route(("/v1/realtime",), "/v1/realtime"),
    "azure_realtime": Route(("/openai/v1/realtime",), "/openai/v1/realtime"),
    "azure_realtime_preview": Route(("/openai/realtime",), "/openai/realtime"),
    "xai_realtime": Route(("/v1/realtime",), "/v1/realtime"),
    "vercel_gateway": Route(("/v4/ai/realtime-model",), "/v4/ai/realtime-model"),
    "rig_socket": Route(("/", "/agent"), "/"),
    "template_socket": Route(tuple(PATHS), "/"),
    "twilio_media": Route(("/", "/media"), "/media"),
    "chat_audio": _COMPLETIONS,
    "cascade": Route(("/v1/chat/completions", "/v1/audio/transcriptions", "/v1/audio/tags"), "/v1", websocket=False),
    "openai_chat": _COMPLETIONS,
    "gemini_file": Route(("/{version}/models/{model}",), "", websocket=False),
    "openrouter": Route(("/api/v1/chat/completions",), "/api/v1", websocket=False),
    "dashscope": Route(("/compatible-mode/v1/chat/completions",), "/compatible-mode/v1", websocket=False),
    "mistral": _COMPLETIONS,
    "stepfun_chat": _COMPLETIONS,
    "groq": Route(("/openai/v1/chat/completions",), "/openai/v1", websocket=False),
    "llamacpp": _COMPLETIONS,
    "vllm": _COMPLETIONS,
    "gemini_live": Route(
        ("/ws/{service}", "/ws/{service}/BidiGenerateContent"),  # of any version, and as Vertex has it
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    ),
    "qwen_omni_realtime": Route(("/api-ws/v1/realtime",), "/api-ws/v1/realtime"),
    "qwen_audio_realtime": Route(("/api-ws/v1/realtime",), "/api-ws/v1/realtime"),
    "stepfun_realtime": Route(("/v1/realtime",), "/v1/realtime"),
}


NO_PLAN = FaultPlan()


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
    *,
    plan: FaultPlan = NO_PLAN,
    stamps: SendStamps | None = None,
    token: str | None = None,
) -> AsyncIterator[int]:
    """Serve an agent in a dialect while the context lasts; gives the port (a free one for `port` 0).

    Over TLS with an `ssl_context`. With a `token` clients must show it as their key. Raises EmulatorError when there is
    no such dialect, when it cannot have a fault of the plan, or when the port cannot be had.
    """
    if dialect_name not in ROUTES:
        raise EmulatorError(f"no dialect {dialect_name!r} to emulate; there are {', '.join(ROUTES)}")
    route = ROUTES[dialect_name]
    dialect = registry.dialect(dialect_name)
    try:
        faults.check(plan, dialect_name, dialect.server(), file_mode=not route.websocket)
    except FaultError as error:
        raise EmulatorError(str(error)) from error
    endpoint = _Endpoint(dialect, agent, plan, stamps)
    guards = [] if token is None else [_guard(token)]
    application = web.Application(client_max_size=MAX_MESSAGE_BYTES, middlewares=guards)
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


def _guard(token: str) -> Middleware:
    """Lets in whoever shows `token` where a vendor's key stands: in a header, after a scheme or alone, or the query."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        shown = [*request.headers.values(), *request.query.values()]
        parts = [part.encode("utf-8", "replace") for value in shown for part in (value, value.rpartition(" ")[2])]
        if any(hmac.compare_digest(part, token.encode()) for part in parts):
            return await handler(request)
        return web.json_response({"error": {"message": "the token is missing or wrong", "code": "token"}}, status=401)

    return check


class _Endpoint:
    """Handlers of one (dialect, agent) pair."""

    def __init__(self, dialect: DialectInfo, agent: Agent, plan: FaultPlan, stamps: SendStamps | None) -> None:
        self._dialect = dialect
        self._agent = agent
        self._plan = plan
        self._stamps = stamps
        self._count = 0
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

    def _faults(self) -> SessionFaults:
        """Of the next session."""
        self._count += 1
        return self._plan.for_session(self._count)

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
        wrong = self._faults()
        if wrong.http is not None:
            return _refusal(wrong.http, _echo(wrong, request))
        if wrong.cut_on_connect is not None and wrong.cut_on_connect.code is None:
            abort(request)
            return response
        with self._session():
            await response.prepare(request)
            await self._converse(dialect, request, response, wrong)
        if not response.closed:
            await response.close(code=1001, message=b"server stops")
        return response

    async def _converse(
        self, dialect: ServerDialect, request: web.Request, response: web.WebSocketResponse, wrong: SessionFaults
    ) -> None:
        async with anyio.create_task_group() as tasks:
            line = WebSocketLine(request, response, tasks)
            session = self._host(dialect, line, tasks, request, wrong)
            await session.open(dict(request.query))
            async for message in response:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                binary = message.type is WSMsgType.BINARY
                closing = await session.take(message.data if binary else message.data.encode(), binary)
                if closing is not None:
                    await line.end(*closing)
                    break
            tasks.cancel_scope.cancel()

    def _host(
        self, dialect: ServerDialect, line: Line, tasks: TaskGroup, request: web.Request, wrong: SessionFaults
    ) -> HostSession:
        echo = _echo(wrong, request)
        return HostSession(dialect, self._agent, line, tasks, wrong, number=self._count, stamps=self._stamps, echo=echo)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """One conversation of one turn: a request's body in, one frame or a stream of events out."""
        self._refuse_when_full()
        wrong = self._faults()
        if wrong.http is not None:
            return _refusal(wrong.http, _echo(wrong, request))
        if wrong.cut_on_connect is not None:
            abort(request)
            return web.Response()
        body = await request.read()
        status = 503
        with self._session():
            async with anyio.create_task_group() as tasks:
                line = BodyLine(request, tasks)
                session = self._host(self._dialect.server(), line, tasks, request, wrong)
                refused = await session.take(body, False)
            # In file mode a refusal's close code is its HTTP status.
            status = refused[0] if refused is not None else 500 if session.failed else 200
        if line.lost:
            abort(request)
        elif line.stream is not None:
            # A client is free to go once it has read the last event.
            with suppress(ConnectionError):
                await line.stream.write_eof()
        if line.stream is not None:
            return line.stream
        if line.body is None and not line.lost:
            raise web.HTTPServiceUnavailable(text="the emulator stops")
        return web.Response(body=line.body, content_type="application/json", status=status)


def _refusal(refusal: HttpRefusal, echo: str) -> web.Response:
    """A refused handshake or request, explained in OpenAI's form, which most vendors share, with Google's `status`."""
    message = f"{refusal.code}: refused with {refusal.status}{echo}"
    error = {"message": message, "type": refusal.code, "code": refusal.code, "status": refusal.code}
    headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
    body = orjson.dumps({"error": error})
    return web.Response(status=refusal.status, body=body, content_type="application/json", headers=headers)


def _echo(wrong: SessionFaults, request: web.Request) -> str:
    """All that a client might have sent as a secret, for vendors that repeat it in their explanations."""
    if not wrong.echo_secrets:
        return ""
    values = [value for name, value in request.headers.items() if name.lower() not in _PLAIN_HEADERS]
    return f" ({' '.join([*values, *request.query.values()])})"


_PLAIN_HEADERS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "sec-websocket-extensions"}
    | {"origin", "sec-websocket-key", "sec-websocket-version", "upgrade", "user-agent"}
)


async def emulate(
    dialect: str,
    agent: str,
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    ssl_context: ssl.SSLContext | None = None,
    fault_texts: Sequence[str] = (),
    stamps: Path | None = None,
    token: str | None = None,
) -> None:
    """Run brain and emulator of one pair until cancelled; `on_ready` is given the base URL.

    Names may be written with hyphens; what was sent when is appended to `stamps`. Raises EmulatorError or
    `rig.agents.children.ChildError`.
    """
    name = dialect.replace("-", "_")
    _check(name, agent)
    if not is_loopback(host) and not token:
        raise EmulatorError(f"others can reach {host}: give --token-env NAME; clients then send its value as their key")
    plan = _plan(fault_texts)
    with _stamping(stamps) as file:
        own = SendStamps(file, name) if file is not None else None
        async with (
            children.brain() as client,
            serve(
                name, _agent(agent, client, plan), host, port, ssl_context, plan=plan, stamps=own, token=token
            ) as bound,
        ):
            on_ready(base_url(name, host, bound, tls=ssl_context is not None))
            await anyio.sleep_forever()


def _agent(name: str, ears: Ears, plan: FaultPlan) -> EmbeddedAgent:
    own = plan.for_session(0)
    return EmbeddedAgent(name, ears, Traits(own.acts, own.hears, plan.seed))


def _plan(fault_texts: Sequence[str]) -> FaultPlan:
    try:
        return faults.parse(fault_texts)
    except FaultError as error:
        raise EmulatorError(str(error)) from error


@contextmanager
def _stamping(path: Path | None) -> Iterator[IO[bytes] | None]:
    if path is None:
        yield None
        return
    try:
        file = path.open("ab")
    except OSError as error:
        raise EmulatorError(f"cannot write {path}: {error.strerror or error}") from error
    with file:
        yield file


def _check(dialect: str, agent: str) -> None:
    if dialect not in ROUTES:
        raise EmulatorError(f"no dialect {dialect!r} to emulate; there are {', '.join(ROUTES)}")
    if agent not in AGENT_NAMES:
        raise EmulatorError(f"no agent {agent!r}; there are {', '.join(AGENT_NAMES)}")


async def run(specs: Sequence[Sequence[str]], brain: Ears, stamps: Path | None = None) -> None:
    """Serve agents on free loopback ports until stopped, each given as dialect, agent, faults. Raises EmulatorError."""
    with _stamping(stamps) as file:
        async with AsyncExitStack() as stack:
            ports = []
            for dialect, agent, *fault_texts in specs:
                own = SendStamps(file, dialect) if file is not None else None
                plan = _plan(fault_texts)
                served = serve(dialect, _agent(agent, brain, plan), plan=plan, stamps=own)
                ports.append(await stack.enter_async_context(served))
            parent.announce({"ports": ports})
            await parent.until_stopped()


def main() -> None:
    """Entry of the process; the brain's token comes in the environment."""
    parser = argparse.ArgumentParser(prog="rig.agents.emulator", description=__doc__)
    parser.add_argument(
        "--serve", action="append", required=True, metavar="JSON", help='["dialect", "agent", "fault", …]; repeatable'
    )
    parser.add_argument("--brain-port", type=int, required=True, help="loopback port of the brain")
    parser.add_argument("--stamps", type=Path, help="append to this file what was sent when")
    chosen = parser.parse_args()
    token = os.environ.pop(brain_wire.TOKEN_ENV, "")
    if not token:
        sys.exit(f"{brain_wire.TOKEN_ENV} is not set")
    specs: list[list[str]] = [orjson.loads(spec) for spec in chosen.serve]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        for dialect, agent, *_ in specs:
            _check(dialect, agent)
        anyio.run(
            run,
            specs,
            BrainClient(chosen.brain_port, token),
            chosen.stamps,
            backend_options={"use_uvloop": importlib.util.find_spec("uvloop") is not None},
        )
    except EmulatorError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
