"""Reads the settings that the server confirms; they are recorded and compared, never trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from adapters.dialect import TurnMode
from adapters.openai_realtime.wire import JsonObject, brief, depth_of, list_of, object_of, text_of

_LONGEST: Final = 2_000
"""Bytes of one echoed value, as JSON."""
_DEEPEST: Final = 8


def bounded(value: Any) -> Any:
    """Foreign JSON data, replaced by a short text when it is large or deep."""
    if depth_of(value, _DEEPEST) > _DEEPEST:
        return "nested too deeply"
    encoded = orjson.dumps(value)
    return value if len(encoded) <= _LONGEST else brief(encoded.decode(), 200)


def tool_names(session: JsonObject) -> list[str]:
    """Names of the confirmed tools, in their order."""
    tools = [tool for tool in list_of(session, "tools") if isinstance(tool, dict)]
    return [name for tool in tools if (name := text_of(tool, "name")) is not None]


def missing_tools(offered: Sequence[str], session: JsonObject) -> list[str]:
    """Tools that were offered and are not confirmed; none when the server does not list tools at all."""
    if "tools" not in session:
        return []
    known = set(tool_names(session))
    return [name for name in offered if name not in known]


def turn_detection_differs(mode: TurnMode, session: JsonObject) -> bool:
    """True when the confirmed turn detection is not of the mode asked for; False when it is not stated."""
    caller = object_of(object_of(session, "audio"), "input")
    if "turn_detection" not in caller:
        return False
    stated = text_of(object_of(caller, "turn_detection"), "type")
    return stated != (None if mode is TurnMode.MANUAL else mode.value)


def echoed_settings(session: JsonObject) -> dict[str, Any]:
    """The effective settings under short names; instructions and schemas are left out, for we know what we sent."""
    caller = object_of(object_of(session, "audio"), "input")
    agent = object_of(object_of(session, "audio"), "output")
    places: dict[str, tuple[JsonObject, str]] = {
        "model": (session, "model"),
        "output_modalities": (session, "output_modalities"),
        "tool_choice": (session, "tool_choice"),
        "max_output_tokens": (session, "max_output_tokens"),
        "reasoning": (session, "reasoning"),
        "truncation": (session, "truncation"),
        "turn_detection": (caller, "turn_detection"),
        "input_format": (caller, "format"),
        "transcription": (caller, "transcription"),
        "noise_reduction": (caller, "noise_reduction"),
        "output_format": (agent, "format"),
        "voice": (agent, "voice"),
        "speed": (agent, "speed"),
    }
    echoed = {name: bounded(place[key]) for name, (place, key) in places.items() if key in place}
    if "tools" in session:
        echoed["tools"] = bounded(tool_names(session))
    return echoed
