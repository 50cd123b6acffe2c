"""Reads the settings that the server confirms; they are recorded and compared, never trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.foreign_json import JsonObject, bounded, list_of, object_of, text_of


def tool_names(session: JsonObject) -> list[str]:
    """Names of the confirmed functions, flat or nested, in their order."""
    tools = [object_of(tool, "function") or tool for tool in list_of(session, "tools") if isinstance(tool, dict)]
    return [name for tool in tools if (name := text_of(tool, "name")) is not None]


def missing_tools(offered: Sequence[str], session: JsonObject) -> list[str]:
    """Tools that were offered and are not confirmed; none when the server does not list tools at all."""
    if "tools" not in session:
        return []
    known = set(tool_names(session))
    return [name for name in offered if name not in known]


def stated(session: JsonObject, path: Sequence[str]) -> tuple[bool, Any]:
    """Whether a session states the setting at `path`, and its value."""
    place: Any = session
    for key in path:
        if not isinstance(place, dict) or key not in place:
            return False, None
        place = place[key]
    return True, place


def turn_detection_differs(sent: JsonObject, session: JsonObject, path: Sequence[str]) -> bool:
    """True when the confirmed turn detection is of another kind than the one sent; False when it is not stated."""
    is_stated, detection = stated(session, path)
    return is_stated and _kind(detection) != _kind(stated(sent, path)[1])


def _kind(detection: Any) -> str | None:
    return text_of(detection, "type") if isinstance(detection, dict) else None


def echoed_settings(session: JsonObject, places: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The effective settings under short names; instructions and schemas are left out, for we know what we sent."""
    found = {name: stated(session, path) for name, path in places.items()}
    echoed = {name: bounded(value) for name, (is_stated, value) in found.items() if is_stated}
    if "tools" in session:
        echoed["tools"] = bounded(tool_names(session))
    return echoed
