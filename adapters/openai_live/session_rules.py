"""What the server half accepts as a session. The vendor refuses unknown fields; so does this, to name a client's slip.

Facts: `openai.types.live.session_config`. History, triggers and decisions are known to the vendor and not emulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject, brief, list_of, object_of, text_of
from adapters.openai_live.wire import RATES_HZ

MAX_TOOLS: Final = 256
_SESSION: Final = frozenset(
    {"model", "instructions", "audio", "delegation", "input", "store", "safety_identifier", "triggers", "client"}
)
_DELEGATION: Final = frozenset({"type", "responses", "acknowledgement_delay_ms"})
_BACKEND: Final = frozenset(
    {
        "model",
        "instructions",
        "tools",
        "tool_choice",
        "reasoning",
        "max_output_tokens",
        "parallel_tool_calls",
        "service_tier",
        "text",
    }
)
_TOOL: Final = frozenset({"type", "name", "description", "parameters", "strict"})


@dataclass(frozen=True, slots=True)
class Complaint:
    """What the server refuses, as its `error` event says it."""

    code: str
    message: str
    where: str = ""


def checked_session(event: JsonObject) -> JsonObject | Complaint:
    """The session of `session.start`, with defaults filled in."""
    session = object_of(event, "session")
    backend = object_of(object_of(session, "delegation"), "responses")
    places = [
        ("session", session, _SESSION),
        ("session.audio", object_of(session, "audio"), frozenset({"format", "output"})),
        ("session.delegation", object_of(session, "delegation"), _DELEGATION),
        ("session.delegation.responses", backend, _BACKEND),
        *(
            (f"session.delegation.responses.tools[{place}]", tool, _TOOL)
            for place, tool in enumerate(list_of(backend, "tools")[:MAX_TOOLS])
            if isinstance(tool, dict)
        ),
    ]
    for where, given, known in places:
        if unknown := [key for key in given if key not in known]:
            place = f"{where}.{brief(unknown[0], 80)}"
            return Complaint("unknown_parameter", f"Unknown parameter: '{place}'.", place)
    for where, given, key in (("session", session, "model"), ("session.delegation.responses", backend, "model")):
        if not text_of(given, key) and (given or where == "session"):
            return Complaint("missing_required_parameter", f"Missing required parameter: '{where}.{key}'.", where)
    kind = text_of(object_of(session, "delegation"), "type")
    if session.get("delegation") is not None and kind not in ("responses", "client"):
        return Complaint("not_emulated", "This emulator knows delegation to responses and to the client.", "session")
    audio = object_of(session, "audio")
    form = object_of(audio, "format") or {"type": "audio/pcm", "rate": RATES_HZ[0]}
    if form.get("type") != "audio/pcm" or form.get("rate") not in RATES_HZ:
        message = "This emulator speaks audio/pcm at 24000 or 16000 Hz."
        return Complaint("not_emulated", message, "session.audio.format")
    if any(text_of(tool, "name") is None for tool in list_of(backend, "tools") if isinstance(tool, dict)):
        return Complaint("missing_required_parameter", "A tool needs a name.", "session.delegation.responses.tools")
    filled = {"format": form, "output": object_of(audio, "output") or {"voice": "marin"}}
    return {**session, "audio": filled}


def setup_of(session: JsonObject) -> Setup:
    """What an agent is told: the session's words, and the tools of its backend."""
    backend = object_of(object_of(session, "delegation"), "responses")
    tools = tuple(
        ToolSpec(str(tool["name"]), text_of(tool, "description") or "", object_of(tool, "parameters"))
        for tool in list_of(backend, "tools")[:MAX_TOOLS]
        if isinstance(tool, dict) and tool.get("type") == "function"
    )
    instructions = text_of(session, "instructions") or text_of(backend, "instructions") or ""
    rate_hz: int = session["audio"]["format"]["rate"]
    return Setup(instructions, tools, rate_hz, TurnControlSettings(TurnMode.SERVER_VAD))
