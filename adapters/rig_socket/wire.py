"""The wire of the rig socket, version 1: names, codec, and the messages of both sides.

The contract for agents is docs/bring-your-own-agent.md. Control messages are text frames, one JSON object each, named
by `type`; audio is binary, PCM16 little-endian mono. `schema.json` holds every message as JSON Schema. Not here: what
a message means (see `client` and `server`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject, int_of, list_of, object_of, text_of
from captures.frames import OutFrame

VERSION: Final = 1
VERSIONS: Final = (1,)
"""Every version that the rig speaks, the preferred one first."""
SCHEMA_PATH: Final = Path(__file__).with_name("schema.json")
"""Every message of both sides, by its type under `$defs` (JSON Schema 2020-12)."""
INPUT_RATES_HZ: Final = (24_000, 8_000, 16_000, 48_000)
"""Caller audio; preferred rate first."""
OUTPUT_RATE_HZ: Final = 24_000
"""Speech of the agent, unless its `session.ready` states another."""
OUTPUT_RATE_BOUNDS_HZ: Final = (8_000, 48_000)
TURN_MODES: Final = frozenset({TurnMode.MANUAL, TurnMode.SERVER_VAD})
CLOSE_REFUSED: Final = 4400
"""Close code after an `error` of kind `configuration`."""


class FromRig(StrEnum):
    """Control messages of the rig."""

    SETUP = "session.setup"
    TURN_START = "turn.start"
    TURN_COMMIT = "turn.commit"
    TURN_TEXT = "turn.text"
    TURN_CANCEL = "turn.cancel"
    TOOL_RESULT = "tool.result"
    TRUNCATE = "reply.truncate"
    CLOSE = "session.close"


class FromAgent(StrEnum):
    """Control messages of the agent."""

    READY = "session.ready"
    ERROR = "error"
    SPEECH_STARTED = "speech.started"
    SPEECH_STOPPED = "speech.stopped"
    INPUT_TRANSCRIPT = "input.transcript"
    TOOL_CALL = "tool.call"
    TEXT = "reply.text"
    TRANSCRIPT = "reply.transcript"
    INTERRUPTED = "interrupted"
    USAGE = "usage"
    TURN_END = "turn.end"


class ErrorKind(StrEnum):
    """`kind` of an `error`."""

    CONFIGURATION = "configuration"
    TRANSIENT = "transient"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    PROTOCOL = "protocol"
    WARNING = "warning"


def control(message: FromRig | FromAgent, /, **fields: Any) -> OutFrame:
    """A control message; fields that are None are left out."""
    return OutFrame(orjson.dumps({"type": message.value} | {k: v for k, v in fields.items() if v is not None}))


def setup_fields(setup: Setup) -> JsonObject:
    """The fields of a `session.setup` without its type."""
    return {
        "version": VERSION,
        "versions": list(VERSIONS),
        "instructions": setup.instructions,
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in setup.tools
        ],
        "audio": {"encoding": "pcm16", "input_rate_hz": setup.input_rate_hz, "output_rate_hz": OUTPUT_RATE_HZ},
        "turn_control": {"mode": setup.turn_control.mode.value, "parameters": dict(setup.turn_control.parameters)},
    }


def setup_message(setup: Setup) -> OutFrame:
    """`session.setup`."""
    return control(FromRig.SETUP, **setup_fields(setup))


@functools.cache
def fields_of(kind: str) -> frozenset[str]:
    """The fields of a message of either side, by `schema.json`; raises KeyError for an unknown type."""
    schema = orjson.loads(SCHEMA_PATH.read_bytes())
    return frozenset(schema["$defs"][kind]["properties"])


class SetupError(ValueError):
    """A `session.setup` that cannot be served."""

    def __init__(self, code: str, text: str, where: str) -> None:
        super().__init__(text)
        self.code = code
        self.where = where


def read_setup(fields: JsonObject) -> Setup:
    """The setup in a `session.setup`.

    Raises:
        SetupError: another version, or a field that is missing or wrong.
    """
    version = int_of(fields, "version")
    if version != VERSION and VERSION not in list_of(fields, "versions"):
        raise SetupError(
            "version_mismatch", f"this agent speaks rig socket version {VERSION}, the client {version}", "version"
        )
    instructions = text_of(fields, "instructions")
    if instructions is None:
        raise SetupError("bad_setup", "instructions must be a string", "instructions")
    audio = object_of(fields, "audio")
    rate_hz = int_of(audio, "input_rate_hz")
    if audio.get("encoding") != "pcm16" or rate_hz not in INPUT_RATES_HZ:
        raise SetupError("bad_setup", f"audio must be pcm16 at one of {sorted(INPUT_RATES_HZ)} Hz", "audio")
    tools = tuple(_read_tool(tool, index) for index, tool in enumerate(list_of(fields, "tools")))
    turn = object_of(fields, "turn_control")
    mode = text_of(turn, "mode") or TurnMode.MANUAL.value
    if mode not in TURN_MODES:
        raise SetupError("bad_setup", f"mode must be one of {sorted(TURN_MODES)}", "turn_control.mode")
    return Setup(instructions, tools, rate_hz, TurnControlSettings(TurnMode(mode), object_of(turn, "parameters")))


def _read_tool(tool: object, index: int) -> ToolSpec:
    fields: Mapping[str, Any] = tool if isinstance(tool, dict) else {}
    name, parameters = text_of(fields, "name"), fields.get("parameters")
    if not name:
        raise SetupError("bad_setup", "a tool needs a name", f"tools[{index}].name")
    if not isinstance(parameters, dict):
        raise SetupError("bad_setup", "parameters must be a JSON Schema object", f"tools[{index}].parameters")
    return ToolSpec(name, text_of(fields, "description") or "", parameters)
