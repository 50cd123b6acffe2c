"""Server half: a client's messages become intents, an agent's reply becomes the vendor's events. Sans-I/O.

It keeps what the vendor keeps for one connection: the session, the audio buffer, item and call ids, and the running
answer. Audio is handed on at commit, so that a cleared buffer reaches no agent. With turn detection on, `vad`
ends a turn, or a commit of the client's does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from adapters.foreign_json import JsonObject, brief, decode, int_of, list_of, object_of, text_of, too_deep
from adapters.openai_family import misbehaviour, wire
from adapters.openai_family.profile import ServerProfile
from adapters.openai_family.reply_events import Answer, estimated_usage, output_events
from adapters.openai_family.rules import AnswerAsked, Complaint, Detection
from adapters.openai_family.vad import LevelDetector
from adapters.server import (
    AnswerCancelled,
    AnswerWanted,
    AudioGiven,
    Denied,
    Handshake,
    Intent,
    Reply,
    ServerStep,
    SetupGiven,
    ToolResultGiven,
)
from captures.frames import InFrame, OutFrame

MAX_BUFFER_BYTES: Final = 64 * 1024 * 1024
"""Uncommitted audio that is kept: about 23 minutes."""
MAX_ITEMS: Final = 10_000
"""Items of one conversation."""


class RealtimeServer:
    """`ServerDialect` of a member of the family, for one connection."""

    answer_faults = misbehaviour.ANSWER_FAULTS

    def __init__(self, profile: ServerProfile) -> None:
        self._profile = profile
        self._rules = profile.rules
        self._ids: dict[str, int] = {}
        self._session = self._rules.default(self._new_id("sess"), "")
        self._view = self._rules.view(self._session)
        self._conversation_id = self._new_id("conv")
        self._given_setup = self._view.setup
        self._audio_heard = False
        self._buffer = bytearray()
        self._detector = LevelDetector(self._view.setup.input_rate_hz)
        self._spoken_item_id: str | None = None
        """Id under which the speech now heard will be committed."""
        self._items: set[str] = set()
        self._spoken_ms: dict[str, int] = {}
        """Milliseconds of audio in the agent's spoken items."""
        self._last_item_id: str | None = None
        self._call_ids: set[str] = set()
        self._answered_calls: set[str] = set()
        self._running: Answer | None = None
        self._words: list[str] = []
        """The caller's text since the last answer."""
        self._heard_ms = 0
        """The caller's audio since the last answer."""
        self._heard_item_id: str | None = None
        self._handlers: Mapping[str, Callable[[JsonObject], ServerStep | Complaint]] = {
            "session.update": self._on_session_update,
            "input_audio_buffer.append": self._on_append,
            "input_audio_buffer.commit": self._on_commit,
            "input_audio_buffer.clear": self._on_clear,
            "conversation.item.create": self._on_item_create,
            **({"conversation.item.truncate": self._on_truncate} if profile.truncates else {}),
            "response.create": self._on_response_create,
            "response.cancel": self._on_response_cancel,
        }

    def denied(self, handshake: Handshake) -> Denied | None:
        """See `ChecksHandshake`."""
        return self._profile.denied(handshake)

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """`session.created`, with the model of the query, and what else the vendor opens with."""
        self._session["model"] = query.get(self._profile.model_key, "")
        opening: Mapping[str, JsonObject] = {
            "session.created": {"session": self._session},
            "conversation.created": {"conversation": {"id": self._conversation_id, "object": "realtime.conversation"}},
        }
        return [frame for kind in self._profile.greeting for frame in self._frames(kind, opening[kind])]

    def receive(self, frame: InFrame) -> ServerStep:
        """Read one client message; a fault is answered with an `error` event and changes nothing."""
        event = decode(frame.payload)
        if event is None:
            return self._error(Complaint("invalid_json", "The message is not a JSON object."), None)
        event_id = text_of(event, "event_id")
        kind = text_of(event, "type")
        if kind is None:
            return self._error(
                Complaint("missing_required_parameter", "Missing required parameter: 'type'.", "type"), event_id
            )
        if too_deep(event):
            return self._error(Complaint("invalid_value", "The message is nested too deeply."), event_id)
        handler = self._handlers.get(kind)
        if handler is None:
            known = ", ".join(f"'{name}'" for name in self._handlers)
            message = f"Invalid value: '{brief(kind, 100)}'. Supported values are: {known}."
            return self._error(Complaint("invalid_value", message, "type"), event_id)
        step = handler(event)
        return self._error(step, event_id) if isinstance(step, Complaint) else step

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """Events of a reply up to `response.done`; take them one by one, for a cancelled answer ends early.

        They belong to the answer that is running now; where none is, a new one begins. So drop the reply to an answer
        that was cancelled (`AnswerCancelled`).

        Raises:
            ValueError: speech at another rate than the session's.
        """
        rate_hz = self._view.output_rate_hz
        if reply.pcm and reply.rate_hz != rate_hz:
            raise ValueError(f"speech must be at {rate_hz} Hz, not {reply.rate_hz}")
        begun = [] if self._running else self._begin(self._session, {})
        return chain(begun, self._answer(self._running, reply) if self._running else ())

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """An answer that ends as failed, with the cause in its details alone."""
        begun = [] if self._running else self._begin(self._session, {})
        error = {"type": code, "code": code, "message": message}
        return [*begun, *self._end("failed", {"type": "failed", "error": error})]

    # Answers

    def _answer(self, answer: Answer, reply: Reply) -> Iterator[OutFrame]:
        if self._running is not answer:
            return
        yield from self._frames("rate_limits.updated", {"rate_limits": _RATE_LIMITS})
        answer.last_item_id = self._last_item_id
        for event in output_events(answer, reply, self._new_id, self._stamp):
            if self._running is not answer:
                return
            item = object_of(event, "item")
            if event["type"] == "response.output_item.added":
                self._remember(item["id"])
                if text_of(item, "type") == "function_call":
                    self._call_ids.add(item["call_id"])
            self._spoken_ms.update(answer.spoken_ms)
            yield from self._encoded(event)
        if self._running is not answer:
            return
        if reply.input_transcript is not None and self._view.transcribes and self._heard_item_id is not None:
            yield from self._frames(
                "conversation.item.input_audio_transcription.completed",
                {
                    "item_id": self._heard_item_id,
                    "content_index": 0,
                    "transcript": reply.input_transcript,
                    "usage": {"type": "duration", "seconds": answer.heard_ms / 1000},
                },
            )
        yield from self._end("completed", None, dict(reply.usage) or estimated_usage(answer, reply))

    def _begin(self, session: JsonObject, change: JsonObject) -> list[OutFrame]:
        apart = text_of(change, "conversation") == "none"
        self._running = Answer(
            self._new_id("resp"),
            None if apart else self._conversation_id,
            self._rules.view(session),
            self._rules.answer_fields(session),
            object_of(change, "metadata") or None,
            self._heard_ms,
            sum(len(words.split()) for words in self._words),
        )
        self._heard_ms, self._words = 0, []
        return self._frames("response.created", {"response": self._running.as_object("in_progress")})

    def _end(self, status: str, details: JsonObject | None, usage: JsonObject | None = None) -> list[OutFrame]:
        answer = self._running
        assert answer is not None, "an answer is running"
        self._running = None
        return self._frames("response.done", {"response": answer.as_object(status, details, usage)})

    # Client messages

    def _on_session_update(self, event: JsonObject) -> ServerStep | Complaint:
        session = self._rules.updated(self._session, event.get("session"), self._audio_heard)
        if isinstance(session, Complaint):
            return session
        self._session, self._view = session, self._rules.view(session)
        self._given_setup = self._view.setup
        if self._detector.rate_hz != self._given_setup.input_rate_hz:
            self._detector = LevelDetector(self._given_setup.input_rate_hz)
        return ServerStep(self._frames("session.updated", {"session": session}), [SetupGiven(self._given_setup)])

    def _on_append(self, event: JsonObject) -> ServerStep | Complaint:
        audio = text_of(event, "audio")
        if audio is None:
            return Complaint("missing_required_parameter", "Missing required parameter: 'audio'.", "audio")
        pcm = wire.decode_audio(audio)
        if pcm is None:
            return Complaint("invalid_value", "Invalid 'audio'. Expected base64-encoded audio bytes.", "audio")
        if len(pcm) > wire.MAX_APPEND_BYTES or len(self._buffer) + len(pcm) > MAX_BUFFER_BYTES:
            return Complaint("invalid_value", "Too much audio in the buffer.", "audio")
        self._buffer += pcm
        self._audio_heard = True
        return ServerStep() if self._view.detection is None else self._detect(pcm, self._view.detection)

    def _detect(self, pcm: bytes, detection: Detection) -> ServerStep:
        """The server's own ends of turns in a piece of audio."""
        frames: list[OutFrame] = []
        intents: list[Intent] = []
        for edge in self._detector.feed(pcm, detection.silence_ms):
            if edge.speaking:
                self._spoken_item_id = self._new_id("item")
                fields: JsonObject = {"audio_start_ms": edge.at_ms, "item_id": self._spoken_item_id}
                frames += self._frames("input_audio_buffer.speech_started", fields)
                if self._running is not None and detection.interrupts:
                    frames += self._end("cancelled", {"type": "cancelled", "reason": "turn_detected"})
                    intents.append(AnswerCancelled())
                continue
            fields = {"audio_end_ms": edge.at_ms, "item_id": self._spoken_item_id}
            frames += self._frames("input_audio_buffer.speech_stopped", fields)
            if len(self._buffer) >= self._min_commit_bytes:
                frames_of_commit, audio = self._commit(self._spoken_item_id)
                frames += frames_of_commit
                intents += audio
            if self._running is None and detection.creates:
                frames += self._begin(self._session, {})
                intents.append(AnswerWanted())
        return ServerStep(frames, intents)

    def _on_clear(self, event: JsonObject) -> ServerStep:
        self._buffer.clear()
        return ServerStep(self._frames("input_audio_buffer.cleared", {}))

    def _on_commit(self, event: JsonObject) -> ServerStep | Complaint:
        if len(self._buffer) < self._min_commit_bytes:
            held = len(self._buffer) * 500 / self._rate_hz
            return Complaint(
                "input_audio_buffer_commit_empty",
                "Error committing input audio buffer: buffer too small. Expected at least "
                f"{self._profile.min_commit_s * 1000:.0f}ms of audio, "
                f"but buffer only has {held:.2f}ms of audio.",
            )
        return ServerStep(*self._commit())

    def _commit(self, announced_id: str | None = None) -> tuple[list[OutFrame], list[Intent]]:
        pcm = bytes(self._buffer)
        self._buffer.clear()
        item_id, before = announced_id or self._new_id("item"), self._last_item_id
        item: JsonObject = {
            "id": item_id,
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_audio", "transcript": None}],
        }
        duration_ms = len(pcm) * 500 // self._rate_hz
        self._remember(item_id)
        self._heard_ms += duration_ms
        self._heard_item_id = item_id
        committed = self._frames("input_audio_buffer.committed", {"previous_item_id": before, "item_id": item_id})
        return [*committed, *self._item_frames(item, before)], [AudioGiven(pcm, self._rate_hz)]

    def _on_item_create(self, event: JsonObject) -> ServerStep | Complaint:
        given = object_of(event, "item")
        kind = text_of(given, "type")
        item: JsonObject = {"object": "realtime.item", "status": "completed", **given}
        item["id"] = text_of(given, "id") or self._new_id("item")
        intents: list[Intent] = []
        if len(self._items) >= MAX_ITEMS or item["id"] in self._items:
            return Complaint("invalid_value", "The item's id is taken, or the conversation is full.", "item.id")
        if kind == "message" and self._profile.takes_text:
            content = self._content_of(given)
            if isinstance(content, Complaint):
                return content
            if given["role"] == "user":
                self._words.append(content)
        elif kind == "function_call_output":
            call_id, output = text_of(given, "call_id"), text_of(given, "output")
            if call_id not in self._call_ids or call_id is None:
                message = f"Tool call ID '{brief(str(call_id), 100)}' not found in conversation."
                return Complaint("invalid_tool_call_id", message, "item.call_id")
            if output is None:
                return Complaint(
                    "missing_required_parameter", "Missing required parameter: 'item.output'.", "item.output"
                )
            if call_id in self._answered_calls and self._profile.one_result_per_call:
                return Complaint("duplicate_call_output", "Duplicate function call output", "item.call_id")
            self._answered_calls.add(call_id)
            intents.append(ToolResultGiven(call_id, output))
        elif kind == "function_call":
            if text_of(given, "name") is None or text_of(given, "arguments") is None:
                return Complaint("missing_required_parameter", "A call needs 'name' and 'arguments'.", "item")
            item["call_id"] = text_of(given, "call_id") or self._new_id("call")
            self._call_ids.add(item["call_id"])
        else:
            return Complaint("invalid_value", f"Invalid value: '{brief(str(kind), 100)}'.", "item.type")
        before = self._last_item_id
        self._remember(item["id"])
        return ServerStep(self._item_frames(item, before), intents)

    def _on_truncate(self, event: JsonObject) -> ServerStep | Complaint:
        item_id, end_ms = text_of(event, "item_id") or "", int_of(event, "audio_end_ms")
        spoken_ms = self._spoken_ms.get(item_id)
        if spoken_ms is None:
            message = f"Error truncating item: '{brief(item_id, 100)}' holds no speech of the assistant."
            return Complaint("invalid_value", message, "item_id")
        if end_ms is None or not 0 <= end_ms <= spoken_ms:
            message = f"Audio content of {spoken_ms}ms is already shorter than {end_ms}ms"
            return Complaint("invalid_value", message, "audio_end_ms")
        self._spoken_ms[item_id] = end_ms
        fields: JsonObject = {"item_id": item_id, "content_index": 0, "audio_end_ms": end_ms}
        return ServerStep(self._frames("conversation.item.truncated", fields))

    def _on_response_create(self, event: JsonObject) -> ServerStep | Complaint:
        if self._running is not None:
            return Complaint(
                "conversation_already_has_active_response",
                f"Conversation already has an active response in progress: {self._running.id}. "
                "Wait until the response is finished before creating a new one.",
            )
        change = event.get("response")
        session = self._rules.for_answer(self._session, change)
        if isinstance(session, Complaint):
            return session
        words = self._words
        given = change if isinstance(change, dict) else {}
        speaking = self._view.detection is not None and self._detector.speaking
        asked = AnswerAsked(session, given, bool(self._items), speaking)
        if (complaint := self._profile.refuses_answer(asked)) is not None:
            return complaint
        if given.get("input") is not None:
            contents = [self._content_of(item) for item in list_of(given, "input") if text_of(item, "role") == "user"]
            words = [content for content in contents if isinstance(content, str)]
        by_text = bool(words) and (self._heard_ms == 0 or given.get("input") is not None)
        intents: list[Intent] = []
        setup = self._rules.view(session).setup
        if setup != self._given_setup:
            self._given_setup = setup
            intents.append(SetupGiven(setup))
        intents.append(AnswerWanted("\n".join(words) if by_text else None))
        return ServerStep(self._begin(session, given), intents)

    def _on_response_cancel(self, event: JsonObject) -> ServerStep | Complaint:
        wanted = text_of(event, "response_id")
        if self._running is None or wanted not in (None, self._running.id):
            return Complaint("response_cancel_not_active", "Cancellation failed: no active response found")
        done = self._end("cancelled", {"type": "cancelled", "reason": "client_cancelled"})
        return ServerStep(done, [AnswerCancelled()])

    def _content_of(self, item: object) -> str | Complaint:
        """The text of a message item that a client adds."""
        if not isinstance(item, dict):
            return Complaint("invalid_type", "Invalid type for 'item': expected an object.", "item")
        types = self._profile.text_types
        role = text_of(item, "role")
        if role is None or role not in types:
            return Complaint("invalid_value", f"Invalid value: '{brief(str(role), 100)}'.", "item.role")
        texts: list[str] = []
        for place, part in enumerate(list_of(item, "content")):
            kind = text_of(part, "type") if isinstance(part, dict) else None
            text = text_of(part, "text") if isinstance(part, dict) else None
            if kind not in types[role] or text is None:
                where = f"item.content[{place}]"
                return Complaint("invalid_value", f"Invalid '{where}': needs text of type {types[role][0]}.", where)
            texts.append(text)
        return "\n".join(texts)

    @property
    def _rate_hz(self) -> int:
        return self._view.setup.input_rate_hz

    @property
    def _min_commit_bytes(self) -> int:
        return int(2 * self._rate_hz * self._profile.min_commit_s)

    # Ids and frames

    def _new_id(self, kind: str) -> str:
        self._ids[kind] = self._ids.get(kind, 0) + 1
        return f"{kind}_{self._ids[kind]:06d}"

    def _remember(self, item_id: str) -> None:
        self._items.add(item_id)
        self._last_item_id = item_id

    def _stamp(self, kind: str, fields: JsonObject) -> JsonObject:
        return {"type": kind, "event_id": self._new_id("event"), **fields}

    def _frames(self, kind: str, fields: JsonObject) -> list[OutFrame]:
        return self._encoded(self._stamp(kind, fields))

    def _encoded(self, event: JsonObject) -> list[OutFrame]:
        return [wire.encode(sent) for sent in self._profile.outgoing(event)]

    def _item_frames(self, item: JsonObject, before: str | None) -> list[OutFrame]:
        names = ("conversation.item.added", "conversation.item.done")
        fields = {"previous_item_id": before, "item": item}
        return [frame for name in names for frame in self._frames(name, fields)]

    def _error(self, complaint: Complaint, event_id: str | None) -> ServerStep:
        error = {
            "type": complaint.type,
            "code": complaint.code,
            "message": complaint.message,
            "param": complaint.param,
            "event_id": event_id,
        }
        return ServerStep(self._frames("error", {"error": error}))


_RATE_LIMITS: Final = [{"name": "requests", "limit": 1000, "remaining": 999, "reset_seconds": 0.06}]
