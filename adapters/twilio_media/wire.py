"""Messages of Twilio Media Streams, all of them JSON text frames; numbers are strings but for the media format's.

https://www.twilio.com/docs/voice/media-streams/websocket-messages
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from adapters.template_socket.sound import Format
from captures.frames import OutFrame

RATE_HZ: Final = 8_000
FRAME_BYTES: Final = 160
"""20 ms of µ-law."""
FRAME_MS: Final = 20
SILENCE: Final = 0xFF
"""µ-law of 0. 0x00 would be the loudest negative value."""
MULAW: Final = Format("mulaw", RATE_HZ)


def connected() -> OutFrame:
    """The first message; it has no stream and no number."""
    return _text({"event": "connected", "protocol": "Call", "version": "1.0.0"})


def start(number: int, stream: str, account: str, call: str, parameters: Mapping[str, str]) -> OutFrame:
    """The second, once."""
    details = {
        "streamSid": stream,
        "accountSid": account,
        "callSid": call,
        "tracks": ["inbound"],
        "customParameters": dict(parameters),
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": RATE_HZ, "channels": 1},
    }
    return _text({"event": "start", "sequenceNumber": str(number), "start": details, "streamSid": stream})


def media(number: int, stream: bytes, chunk: int, timestamp_ms: int, payload: bytes) -> OutFrame:
    """A piece of the caller's audio; `payload` is base64 already, since pieces are made before they are due."""
    return OutFrame(
        b'{"event":"media","sequenceNumber":"%d","media":{"track":"inbound","chunk":"%d","timestamp":"%d","payload":"%s"},'
        b'"streamSid":"%s"}' % (number, chunk, timestamp_ms, payload, stream)
    )


def dtmf(number: int, stream: str, digit: str) -> OutFrame:
    """A key that the caller pressed."""
    pressed = {"track": "inbound_track", "digit": digit}
    return _text({"event": "dtmf", "sequenceNumber": str(number), "streamSid": stream, "dtmf": pressed})


def mark(number: int, stream: str, name: str) -> OutFrame:
    """An agent's mark that comes back."""
    return _text({"event": "mark", "sequenceNumber": str(number), "streamSid": stream, "mark": {"name": name}})


def stop(number: int, stream: str, account: str, call: str) -> OutFrame:
    """The last message."""
    details = {"accountSid": account, "callSid": call}
    return _text({"event": "stop", "sequenceNumber": str(number), "streamSid": stream, "stop": details})


def _text(fields: Mapping[str, Any]) -> OutFrame:
    return OutFrame(orjson.dumps(fields))
