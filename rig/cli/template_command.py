"""`rig template`: templates for agents with a protocol of their own, tried on a recorded session without a network."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Final

from adapters.dialect import Setup, TargetSettings
from adapters.foreign_json import brief
from adapters.template_socket.client import TemplateClient
from adapters.template_socket.template import TemplateError, checked, read_template, ready_templates
from captures.cassette import CassetteError, read_cassette
from captures.events import (
    AnswerEnded,
    AudioDelta,
    Event,
    SessionReady,
    ToolCall,
    ToolCallStarted,
    Unrecognised,
    Warned,
)
from captures.frames import Direction, InFrame

MAX_SESSION_BYTES: Final = 64 * 1024 * 1024
_SHOWN: Final = 60
_FORMS: Final = "a message, or an object with direction (received, sent) and one of json, text, binary (base64)"


class SessionFileError(ValueError):
    """A recorded session that cannot be read; one line that names file and line."""


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    message: str
    rules: list[str]
    events: list[str]
    replies: list[str]
    understood: bool


def try_template(name: str, session: Path, *, as_json: bool) -> int:
    """Show which message of `session` becomes which event; the exit code: 1 when one is not understood.

    Raises:
        TemplateError: the template has faults.
        SessionFileError, CassetteError: the session cannot be read.
    """
    given = read_template(name, Path())
    template = checked(given, name)
    file = template.file
    values = {key: "value" for key, default in file.values.items() if default is None}
    settings: dict[str, Any] = {"template": name, "declared": given, "values": values}
    if not file.takes_setup:
        settings["tools"] = ["any"]
    client = TemplateClient(TargetSettings("any", "ws://127.0.0.1:1/", None, settings), environment={})
    client.open(Setup("", (), file.audio_in.rate_hz))
    labels = [f"{number}:{rule.event}" for number, rule in enumerate(file.events)]
    rows: list[_Row] = []
    seen: list[Event] = []
    for line, frame in _received(session):
        events, owed, rules = client.explain(frame)
        seen += events
        rows.append(
            _Row(
                line,
                f"binary, {len(frame.payload)} bytes" if frame.binary else _start(frame.payload),
                [labels[number] for number in rules],
                [_told(event) for event in events if not isinstance(event, ToolCallStarted)],
                [_start(reply.payload) for reply in owed],
                not any(_strange(event) for event in events),
            )
        )
    missing = _missing(seen, confirms=client.capabilities.confirms_setup)
    strange = sum(not row.understood for row in rows)
    if as_json:
        print(json.dumps({"format": 1, "messages": [asdict(row) for row in rows], "missing": missing}))
    else:
        _print(rows)
        for text in missing:
            print(f"note: {text}")
        print(f"{len(rows)} messages received, {strange} not understood")
    return 1 if strange else 0


def show_template(name: str | None) -> int:
    """Print a shipped template, or the names of all; the exit code. Raises TemplateError."""
    if name is None:
        print("\n".join(ready_templates()))
        return 0
    if name not in ready_templates():
        raise TemplateError(name, [f"no shipped template; there are {', '.join(ready_templates())}"])
    shipped = resources.files("adapters.template_socket").joinpath("templates", f"{name}.yaml")
    print(shipped.read_text(encoding="utf-8"), end="")
    return 0


def _received(path: Path) -> Iterator[tuple[int, InFrame]]:
    """The agent's messages with their line numbers, from JSON lines or from a cassette of a run."""
    if path.name.endswith(".jsonl.zst"):
        try:
            _, frames = read_cassette(path)
        except OSError as error:
            raise CassetteError(f"{path}: cannot be read ({error.strerror})") from None
        for number, logged in enumerate(frames, start=2):
            if logged.direction is Direction.RECEIVED:
                yield number, InFrame(logged.payload, logged.binary, logged.t_ns)
        return
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SESSION_BYTES + 1)
    except OSError as error:
        raise SessionFileError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > MAX_SESSION_BYTES:
        raise SessionFileError(f"{path}: larger than {MAX_SESSION_BYTES >> 20} MiB; cut it to one session")
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            frame = _frame(line, f"{path}, line {number}")
            if frame is not None:
                yield number, frame


def _frame(line: bytes, where: str) -> InFrame | None:
    """The message on one line; None for one that was sent."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return InFrame(line, False, 0)  # as it came, to see what the template makes of it
    if not isinstance(entry, dict) or "direction" not in entry:
        return InFrame(line, False, 0)
    if entry["direction"] == Direction.SENT:
        return None
    if entry["direction"] == Direction.RECEIVED:
        if "json" in entry:
            return InFrame(json.dumps(entry["json"]).encode(), False, 0)
        if isinstance(entry.get("text"), str):
            return InFrame(entry["text"].encode("utf-8", "surrogatepass"), False, 0)
        if isinstance(entry.get("binary"), str):
            try:
                return InFrame(base64.b64decode(entry["binary"], validate=True), True, 0)
            except ValueError:
                raise SessionFileError(f"{where}: binary is not base64") from None
    raise SessionFileError(f"{where}: each line is {_FORMS}")


def _missing(seen: Sequence[Event], *, confirms: bool) -> list[str]:
    notes = []
    if confirms and not any(isinstance(event, SessionReady) for event in seen):
        notes.append("nothing became `ready`: a call would wait for it and fail")
    if not any(isinstance(event, ToolCall) for event in seen):
        notes.append("nothing became `tool_call`: record a session with a call, too")
    if not any(isinstance(event, AnswerEnded) for event in seen):
        notes.append("nothing became `answer_ended`: a turn would end by silence or by its time limit")
    return notes


def _told(event: Event) -> str:
    if isinstance(event, AudioDelta):
        return f"AudioDelta({1000 * len(event.pcm) // 2 // event.rate_hz} ms at {event.rate_hz} Hz)"
    if isinstance(event, ToolCall) and event.arguments is None:
        return brief(f"ToolCall(name={event.name!r}, unreadable arguments {event.arguments_json!r})", 200)
    if isinstance(event, ToolCall):
        return brief(f"ToolCall(name={event.name!r}, arguments={dict(event.arguments or {})!r})", 200)
    given = {field.name: getattr(event, field.name) for field in fields(event)}
    shown = [f"{name}={str(value)!r}" for name, value in given.items() if value not in (None, "", (), {}, False)]
    return brief(f"{type(event).__name__}({', '.join(shown)})", 200)


def _strange(event: Event) -> bool:
    return isinstance(event, Unrecognised) or (isinstance(event, Warned) and event.code == "unreadable")


def _start(payload: bytes) -> str:
    return brief(payload[: 4 * _SHOWN].decode("utf-8", "backslashreplace"), _SHOWN)


def _print(rows: Sequence[_Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("line", "message", "rules", "became")
    for row in rows:
        became = [*row.events, *(f"reply {reply}" for reply in row.replies)]
        cells = [str(row.line), row.message, "\n".join(row.rules) or "none", "\n".join(became) or "–"]
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)
