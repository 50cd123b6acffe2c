"""The template file: how to read one, and what may be wrong with it, one line per fault with its place.

Not here: what is done with its expressions (`expressions`), and what messages mean by it (`reading`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.template_socket.expressions import ExpressionError, Rendered, compiled, expression
from captures.scrub import is_secret

MAX_TEMPLATE_BYTES: Final = 256 * 1024
_SHOWN: Final = 20
_MAX_NODES: Final = 20_000
_ENV_NAME: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
Expression = Annotated[str, Field(min_length=1)]

EventKind = Literal[
    "ready",
    "audio",
    "text",
    "transcript",
    "heard",
    "tool_call",
    "speech_started",
    "speech_stopped",
    "turn_committed",
    "answer_started",
    "answer_ended",
    "interrupted",
    "usage",
    "error",
    "ignore",
]
FIELDS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "ready": ((), ("session_id", "echo", "input_format", "output_format")),
    "audio": (("audio",), ()),
    "text": (("text",), ()),
    "transcript": (("text",), ()),
    "heard": (("text",), ("final",)),
    "tool_call": (("name",), ("call_id", "arguments")),
    "speech_started": ((), ("audio_ms",)),
    "speech_stopped": ((), ("audio_ms",)),
    "turn_committed": ((), ()),
    "answer_started": ((), ()),
    "answer_ended": ((), ("reason",)),
    "interrupted": ((), ()),
    "usage": (("counts",), ()),
    "error": (("kind",), ("code", "message")),
    "ignore": ((), ()),
}
"""Fields of each event: those it needs, and those it may have."""
_ALL_FIELDS: Final = sorted({name for needed, more in FIELDS.values() for name in (*needed, *more)})


class TemplateError(ValueError):
    """A template that cannot be used; one line per fault."""

    def __init__(self, where: str, problems: list[str]) -> None:
        more = len(problems) - _SHOWN
        self.problems = [f"{where}: {problem}" for problem in problems[:_SHOWN]]
        if more > 0:
            self.problems.append(f"{where}: and {more} more")
        super().__init__("\n".join(self.problems))


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AudioIn(_Part):
    """The caller's audio on the wire."""

    rate_hz: Literal[8000, 16000, 24000, 48000]
    encoding: Literal["pcm16", "mulaw"] = "pcm16"
    message: dict[str, Any] | None = None
    """JSON with `{{ audio }}`, the base64; without it, audio is binary."""


class AudioOut(_Part):
    """The agent's speech on the wire."""

    rate_hz: Annotated[int, Field(ge=8000, le=48000)]
    encoding: Literal["pcm16", "mulaw"] = "pcm16"
    binary: bool = False
    """True where binary messages are speech; otherwise an event `audio` says where its base64 stands."""


class Send(_Part):
    """Messages of the rig, each a list of JSON objects."""

    open: list[dict[str, Any]] = []
    start: list[dict[str, Any]] = []
    commit: list[dict[str, Any]] = []
    text: list[dict[str, Any]] = []
    tool_result: list[dict[str, Any]] = []
    cancel: list[dict[str, Any]] = []
    truncate: list[dict[str, Any]] = []
    close: list[dict[str, Any]] = []


class Turn(_Part):
    """How turns go."""

    detected: bool = False
    """True where the agent itself hears that the caller has finished (turn control server_vad)."""
    continuous_audio: bool = False
    ends_by_silence_s: Annotated[float, Field(ge=0.3, le=10, strict=False)] | None = None
    waits_for_tool_result: bool = False
    late_call_grace_s: Annotated[float, Field(ge=0, le=10, strict=False)] = 0.0


class Rule(_Part):
    """One way in which a message becomes an event."""

    when: Expression
    event: EventKind
    each: Expression | None = None
    """A list in the message: one event for each of its members, to which the fields then belong."""
    reply: list[dict[str, Any]] = []
    """Sent at once; `{{ message… }}` is the message."""
    session_id: Expression | None = None
    echo: Expression | None = None
    input_format: Expression | None = None
    output_format: Expression | None = None
    audio: Expression | None = None
    text: Expression | None = None
    final: Expression | None = None
    name: Expression | None = None
    call_id: Expression | None = None
    arguments: Expression | None = None
    audio_ms: Expression | None = None
    reason: Expression | None = None
    counts: Expression | None = None
    kind: Literal["configuration", "transient", "rate_limit", "quota", "protocol", "warning"] | None = None
    code: Expression | None = None
    message: Expression | None = None


class SessionStep(_Part):
    """A request over HTTP that makes each session, in use where its headers are complete (a key was given)."""

    method: Literal["GET", "POST"] = "POST"
    url: str
    headers: dict[str, str] = {}
    body: dict[str, Any] | None = None
    address: Expression
    """Where the socket's address stands in the answer."""
    takes_setup: bool = False
    """True where the body carries instructions and tools; the template's own `takes_setup` is for other sessions."""


