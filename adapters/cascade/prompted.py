"""A file-mode model that is asked to write down what it hears, as a stage of a cascade: a transcriber, or a tagger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapters.cascade.endpoint import MAX_TRANSCRIPT_CHARS
from adapters.cascade.wire import Stage, clean_tags
from adapters.dialect import ClientDialect, Setup
from captures.events import AnswerEnd, AnswerEnded, Event, Failed, InputTranscript, Refused, TextDelta, Usage, Warned
from captures.frames import InFrame, OutFrame
from transports.transport import Endpoint, TransportError

INSTRUCTIONS: Final = {
    Stage.TRANSCRIBER: (
        "Transcribe the speech in the recording word for word, in its own language. Keep fillers, repetitions and "
        "false starts exactly as they are said. Answer with the transcript alone: no quotation marks, no comment, and "
        "nothing about how it sounds. If nobody speaks, answer with nothing."
    ),
    Stage.TAGGER: (
        "Say how the recording sounds, not what is said: voice and manner of the caller, and what else can be heard. "
        "Answer with at most eight short English tags, one per line, lower case, no comment. If nothing is out of the "
        "ordinary, answer with the single line: nothing unusual"
    ),
}
"""Version 1; another wording needs a new `wire_version`."""


class PromptedStage:
    """One request to a file-mode model, for one turn."""

    def __init__(self, client: ClientDialect, stage: Stage) -> None:
        self._client, self._stage = client, stage
        self.rates_hz = client.capabilities.input_rates_hz
        client.open(Setup(INSTRUCTIONS[stage], (), self.rates_hz[0]))
        self._said = ""

    def endpoint(self) -> Endpoint:
        """The model's own."""
        return self._client.endpoint()

    def encoded(self, pcm: bytes, rate_hz: int) -> bytes:
        """A whole clip as the model's dialect holds it. Raises InputTooLargeError."""
        (frame,) = self._client.encode_clip(pcm, rate_hz, 1000).frames
        return frame.payload

    def hold(self, piece: bytes) -> None:
        """Keep a piece of the caller's turn until commit."""
        self._client.hold(OutFrame(piece, held=True))

    def request(self) -> Sequence[OutFrame]:
        """The request with everything held. Raises InputTooLargeError."""
        return self._client.commit_turn()

    def receive(self, frame: InFrame) -> list[Event]:
        """The whole answer as transcript or tags, once it is there; or what went wrong."""
        events, _ = self._client.receive(frame)
        if faults := [event for event in events if isinstance(event, Refused | Failed)]:
            return [faults[0]]
        self._said += "".join(event.text for event in events if isinstance(event, TextDelta))
        self._said = self._said[:MAX_TRANSCRIPT_CHARS]
        found: list[Event] = [Usage({self._stage.value: dict(e.counts)}) for e in events if isinstance(e, Usage)]
        if not any(isinstance(event, AnswerEnded) for event in events):
            return found
        said, self._said = self._said.strip(), ""
        if any(isinstance(event, AnswerEnded) and event.reason is not AnswerEnd.COMPLETED for event in events):
            found.append(Warned("cut_short", f"the {self._stage}'s answer was cut short"))
        if self._stage is Stage.TRANSCRIBER:
            return [InputTranscript(said), *found]
        tags = clean_tags(said.splitlines())
        return [InputTranscript("", tags=() if tags == ("nothing unusual",) else tags), *found]

    def connect_failed(self, error: TransportError) -> Event:
        """As the model's dialect reads it."""
        return self._client.connect_failed(error)
