"""The wire of OpenAI Live: client messages. Facts: types of OpenAI's Python SDK (`openai.types.live`, 3.57).

Another protocol than OpenAI Realtime: no commit, no turn events, and tool calls one level down in `response.event`.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Final

from adapters.openai_family.wire import encode
from captures.frames import OutFrame

URL: Final = "wss://api.openai.com/v1/live/sessions"
"""Without a query: the model goes into `session.start`."""
RATES_HZ: Final = (24_000, 16_000)
"""PCM16 mono, the same rate both ways."""


def start_session(session: Mapping[str, Any]) -> OutFrame:
    """`session.start`: must be the first message; answered by `session.started` or `error`."""
    return encode({"type": "session.start", "event_id": "rig_start", "session": session})


def append_audio(pcm: bytes) -> OutFrame:
    """`session.input_audio.append`: the caller's audio, continuous and in real time; not acknowledged."""
    audio = binascii.b2a_base64(pcm, newline=False)
    return OutFrame(b'{"type":"session.input_audio.append","audio":"' + audio + b'"}')


def create_call_output(call_id: str, output: str) -> OutFrame:
    """`response.item.create` with the result of a call."""
    item = {"type": "function_call_output", "call_id": call_id, "output": output}
    return encode({"type": "response.item.create", "item": item})


def create_response() -> OutFrame:
    """`response.create`: the backend goes on with the results it was given."""
    return encode({"type": "response.create"})


def close_session() -> OutFrame:
    """`session.close`: answered by `session.closed`."""
    return encode({"type": "session.close"})