class TemplateFile(_Part):
    """The file as written."""

    version: Literal[1]
    name: Annotated[str, Field(min_length=1, max_length=100)]
    url: str | None = None
    headers: dict[str, str] = {}
    secrets: list[Annotated[str, Field(pattern=_ENV_NAME)]] = []
    """Names of environment variables that `${NAME}` may stand for; no other is ever read."""
    values: dict[Annotated[str, Field(pattern=_ENV_NAME)], Any] = {}
    """Names for `{{ values.NAME }}` with their defaults; null where the config must give one."""
    session: SessionStep | None = None
    takes_setup: bool = True
    framing: Literal["json", "pipecat"] = "json"
    audio_in: AudioIn
    audio_out: AudioOut
    send: Send = Send()
    turn: Turn = Turn()
    events: Annotated[list[Rule], Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class Template:
    """A template that was checked, ready for use."""

    file: TemplateFile
    url: Rendered | None
    headers: Mapping[str, Rendered]
    session: Mapping[str, Rendered]
    """Of the request that makes a session: `url`, `body`, and headers as `headers.NAME`; empty for none."""
    audio: Rendered | None
    """The message around a piece of the caller's audio; None where it is binary."""
    send: Mapping[str, tuple[Rendered, ...]]
    replies: tuple[tuple[Rendered, ...], ...]
    """By rule."""


def ready_templates() -> list[str]:
    """Names of the templates that are shipped."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _shipped().iterdir() if entry.name.endswith(".yaml"))


def read_template(name: str, folder: Path) -> dict[str, Any]:
    """The content of a template: a shipped one by its name, or a YAML file relative to `folder`. Not checked yet.

    Raises:
        TemplateError: there is none, or it is no YAML mapping.
    """
    path = folder / name
    if name in ready_templates():
        path = Path(str(_shipped().joinpath(f"{name}.yaml")))
    elif not name.endswith((".yaml", ".yml")):
        known = ", ".join(ready_templates())
        raise TemplateError(name, [f"no such template; give a .yaml file or one of {known}"])
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TEMPLATE_BYTES + 1)
        if len(data) > MAX_TEMPLATE_BYTES:
            raise TemplateError(name, [f"larger than {MAX_TEMPLATE_BYTES >> 10} KiB; is this the template?"])
        loaded = yaml.safe_load(data)
    except OSError as error:
        raise TemplateError(name, [f"cannot be read ({error.strerror}); is the path relative to the config?"]) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, TemplateError):
            raise
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())[:200]
        raise TemplateError(name, [f"{line}not YAML ({problem})"]) from None
    if not isinstance(loaded, dict):
        raise TemplateError(name, ["must be a mapping with version, name, audio_in, audio_out and events"])
    return loaded


def checked(given: Mapping[str, Any], where: str) -> Template:
    """The template in `given`.

    Raises:
        TemplateError: names every fault.
    """
    problems: list[str] = []
    _check_plain(given, problems.append)
    if problems:
        raise TemplateError(where, problems)
    try:
        file = TemplateFile.model_validate(dict(given))
    except ValidationError as error:
        raise TemplateError(where, _lines(error)) from None
    template = _compile(file, problems.append)
    _check_whole(file, problems.append)
    for number, rule in enumerate(file.events):
        _check_rule(rule, f"events[{number}] ({rule.event})", problems.append)
    if problems:
        raise TemplateError(where, problems)
    return template


def _shipped() -> Any:
    return files("adapters.template_socket").joinpath("templates")


def _check_plain(given: object, complain: Callable[[str], None]) -> None:
    """Aliases can make a small file endless, and YAML dates are no JSON: both are refused."""
    waiting: list[tuple[object, str]] = [(given, "")]
    for seen in range(_MAX_NODES + 1):
        if not waiting:
            return
        value, place = waiting.pop()
        if seen == _MAX_NODES:
            complain(f"holds more than {_MAX_NODES:,} values (aliases count each time); make it smaller")
        elif isinstance(value, dict):
            for key, inner in value.items():
                if not isinstance(key, str):
                    complain(f"{place or 'template'}: key {key!r} is not text; quote it")
                waiting.append((inner, f"{place}.{key}".lstrip(".")))
        elif isinstance(value, list):
            waiting += [(inner, f"{place}[{n}]") for n, inner in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            complain(f"{place}: {value} is no number that JSON has")
        elif value is not None and not isinstance(value, str | int | float | bool):
            complain(f"{place}: is read as a {type(value).__name__}; quote it")


def _lines(error: ValidationError) -> list[str]:
    lines = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).lstrip(".")
        problem = detail["msg"].removeprefix("Input ")
        if detail["type"] == "extra_forbidden":
            problem = "unknown key; remove it, or see docs/bring-your-own-agent.md for the keys there are"
        elif detail["type"] == "missing":
            problem = "is missing; add it"
        lines.append(f"{place}: {problem}")
    return lines


_SETUP_NAMES: Final = frozenset({"values", "api_key", "instructions", "tools", "input_rate_hz"})
_MORE_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"text"}),
    "tool_result": frozenset({"call_id", "output", "name", "arguments"}),
    "truncate": frozenset({"audio_ms"}),
}


def _compile(file: TemplateFile, complain: Callable[[str], None]) -> Template:
    secrets = frozenset(file.secrets)
    static = frozenset({"values", "api_key"})
    sends = {name: getattr(file.send, name) for name in Send.model_fields}
    return Template(
        file=file,
        url=None if file.url is None else compiled(file.url, "url", static, secrets, complain),
        headers={
            name: compiled(value, f"headers.{name}", static, secrets, complain) for name, value in file.headers.items()
        },
        session=_session_parts(file.session, static, secrets, complain),
        audio=None
        if file.audio_in.message is None
        else compiled(
            file.audio_in.message, "audio_in.message", frozenset({"audio", "values", "input_rate_hz"}), (), complain
        ),
        send={
            name: tuple(
                compiled(one, f"send.{name}[{n}]", _SETUP_NAMES | _MORE_NAMES.get(name, frozenset()), secrets, complain)
                for n, one in enumerate(messages)
            )
            for name, messages in sends.items()
        },
        replies=tuple(
            tuple(
                compiled(one, f"events[{number}].reply[{n}]", _SETUP_NAMES | {"message"}, secrets, complain)
                for n, one in enumerate(rule.reply)
            )
            for number, rule in enumerate(file.events)
        ),
    )


def _session_parts(
    step: SessionStep | None, static: frozenset[str], secrets: frozenset[str], complain: Callable[[str], None]
) -> dict[str, Rendered]:
    if step is None:
        return {}
    try:
        expression(step.address)
    except ExpressionError as error:
        complain(f"session.address: {error}; see https://jmespath.org")
    parts = {"url": step.url} | {f"headers.{name}": value for name, value in step.headers.items()}
    made = {name: compiled(value, f"session.{name}", static, secrets, complain) for name, value in parts.items()}
    if step.body is not None:
        made["body"] = compiled(step.body, "session.body", _SETUP_NAMES, secrets, complain)
    return made


def _check_whole(file: TemplateFile, complain: Callable[[str], None]) -> None:
    if not file.send.commit and not file.turn.detected:
        complain("send.commit: needed, unless the agent hears the end of a turn itself (turn.detected: true)")
    if file.turn.continuous_audio and not file.turn.detected:
        complain("turn.continuous_audio: only where the agent detects turns itself; add turn.detected: true")
    session_headers = file.session.headers if file.session is not None else {}
    for name, value in {**session_headers, **file.headers}.items():
        if "{{" not in value and "${" not in value and is_secret(name, value):
            complain(f"headers.{name}: looks like a secret, and a template is stored; write ${{NAME}} and list NAME")
    kinds = {rule.event for rule in file.events}
    if "answer_ended" not in kinds and file.turn.ends_by_silence_s is None and not file.turn.waits_for_tool_result:
        complain("events: nothing ends an answer; add an event answer_ended, or turn.ends_by_silence_s")
    if "tool_call" not in kinds:
        complain("events: no event tool_call; an agent without calls cannot be scored")
    if file.audio_out.binary and file.framing == "pipecat":
        complain("audio_out.binary: not with framing pipecat, which carries speech itself; remove it")
    if not file.audio_out.binary and file.framing == "json" and "audio" not in kinds:
        complain("audio_out: speech comes nowhere; add binary: true, or an event audio")
    if file.audio_in.message is not None and file.framing == "pipecat":
        complain("audio_in.message: not with framing pipecat, which wraps audio itself; remove it")
    if file.audio_in.message is not None and "{{ audio }}" not in str(file.audio_in.message).replace(
        "{{audio}}", "{{ audio }}"
    ):
        complain('audio_in.message: has no "{{ audio }}"; put it where the base64 belongs')
    if file.framing == "pipecat" and "mulaw" in (file.audio_in.encoding, file.audio_out.encoding):
        complain("audio_in, audio_out: framing pipecat carries pcm16; change encoding")
    if file.audio_in.encoding == "mulaw" and file.audio_in.rate_hz != 8000:
        complain("audio_in.rate_hz: mulaw is 8000 Hz; change it")


def _check_rule(rule: Rule, place: str, complain: Callable[[str], None]) -> None:
    needed, more = FIELDS[rule.event]
    for name in _ALL_FIELDS:
        given = getattr(rule, name) is not None
        if given and name not in needed and name not in more:
            complain(f"{place}: has no field {name}; it has {', '.join((*needed, *more)) or 'none'}")
        elif not given and name in needed:
            complain(f"{place}: {name} is missing; add the expression that finds it")
    for name in ("when", "each", *(name for name in _ALL_FIELDS if name != "kind")):
        text = getattr(rule, name)
        if text is not None:
            try:
                expression(text)
            except ExpressionError as error:
                complain(f"{place}.{name}: {error}; see https://jmespath.org")
