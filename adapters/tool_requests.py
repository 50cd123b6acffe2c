"""What was seen of an agent's tool calls beside its connection, as events: requests to a webhook, lines of a log.

Pure. Which part of a request holds the call's name and arguments is said by JMESPath expressions of the config.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Protocol, runtime_checkable

import orjson
from jmespath.parser import ParsedResult
from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError
from adapters.foreign_json import JsonObject, brief, decode, read_arguments, too_deep
from adapters.target_settings import StrictSettings, read_settings
from adapters.template_socket.expressions import MAX_EXPRESSION, ExpressionError, expression, search
from captures.events import Event, ToolCall, ToolCallStarted, TranscriptDelta, Unrecognised, Warned
from captures.frames import InFrame
from transports.transport import is_loopback

EVENT: Final = "rig.tool_request"
"""The `event` of a frame that holds a request; no agent sends it, since the rig itself puts such frames in."""
MAX_CALLS: Final = 128
"""Of one session; more are left out, and said."""
_RAW_CALL_BYTES: Final = 10_000

_CALL_KEYS: Final = ("call_sid", "callSid", "CallSid")
_CALL_HEADERS: Final = ("x-call-sid", "x-twilio-callsid")
_NAME_KEYS: Final = ("name", "tool", "tool_name")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "input")
_ID_KEYS: Final = ("tool_call_id", "call_id", "id")

Expression = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EXPRESSION)]
Listen = Annotated[str, StringConstraints(pattern=r"^(\[[0-9a-fA-F:]+\]|[0-9A-Za-z.-]+):\d{1,5}$")]
EnvText = Annotated[str, StringConstraints(min_length=8, max_length=4096, pattern=r"^[\x21-\x7e]+$")]


class WebhookSettings(StrictSettings):
    """`tool_calls.webhook`: the rig listens, and the agent's tool endpoint points at it."""

    listen: Listen = "127.0.0.1:8790"
    path: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/-]*$", max_length=200)] = "/tools"
    """Requests to it and to anything below it are calls."""
    token: EnvText | None = Field(default=None, repr=False)
    """Write it as `${NAME}`. Requests must then carry it, as `Authorization: Bearer` or `X-Rig-Token`."""
    call_id: Expression | None = None
    """Where a request says which call (Twilio's call SID) it belongs to."""
    name: Expression | None = None
    arguments: Expression | None = None
    results: dict[str, Any] = Field(default_factory=dict)
    """Tool name, or `*` for all others → JSON that answers the request. Default: `{"status": "ok"}`."""


class LogSettings(StrictSettings):
    """`tool_calls.log`: a file of JSON lines that the agent writes; lines from the start of the run on.

    Its expressions are about a line, those of the webhook about `method`, `path`, `query`, `headers` and `body`.
    """

    path: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    name: Expression
    """A line where it gives a string is a call."""
    call_id: Expression | None = None
    arguments: Expression | None = None
    transcript: Expression | None = None
    """A line where it gives a string holds words of the agent."""


class ToolCallSettings(StrictSettings):
    """`settings.tool_calls` of a target: exactly one of these."""

    webhook: WebhookSettings | None = None
    log: LogSettings | None = None
    none: Literal[True] | None = None
    """The agent's calls cannot be seen: actions are not applicable."""


@runtime_checkable
class SeesToolsElsewhere(Protocol):
    """A dialect whose agents' tool calls do not come over their connection: a target says where, as `tool_calls`."""

    sees_tools_elsewhere: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """A request's parts; None where it has none."""

    name: str | None
    arguments: Any
    tool_call_id: str | None
    transcript: str | None


