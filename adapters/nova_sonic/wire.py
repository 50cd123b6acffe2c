"""The wire of Amazon Nova Sonic: JSON events `{"event": {NAME: {…}}}`, both ways, one in each chunk of the stream.

Facts: docs.aws.amazon.com/nova/latest/nova2-userguide (sonic pages). A frame here is that JSON; signing and the binary
event stream around it are the SDK's (`sdk`). Faults, which the stream carries beside the events, are given as frames
`{"exception": {"type": NAME, "message": TEXT}}`.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

import orjson

from adapters.dialect import ToolSpec
from adapters.foreign_json import JsonObject, decode
from captures.frames import OutFrame

INPUT_RATE_HZ: Final = 16_000
PROMPT: Final = "rig"
"""Name of the one prompt of a session; names need only differ within it, so that clips can be encoded beforehand."""
CALLER: Final = "caller"
"""Name of the caller's audio content, open from set-up to close."""
TEXT_TYPE: Final[Mapping[str, str]] = {"mediaType": "text/plain"}
_AUDIO_HEAD: Final = (
    b'{"event":{"audioInput":{"promptName":"' + PROMPT.encode() + b'","contentName":"' + CALLER.encode()
) + b'","content":"'


def event(name: str, body: Mapping[str, Any]) -> OutFrame:
    """One event."""
    return OutFrame(orjson.dumps({"event": {name: body}}))


def exception(name: str, message: str) -> OutFrame:
    """A fault of the stream, e.g. `validationException`."""
    return OutFrame(orjson.dumps({"exception": {"type": name, "message": message}}))


def read(payload: bytes) -> tuple[str, str, JsonObject] | None:
    """(`event` or `exception`, its name, its body) of a frame; None when it is neither."""
    message = decode(payload)
    if message is None:
        return None
    held = message.get("event")
    if isinstance(held, dict) and len(held) == 1:
        [(name, body)] = held.items()
        return ("event", name, body) if isinstance(body, dict) else None
    fault = message.get("exception")
    if isinstance(fault, dict) and isinstance(fault.get("type"), str):
        return "exception", fault["type"], fault
    return None


def audio_input(pcm: bytes) -> OutFrame:
    """`audioInput`: the caller's audio, PCM16 mono at `INPUT_RATE_HZ`."""
    return OutFrame(_AUDIO_HEAD + binascii.b2a_base64(pcm, newline=False) + b'"}}}')


def content_start(name: str, kind: str, role: str, interactive: bool, configuration: Mapping[str, Any]) -> OutFrame:
    """`contentStart` of a block of the client's."""
    head = {"promptName": PROMPT, "contentName": name, "type": kind, "role": role, "interactive": interactive}
    return event("contentStart", {**head, **configuration})


def content_end(name: str) -> OutFrame:
    """`contentEnd` of a block of the client's."""
    return event("contentEnd", {"promptName": PROMPT, "contentName": name})


def text_block(name: str, role: str, text: str) -> list[OutFrame]:
    """A whole text content."""
    return [
        content_start(name, "TEXT", role, True, {"textInputConfiguration": TEXT_TYPE}),
        event("textInput", {"promptName": PROMPT, "contentName": name, "content": text}),
        content_end(name),
    ]


def tool_result_block(name: str, tool_use_id: str, output: str) -> list[OutFrame]:
    """A whole tool result; `toolResult.content` is JSON text, and anything else would be refused."""
    result = output if decode(output) is not None else orjson.dumps({"result": output}).decode()
    configuration = {"toolUseId": tool_use_id, "type": "TEXT", "textInputConfiguration": TEXT_TYPE}
    return [
        content_start(name, "TOOL", "TOOL", False, {"toolResultInputConfiguration": configuration}),
        event("toolResult", {"promptName": PROMPT, "contentName": name, "content": result}),
        content_end(name),
    ]


def tool_spec(tool: ToolSpec) -> JsonObject:
    """A tool as offered; its schema is JSON text, not an object."""
    schema = orjson.dumps(dict(tool.parameters)).decode()
    return {"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": {"json": schema}}}
