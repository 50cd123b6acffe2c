"""Server half: a client's messages become intents, an agent's reply becomes the vendor's messages. Sans-I/O.

Nothing comes before the setup. Wrong messages are answered with a close, as the vendor does, never with an error event.
A blocking call leaves the turn open until its result; after others the turn is complete and, on 3.8, still in progress.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import orjson

from adapters.foreign_json import MAX_DEPTH, JsonObject, brief, decode, too_deep
from adapters.gemini_live import wire
from adapters.gemini_live.misbehaviour import ANSWER_FAULTS
from adapters.gemini_live.server_rules import Accepted, RefusedError, accepted_setup, texts_of, updated
from adapters.gemini_live.wire import camel, field
from adapters.openai_family.vad import LevelDetector
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Intent,
    Reply,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.frames import InFrame, OutFrame

INVALID: Final = 1007
PIECE_BYTES: Final = 2 * wire.OUTPUT_RATE_HZ // 25
"""Audio of one message: 40 ms."""
MAX_OPEN_CALLS: Final = 1_000
_NO_ACTIVITY: Final = "Explicit activity control is not supported when automatic activity detection is enabled."


class GeminiLiveServer:
    """`ServerDialect` of Gemini Live for one connection."""

    answer_faults = ANSWER_FAULTS

    def __init__(self) -> None:
        self._accepted: Accepted | None = None
        self._detector: LevelDetector | None = None
        self._in_activity = False
        self._words: list[str] = []
        self._open_calls: set[str] = set()
        self._silent_results = True
        """No result given so far asks for speech."""
        self._calls = 0
        self._handles = 0
        self._answers = 0
        self._running: int | None = None
        """Number of the answer that is being given."""
        self._heard_ms = 0
        """The caller's audio since the last answer."""

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the client speaks first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message; a fault closes the connection with 1007."""
        message = decode(frame.payload)
        try:
            if message is None or too_deep(message, 2 * MAX_DEPTH):
                raise RefusedError("Request contains an invalid JSON payload.")
            if len(message) != 1:
                raise RefusedError("A message holds exactly one of setup, clientContent, realtimeInput, toolResponse.")
            key, part = next(iter(message.items()))
            return self._take(camel(key), part)
        except RefusedError as refusal:
            return ServerStep(close=(INVALID, brief(str(refusal), 120)))

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Messages of a reply; take them one by one, for an interrupted answer ends early.

        Raises:
            ValueError: speech at another rate than 24 kHz.
        """
        if reply.pcm and reply.rate_hz != wire.OUTPUT_RATE_HZ:
            raise ValueError(f"speech must be at {wire.OUTPUT_RATE_HZ} Hz, not {reply.rate_hz}")
        if self._running is None:
            self._begin()
        assert self._running is not None
        return self._answer(self._running, reply)

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """An `error` object; the vendor has no event of its own for this, its clients read one nevertheless."""
        self._running = None
        return [_frame({"error": {"code": 500, "status": code, "message": message}})]

    # Answers

    def _begin(self) -> None:
        self._answers += 1
        self._running = self._answers

    def _answer(self, number: int, reply: Reply) -> Iterator[OutFrame]:
        for message in self._messages(reply):
            if self._running != number:
                return
            yield _frame(message)
        if self._running == number:
            self._running = None

    def _messages(self, reply: Reply) -> Iterator[JsonObject]:
        accepted = self._accepted
        speaks = accepted is None or accepted.speaks
        if accepted is not None and accepted.transcribes_input and reply.input_transcript:
            yield _content(inputTranscription={"text": reply.input_transcript})
        words = re.findall(r"\S+\s*|\s+", reply.text)
        if speaks:
            said = words if accepted is not None and accepted.transcribes_output else []
            pieces = [reply.pcm[at : at + PIECE_BYTES] for at in range(0, len(reply.pcm), PIECE_BYTES)]
            for word, piece in zip_longest(said, pieces):
                if piece is not None:
                    data = binascii.b2a_base64(piece, newline=False).decode()
                    blob = {"mimeType": f"audio/pcm;rate={wire.OUTPUT_RATE_HZ}", "data": data}
                    yield _content(modelTurn={"role": "model", "parts": [{"inlineData": blob}]})
                if word is not None:
                    yield _content(outputTranscription={"text": word})
        else:
            for word in words:
                yield _content(modelTurn={"role": "model", "parts": [{"text": word}]})
        waits = False
        if reply.calls:
            calls = []
            for call in reply.calls:
                self._calls += 1
                call_id = f"function-call-{self._calls}"
                if len(self._open_calls) < MAX_OPEN_CALLS:
                    self._open_calls.add(call_id)
                calls.append({"id": call_id, "name": call.name, "args": dict(call.arguments)})
                waits |= accepted is not None and accepted.behaviors.get(call.name) == "BLOCKING"
            yield {"toolCall": {"functionCalls": calls}}
        if waits:
            return
        yield _content(generationComplete=True)
        usage = dict(reply.usage) or self._estimated_usage(reply)
        yield _content(turnComplete=True, **self._status()) | {"usageMetadata": usage}
        yield from self._resumption()

    def _status(self) -> JsonObject:
        if self._accepted is None or not self._accepted.profile.states_interaction:
            return {}
        return {"interactionStatus": "IN_PROGRESS" if self._open_calls else "IDLE"}

    def _resumption(self) -> Iterator[JsonObject]:
        if self._accepted is not None and self._accepted.resumable:
            self._handles += 1
            yield {"sessionResumptionUpdate": {"newHandle": f"handle-{self._handles}", "resumable": True}}

    def _estimated_usage(self, reply: Reply) -> JsonObject:
        """Token counts as an emulator can tell them: 25 a second of audio (the vendor's figure), one a word."""
        heard, spoken = self._heard_ms * 25 // 1000, len(reply.pcm) * 25 // (2 * wire.OUTPUT_RATE_HZ)
        written = len(reply.text.split()) if not reply.pcm else 0
        called = sum(1 + len(call.arguments) for call in reply.calls)
        self._heard_ms = 0
        return {
            "promptTokenCount": heard,
            "responseTokenCount": spoken + written + called,
            "totalTokenCount": heard + spoken + written + called,
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": heard}],
            "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": spoken}],
        }

    # Client messages

    def _take(self, key: str, part: Any) -> ServerStep:
        if key == "setup":
            return self._on_setup(part)
        if self._accepted is None:
            raise RefusedError("setup must be the first message")
        if not isinstance(part, dict):
            raise RefusedError(f"Invalid value at '{brief(key, 60)}': an object is needed")
        if key == "realtimeInput":
            return self._on_realtime_input(part, self._accepted)
        if key == "clientContent":
            return self._on_client_content(part, self._accepted)
        if key == "toolResponse":
            return self._on_tool_response(part)
        if key == "contextUpdate":
            self._accepted = updated(self._accepted, part)
            return ServerStep(intents=[SetupGiven(self._accepted.setup)])
        raise RefusedError(f'Invalid JSON payload received. Unknown name "{brief(key, 60)}": Cannot find field.')

    def _on_setup(self, part: Any) -> ServerStep:
        if self._accepted is not None:
            raise RefusedError("setup must be the first message, and the only one")
        self._accepted = accepted_setup(part)
        frames = [_frame({"setupComplete": {}}), *(_frame(message) for message in self._resumption())]
        return ServerStep(frames, [SetupGiven(self._accepted.setup)])

    def _on_realtime_input(self, part: JsonObject, accepted: Accepted) -> ServerStep:
        if field(part, "mediaChunks") is not None:
            raise RefusedError("realtime_input.media_chunks is deprecated. Use audio, video, or text instead.")
        if field(part, "activityStart") is not None:
            return self._on_activity_start(accepted)
        if field(part, "activityEnd") is not None:
            return self._on_activity_end(accepted)
        if field(part, "audio") is not None:
            return self._on_audio(field(part, "audio"), accepted)
        if field(part, "audioStreamEnd") is True:
            return self._flush(accepted)
        text = field(part, "text")
        if isinstance(text, str):
            self._words.append(text)
            return ServerStep() if self._in_activity else ServerStep(intents=[self._want()])
        if field(part, "video") is not None:
            return ServerStep()
        raise RefusedError("realtime_input holds none of audio, video, text, activity_start, activity_end.")

    def _on_activity_start(self, accepted: Accepted) -> ServerStep:
        if not accepted.manual:
            raise RefusedError(_NO_ACTIVITY)
        self._in_activity = True
        return ServerStep(*self._cut(accepted))

    def _on_activity_end(self, accepted: Accepted) -> ServerStep:
        if not accepted.manual:
            raise RefusedError(_NO_ACTIVITY)
        if not self._in_activity:
            return ServerStep()
        self._in_activity = False
        return ServerStep(intents=[self._want()])

    def _on_audio(self, blob: Any, accepted: Accepted) -> ServerStep:
        data = field(blob, "data") if isinstance(blob, dict) else None
        mime_type = field(blob, "mimeType") if isinstance(blob, dict) else None
        pcm = wire.decode_audio(data) if isinstance(data, str) else None
        rate_hz = wire.rate_of(mime_type, wire.INPUT_RATE_HZ) if isinstance(mime_type, str) else None
        if pcm is None or not rate_hz or len(pcm) % 2:
            raise RefusedError("realtime_input.audio must be base64 of 16-bit audio/pcm.")
        if accepted.manual:
            if not self._in_activity:
                return ServerStep()  # outside an activity nothing is heard
            self._heard_ms += len(pcm) * 500 // rate_hz
            return ServerStep(intents=[AudioGiven(pcm, rate_hz)])
        self._heard_ms += len(pcm) * 500 // rate_hz
        if self._detector is None or self._detector.rate_hz != rate_hz:
            self._detector = LevelDetector(rate_hz)
        frames: list[OutFrame] = []
        intents: list[Intent] = [AudioGiven(pcm, rate_hz)]
        for edge in self._detector.feed(pcm, accepted.silence_ms):
            kind = "ACTIVITY_START" if edge.speaking else "ACTIVITY_END"
            activity = {"type": kind, "audioOffset": f"{edge.at_ms / 1000:g}s"}
            frames.append(_frame({"voiceActivity": activity}))
            if edge.speaking:
                cut_frames, cut_intents = self._cut(accepted)
                frames, intents = frames + cut_frames, intents + cut_intents
            elif self._running is None:
                intents.append(self._want())
        return ServerStep(frames, intents)

    def _flush(self, accepted: Accepted) -> ServerStep:
        """The end of the stream ends the caller's turn, where one is open under the server's detection."""
        speaking = not accepted.manual and self._detector is not None and self._detector.speaking
        self._detector = None
        return ServerStep(intents=[self._want()]) if speaking and self._running is None else ServerStep()

    def _on_client_content(self, part: JsonObject, accepted: Accepted) -> ServerStep:
        turns = field(part, "turns")
        for turn in turns if isinstance(turns, list) else []:
            if isinstance(turn, dict) and turn.get("role") in (None, "user"):
                self._words += texts_of(turn)
        if field(part, "turnComplete") is not True:
            return ServerStep()
        if not accepted.profile.content_answered:
            self._words.clear()  # history alone: no answer before a realtime input
            return ServerStep()
        frames, intents = self._cut(accepted)
        return ServerStep(frames, [*intents, self._want()])

    def _on_tool_response(self, part: JsonObject) -> ServerStep:
        responses = field(part, "functionResponses")
        if not isinstance(responses, list) or not responses:
            raise RefusedError("tool_response.function_responses must not be empty.")
        intents: list[Intent] = []
        for response in responses:
            call_id = field(response, "id") if isinstance(response, dict) else None
            if not isinstance(call_id, str):
                raise RefusedError("tool_response.function_responses.id must be set.")
            if call_id in self._open_calls and field(response, "willContinue") is not True:
                self._open_calls.discard(call_id)
                self._silent_results &= field(response, "scheduling") == "SILENT"
                intents.append(ToolResultGiven(call_id, orjson.dumps(field(response, "response") or {}).decode()))
        if intents and not self._open_calls:
            if not self._silent_results:
                intents.append(self._want())
            self._silent_results = True
        return ServerStep(intents=intents)

    def _want(self) -> AnswerWanted:
        text = "\n".join(self._words) if self._words else None
        self._words.clear()
        self._begin()
        return AnswerWanted(text)

    def _cut(self, accepted: Accepted) -> tuple[list[OutFrame], list[Intent]]:
        """The caller speaks into the running answer."""
        if self._running is None or not accepted.interrupts:
            return [], []
        self._running = None
        return [_frame(_content(interrupted=True)), _frame(_content(turnComplete=True))], [AnswerCancelled()]


def _frame(message: JsonObject) -> OutFrame:
    return wire.encode(message, binary=True)


def _content(**fields: Any) -> JsonObject:
    return {"serverContent": fields}