class ToolRequests:
    """Reads the requests of one session. Only `events` has a memory."""

    def __init__(self, given: Any) -> None:
        """`given` is a target's `settings.tool_calls`.

        Raises:
            SettingsError: not exactly one of webhook, log and none; unknown keys; an expression that is none; an
                address that others can reach, without a token.
        """
        if not isinstance(given, Mapping):
            raise SettingsError("settings.tool_calls: must be a mapping with one of webhook, log and none")
        settings = read_settings(ToolCallSettings, given, "settings.tool_calls")
        chosen = [name for name in ToolCallSettings.model_fields if getattr(settings, name) is not None]
        if len(chosen) != 1:
            told = " and ".join(chosen) or "nothing"
            raise SettingsError(f"settings.tool_calls: give exactly one of webhook, log and none (there is {told})")
        self.webhook = settings.webhook
        self.log = settings.log
        self._call_id: ParsedResult | None = None
        self._name: ParsedResult | None = None
        self._arguments: ParsedResult | None = None
        self._transcript: ParsedResult | None = None
        source = settings.webhook or settings.log
        if source is not None:
            self._call_id = _compiled(source.call_id, f"{chosen[0]}.call_id")
            self._name = _compiled(source.name, f"{chosen[0]}.name")
            self._arguments = _compiled(source.arguments, f"{chosen[0]}.arguments")
        if settings.log is not None:
            self._transcript = _compiled(settings.log.transcript, "log.transcript")
        if settings.webhook is not None:
            _check_address(settings.webhook)
        self._given: set[str] = set()
        self._calls = 0

    @property
    def sees(self) -> bool:
        """True when calls can be seen at all."""
        return self.webhook is not None or self.log is not None

    def call_id_of(self, request: Mapping[str, Any]) -> str | None:
        """The call that a request says it belongs to; None when it says nothing."""
        if self._call_id is not None:
            return _text(search(self._call_id, self._subject(request)))
        for part, keys in (("body", _CALL_KEYS), ("query", _CALL_KEYS), ("headers", _CALL_HEADERS)):
            fields = request.get(part)
            found = _text(_first(fields, keys)) if isinstance(fields, Mapping) else None
            if found is not None:
                return found
        return None

    def name_of(self, request: Mapping[str, Any]) -> str | None:
        """The tool that a request calls."""
        return self._find(request).name

    def concerns(self, request: Mapping[str, Any]) -> bool:
        """False for a line of a log that holds neither a call nor words: it is nobody's."""
        found = self._find(request)
        return self.webhook is not None or found.name is not None or found.transcript is not None

    def result_of(self, name: str | None) -> Any:
        """What answers a call of this tool."""
        results = self.webhook.results if self.webhook is not None else {}
        return results.get(name or "*", results.get("*", {"status": "ok"}))

    def events(self, frame: InFrame) -> list[Event] | None:
        """Events of a frame that holds a request; None for any other frame. Never raises."""
        fields = None if frame.binary or EVENT.encode() not in frame.payload else decode(frame.payload)
        if fields is None or fields.get("event") != EVENT:
            return None
        request = fields.get("request")
        if not isinstance(request, Mapping) or too_deep(request):
            return [Unrecognised("a tool request without content")]
        found = self._find(request)
        if found.name is None and found.transcript is not None:
            return [TranscriptDelta(found.transcript)]
        if found.tool_call_id is not None and found.tool_call_id in self._given:
            return [Warned("repeated_call", brief(f"call {found.tool_call_id} came again; only the first counts"))]
        if self._calls >= MAX_CALLS:
            return [Warned("too_many_calls", f"more than {MAX_CALLS} calls came; the others are left out")]
        return self._call(found)

    def _call(self, found: _Found) -> list[Event]:
        index = self._calls
        self._calls += 1
        call_id = found.tool_call_id or f"request-{index}"
        self._given.add(call_id)
        raw, arguments = _arguments(found.arguments)
        return [
            ToolCallStarted(call_id, found.name, index),
            ToolCall(call_id, found.name, raw[:_RAW_CALL_BYTES] if arguments is None else raw, arguments, index),
        ]

    def _subject(self, request: Mapping[str, Any]) -> Any:
        """What the expressions are about: the whole request, or the line of a log itself."""
        return request if self.log is None else request.get("body")

    def _find(self, request: Mapping[str, Any]) -> _Found:
        body = request.get("body")
        fields: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        inner = fields.get("function")
        function: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        subject = self._subject(request)
        transcript = None if self._transcript is None else search(self._transcript, subject)
        tool_call_id = _first(fields, _ID_KEYS)
        if self._name is not None:
            name, from_path = _text(search(self._name, subject)), False
        else:
            name = _text(_first(fields, _NAME_KEYS)) or _text(function.get("name"))
            from_path = name is None
            name = name or _text(request.get("below"))
        if self._arguments is not None:
            arguments = search(self._arguments, subject)
        else:
            arguments = _first(fields, _ARGUMENT_KEYS)
            arguments = function.get("arguments") if arguments is None else arguments
            if arguments is None and from_path:
                # The address names the tool, so the body is its arguments, but for what says whose call it is.
                told = self._call_id is None
                arguments = {k: v for k, v in fields.items() if not (told and k in _CALL_KEYS)} if fields else body
        return _Found(
            name,
            arguments,
            _text(tool_call_id) if not from_path else None,
            transcript if isinstance(transcript, str) else None,
        )


def frame_of(source: Literal["webhook", "log"], request: Mapping[str, Any], answer: Any, t_ns: int) -> InFrame:
    """A request as the frame that a session receives; `t_ns` is when it had come whole."""
    fields: JsonObject = {"event": EVENT, "source": source, "request": request, "answer": answer}
    return InFrame(orjson.dumps(fields), False, t_ns)


def host_and_port(listen: str) -> tuple[str, int]:
    """The parts of `host:port`; an IPv6 address without its brackets."""
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


def _arguments(stated: Any) -> tuple[str, JsonObject | None]:
    """Arguments as JSON text and, where they can be read, as an object."""
    if isinstance(stated, str):
        return stated, read_arguments(stated)
    raw = "" if stated is None else orjson.dumps(stated).decode()
    return raw, read_arguments(raw)


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value[:500] if isinstance(value, str) and value else None


def _compiled(text: str | None, key: str) -> ParsedResult | None:
    try:
        return None if text is None else expression(text)
    except ExpressionError as error:
        raise SettingsError(f"settings.tool_calls.{key}: {error}; see https://jmespath.org") from None


def _check_address(webhook: WebhookSettings) -> None:
    host, port = host_and_port(webhook.listen)
    if port > 65535:
        raise SettingsError("settings.tool_calls.webhook.listen: a port is at most 65535")
    if not is_loopback(host) and webhook.token is None:
        raise SettingsError(
            f"settings.tool_calls.webhook.listen: others can reach {webhook.listen}; "
            "add token: ${NAME} of an environment variable, or listen on 127.0.0.1"
        )
