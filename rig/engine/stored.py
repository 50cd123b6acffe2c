"""A clip as a cascade once heard it, told to another text model: without audio, and without a new transcription."""

from __future__ import annotations

from dataclasses import dataclass

from captures.capture import Capture, Mark


@dataclass(frozen=True, slots=True)
class StoredTranscript:
    """What a run's transcriber, and its tagger if it had one, made of one clip."""

    words: str
    tags: tuple[str, ...] | None
    source: str
    """Identity of the capture that holds it."""

    def on(self, capture: Capture) -> Capture:
        """`capture` with the transcript that it answers to. Its commit is taken off: the clip was heard at another
        time, so nothing measured from there would be a latency of the cascade.
        """
        return capture.model_copy(
            update={
                "input_transcript": self.words,
                "input_tags": self.tags,
                "marks": {mark: t_ns for mark, t_ns in capture.marks.items() if mark is not Mark.COMMIT},
                "echoed": {**capture.echoed, "transcript_of": self.source},
            }
        )
