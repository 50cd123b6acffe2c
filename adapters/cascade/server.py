"""Server half of a cascade: transcriptions, tags and chat completions, each from one request body.

A form is a transcription, or with the field `task` = `tags` a request for tags; JSON is a chat completion. The audio of
a form is a caller turn without a setup: the agent that hears it answers with what it heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from adapters.cascade.forms import FormError, decode_form
from adapters.chat_audio import wav, wire
from adapters.chat_audio.server import ChatAudioServer
from adapters.dialect import Setup
from adapters.server import AnswerWanted, AudioGiven, Reply, ServerStep, SetupGiven
from captures.frames import InFrame, OutFrame


class CascadeServer:
    """`ServerDialect` of a cascade's endpoints, for one request."""

    answer_faults = ChatAudioServer().answer_faults

    def __init__(self) -> None:
        self._chat = ChatAudioServer()
        self._task: str | None = None
        """`text` or `tags` where the request was a form."""

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the request comes first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Setup, caller turn and the wish for an answer, from one request body."""
        if not frame.payload.startswith(b"--"):
            return self._chat.receive(frame)
        try:
            fields, file = decode_form(frame.payload)
            pcm, rate_hz = wav.decode(file)
        except (FormError, wav.WavError) as error:
            return self._refused(str(error), "file")
        self._task = "tags" if fields.get("task") == "tags" else "text"
        if self._task == "text" and not fields.get("model"):
            return self._refused("you must provide a model", "model")
        return ServerStep(intents=[SetupGiven(Setup("", (), rate_hz)), AudioGiven(pcm, rate_hz), AnswerWanted()])

    def _refused(self, message: str, param: str) -> ServerStep:
        code = "invalid_request_error"
        return ServerStep([OutFrame(wire.error_body(code, message, param))], close=(wire.ERROR_STATUS[code], code))

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """One frame: the response body."""
        if self._task is None:
            yield from self._chat.answer(reply)
        elif self._task == "tags":
            yield OutFrame(wire.encode({"tags": list(reply.input_tags)}))
        else:
            yield OutFrame(wire.encode({"text": reply.input_transcript or ""}))

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The body of a failed request."""
        return self._chat.failure(code, message)
