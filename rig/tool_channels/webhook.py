"""The webhook that an agent's tool endpoint points at. One server for each address; its answers are scripted."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from aiohttp import web

from adapters.foreign_json import brief, too_deep
from adapters.tool_requests import WebhookSettings, host_and_port
from captures.clock import Clock
from rig.agents.children import ChildError
from rig.tool_channels.hub import Delivery, Hub

MAX_BODY_BYTES: Final = 1 << 20
_MAX_HEADER_CHARS: Final = 500
_READ_LIMIT_S: Final = 30.0
_KEPT_HEADERS: Final = ("content-type", "user-agent", "x-request-id")
"""And all others that begin with `x-`, but for those that may hold a secret: they are in no record."""
_SECRET_PARTS: Final = ("token", "key", "secret", "auth", "signature", "cookie", "password")
_STATUS: Final = {Delivery.UNKNOWN: 404, Delivery.UNNAMED: 409, Delivery.FLOOD: 429}
_SAID: Final = {
    Delivery.UNKNOWN: "no call of this id is open here",
    Delivery.UNNAMED: "several calls are open: say which one (call_sid), or tell the rig where the request says it",
    Delivery.FLOOD: "this call has made too many requests",
}


@asynccontextmanager
async def served(listen: str, hubs: Sequence[tuple[WebhookSettings, Hub]], clock: Clock) -> AsyncIterator[str]:
    """Serve the webhooks of one address while the context lasts; the address, its real port included.

    Raises ChildError when it cannot listen there.
    """
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    for settings, hub in hubs:
        handler = _Handler(settings, hub, clock)
        path = settings.path.rstrip("/")
        application.router.add_route("*", path or "/", handler.take)
        application.router.add_route("*", path + "/{below:.*}", handler.take)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        host, port = host_and_port(listen)
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            said = error.strerror or type(error).__name__
            raise ChildError(
                f"webhook {listen}: cannot listen ({said}); choose another tool_calls.webhook.listen"
            ) from None
        real_port = runner.addresses[0][1]
        yield f"http://{listen.rpartition(':')[0]}:{real_port}"
    finally:
        await runner.cleanup()


class _Handler:
    def __init__(self, settings: WebhookSettings, hub: Hub, clock: Clock) -> None:
        self._token = settings.token
        self._hub = hub
        self._clock = clock

    async def take(self, request: web.Request) -> web.Response:
        """One request of the agent's tool endpoint."""
        if self._token is not None and not _shows(request, self._token):
            return _refused(401, "the token is missing or wrong: send Authorization: Bearer, or X-Rig-Token")
        try:
            async with asyncio.timeout(_READ_LIMIT_S):
                raw = await request.read()
        except TimeoutError:
            return _refused(408, f"the body did not come within {_READ_LIMIT_S:g} s")
        # The call is complete here: before this, more of its arguments could have come.
        t_ns = self._clock.now_ns()
        body: Any = None
        if raw:
            try:
                body = orjson.loads(raw)
            except orjson.JSONDecodeError:
                return _refused(400, "the body is not JSON")
        if too_deep(body):
            return _refused(400, "the body nests too deeply")
        told = {
            "method": request.method,
            "path": request.path,
            "below": request.match_info.get("below", ""),
            "query": {name: value[:_MAX_HEADER_CHARS] for name, value in request.query.items() if not _secret(name)},
            "headers": _kept(request.headers),
            "body": body,
        }
        answer = self._hub.requests.result_of(self._hub.requests.name_of(told))
        delivery = self._hub.deliver("webhook", told, answer, t_ns)
        if delivery is not Delivery.TAKEN:
            return _refused(_STATUS[delivery], _SAID[delivery])
        return web.Response(body=orjson.dumps(answer), content_type="application/json")


def _shows(request: web.Request, token: str) -> bool:
    shown = request.headers.get("X-Rig-Token", "")
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    candidates = [shown, bearer if scheme.lower() == "bearer" else ""]
    return any(hmac.compare_digest(one.encode("utf-8", "replace"), token.encode()) for one in candidates)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    names = {name.lower(): value for name, value in headers.items()}
    return {
        name: brief(value, _MAX_HEADER_CHARS)
        for name, value in names.items()
        if name in _KEPT_HEADERS or (name.startswith("x-") and not _secret(name))
    }


def _secret(name: str) -> bool:
    return any(part in name.lower() for part in _SECRET_PARTS)


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, body=orjson.dumps({"error": why}), content_type="application/json")
