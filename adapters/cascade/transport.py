"""Transport of a cascade: each stage's requests by that stage's own transport, forms by one of our own.

Its tap is the JSON boundary: in a frame a form is JSON with its file in base64, as it was before multipart and TLS.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import orjson

from adapters.cascade import wire
from adapters.cascade.client import CascadeEndpoint, StageError
from adapters.cascade.forms import FILE_NAME
from adapters.cascade.wire import Stage
from adapters.chat_audio.sdk import RequestParts, SdkTransport
from captures.clock import Clock
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, ReportsFailures, Transport, TransportError

_MODEL_FAULT = "tool_use_failed"
"""Groq answers so, with status 400, where the model's call cannot be parsed: the model's fault, not the request's."""


class FormTransport(SdkTransport):
    """Posts forms that frames hold as JSON: `{"path", "fields", "file"}`, see `adapters.cascade.endpoint`."""

    def request_parts(self, payload: bytes) -> RequestParts:
        """The form's path, fields and file."""
        stated = orjson.loads(payload)
        file = (FILE_NAME, base64.b64decode(stated["file"]), "audio/wav")
        return RequestParts(stated["path"], fields=stated["fields"], file=file)


class CascadeTransport:
    """One transport per stage, for one attempt. Meets `transports.transport.Transport`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.on_failed: Callable[[TransportError], None] = _unheard
        """Called with a request that failed; set before the first `write`."""
        self._stages: dict[Stage, Transport] = {}
        self._on_frame: Callable[[InFrame], None] = lambda _: None
        self._on_closed: Callable[[ClosedBy], None] = lambda _: None

    async def connect(
        self,
        endpoint: Endpoint,
        on_frame: Callable[[InFrame], None],
        on_closed: Callable[[ClosedBy], None],
    ) -> None:
        """Make each stage's transport. Nothing is connected yet: HTTP opens a connection with the request."""
        assert isinstance(endpoint, CascadeEndpoint), "made by a cascade's client half"
        self._on_frame, self._on_closed = on_frame, on_closed
        for stage, route in endpoint.routes.items():
            transport = route.transport(self._clock) if route.transport else FormTransport(self._clock)
            if isinstance(transport, ReportsFailures):
                transport.on_failed = self._failure_of(stage)
            self._stages[stage] = transport
            await transport.connect(route.endpoint, self._frames_of(stage), lambda _: None)

    def write(self, frame: OutFrame) -> None:
        """Hand a stage its request."""
        opened = wire.opened(frame.payload)
        if opened is not None and opened[0] in self._stages:
            self._stages[opened[0]].write(OutFrame(opened[1]))

    def backlog_bytes(self) -> int:
        """Of all stages together."""
        return sum(transport.backlog_bytes() for transport in self._stages.values())

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close every stage's; bounded by theirs, and safe to call twice."""
        stages, self._stages = self._stages, {}
        if not stages:
            return
        for transport in stages.values():
            await transport.close(code, reason)
        self._on_closed(ClosedBy(self._clock.now_ns(), code, reason, by_peer=False))

    def _frames_of(self, stage: Stage) -> Callable[[InFrame], None]:
        return lambda frame: self._on_frame(InFrame(wire.addressed(stage, frame.payload), False, frame.t_ns))

    def _failure_of(self, stage: Stage) -> Callable[[TransportError], None]:
        def failed(error: TransportError) -> None:
            if stage is Stage.MODEL and error.status == 400 and _MODEL_FAULT in error.body:
                self._on_frame(InFrame(wire.unusable_call(error.body.encode()), False, self._clock.now_ns()))
            else:
                self.on_failed(StageError(stage, error))

        return failed


def _unheard(error: TransportError) -> None:
    raise error
