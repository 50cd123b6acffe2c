"""The capture: everything observed in one attempt at one cell, as one line of `captures.jsonl`.

A capture holds observations only. Credit, verdicts and tables are derived from it and may be deleted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

CAPTURE_FORMAT = 1


class Condition(StrEnum):
    """What the agent is given: the clip, the words, or the clip with the probe's question."""

    AUDIO = "audio"
    TEXT_TWIN = "text_twin"
    PROBE = "probe"


class Ending(StrEnum):
    """How an attempt ended; exactly one each. The three errors are never scored and always counted."""

    CALLED = "called"
    DECLINED = "declined"
    ANSWERED = "answered"
    """Ended normally, and where the agent's tool calls cannot be seen: whether it called one is not known."""
    NO_ANSWER = "no_answer"
    UNFINISHED = "unfinished"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    CONFIGURATION_ERROR = "configuration_error"
    INPUT_ERROR = "input_error"

    @property
    def scored(self) -> bool:
        """True when something about the agent was measured."""
        return self not in (Ending.INFRASTRUCTURE_ERROR, Ending.CONFIGURATION_ERROR, Ending.INPUT_ERROR)


class Mark(StrEnum):
    """Named instants on a capture's timeline, monotonic nanoseconds."""

    CONNECT_START = "connect_start"
    CONNECT_END = "connect_end"
    SESSION_READY = "session_ready"
    FIRST_CHUNK = "first_chunk"
    LAST_CHUNK = "last_chunk"
    CALLER_SPEECH_END = "caller_speech_end"
    CALLER_AUDIO_END = "caller_audio_end"
    COMMIT = "commit"
    """The explicit end of the caller's turn left us; in file mode, the request did."""
    SERVER_SPEECH_STOPPED = "server_speech_stopped"
    FIRST_EVENT = "first_event"
    FIRST_TEXT = "first_text"
    FIRST_AUDIO = "first_audio"
    """First byte of reply audio."""
    FIRST_AUDIBLE = "first_audible"
    """First audible sample of the reply, laid out as it would be heard."""
    FIRST_CALL_NAMED = "first_call_named"
    FIRST_CALL_COMPLETE = "first_call_complete"
    ANSWER_END = "answer_end"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ObservedCall(_Record):
    """A tool call as received. `arguments` is None when `arguments_json` is unreadable."""

    call_id: str
    name: str | None
    arguments_json: str
    arguments: dict[str, Any] | None
    output_index: int
    complete: bool = True
    """False when the answer was cut before the arguments were whole."""
    named_ns: int | None = None
    complete_ns: int | None = None


class ErrorInfo(_Record):
    """Why nothing was measured, in the peer's own words where there are any (scrubbed of secrets)."""

    kind: str
    """`transient`, `rate_limit`, `quota`, `protocol`, `refused`, `not_ready`, `input`, …"""
    code: str
    message: str
    where: str = ""
    retry_after_s: float | None = None
    """How long the peer asked us to wait."""


class LoopLag(_Record):
    """The event loop woke `lag_ns` late at `t_ns`."""

    t_ns: int
    lag_ns: int


class Pacing(_Record):
    """Proof of our own timing in this attempt. Lateness of a chunk: sent minus due, nanoseconds.

    With `chunks` 0 (text, file mode) nothing was paced, and the lateness fields say nothing.
    """

    pace: float
    """1.0 is real time; any other marks every latency as not comparable."""
    chunk_ms: int
    chunks: int
    lateness_p50_ns: int
    lateness_p99_ns: int
    lateness_max_ns: int
    last_chunk_ns: int
    commit_ns: int | None
    """Commit sent minus its due time, which is `caller_audio_end` plus `padded_s`; None when the mode sends none."""
    padded_s: float = 0.0
    """Silence added to reach a dialect's shortest commit; `caller_audio_end` stays before it."""
    trailing_silence_s: float = 0.0
    """Paced silence after the clip (server turn detection)."""
    loop_lags: tuple[LoopLag, ...] = ()
    """The largest event-loop lags between commit and the end of the answer (bounded)."""


class ReplyAudio(_Record):
    """The agent's speech as received, and as it would have been heard."""

    rate_hz: int
    received_s: float
    """Length of all audio received."""
    leading_silence_s: float | None
    """From the start of playback to the first audible sample; None when nothing was audible."""
    stray_bytes: int = 0
    """Bytes left over at the end that make no whole sample."""
    gaps: int | None = None
    """How often playback would have run dry before the end; None in captures from before this was measured."""
    gaps_s: float | None = None
    """Seconds of those gaps together."""
    file: str | None = None
    """Path inside the run folder."""


class NetworkTimes(_Record):
    """The way to the peer, measured on this session's own connection. None or empty: not measured."""

    resolve_ns: int | None = None
    """Looking up the host's address."""
    tcp_ns: int | None = None
    """TCP's handshake: about one round trip. Through a proxy it would be the proxy's, and is not measured."""
    tls_ns: int | None = None
    """From the end of TCP's handshake to the end of TLS's; None without TLS."""
    upgrade_ns: int | None = None
    """From there to the peer's consent to speak WebSocket."""
    ping_ns: tuple[int, ...] = ()
    """Round trips of WebSocket pings sent while the caller spoke, in order."""


class LaterTurn(_Record):
    """An answer after the first one, in the same session; fields as in `Capture`."""

    ending: Ending
    ending_detail: str = ""
    error: ErrorInfo | None = None
    calls: tuple[ObservedCall, ...] = ()
    reply_text: str = ""
    reply_transcript: str = ""
    input_transcript: str | None = None
    input_tags: tuple[str, ...] | None = None
    marks: dict[Mark, int] = Field(default_factory=dict)
    """Of this turn alone; `commit` is also when text or a call's result left us."""
    pacing: Pacing | None = None
    reply_audio: ReplyAudio | None = None
    """Measured; the sound itself is in the cassette only."""
    usage: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()


class SecondTurn(_Record):
    """What followed a first call that asked the caller something: its result, then the caller's scripted reply.

    It changes nothing about the first turn, and neither its ending nor its errors touch the cell's.
    """

    call_id: str
    tool: str
    """Of the first call, which started it."""
    result: str
    """What went back to the agent."""
    reply: str
    """The caller's words."""
    reply_as: Literal["audio", "text"] | None = None
    """How they were given; None when they were not."""
    not_played: str = ""
    """Why the reply was not given."""
    after_result: LaterTurn | None = None
    """The agent's answer to the result; None when it was not sent."""
    answer: LaterTurn | None = None
    """The agent's answer to the reply."""

    @property
    def decisive(self) -> LaterTurn | None:
        """The answer that shows what the agent did: to the reply, or to the result where it acted on that alone."""
        if self.answer is None and self.after_result is not None and self.after_result.calls:
            return self.after_result
        return self.answer


class BargeIn(_Record):
    """The caller cut in on the agent's speech. The capture's own ending is then that of the answer up to the cut."""

    clip: str
    """`self` (the cell's own clip again), or item/variant."""
    after_s: float
    """How long the agent's speech was to be audible before."""
    not_played: str = ""
    """Why there was none (the agent did not speak, or not for so long); then nothing below is set."""
    onset_ns: int | None = None
    """Our cancel in manual turns, else the clip's first piece."""
    last_audible_ns: int | None = None
    """End of the last audible speech of the interrupted answer, laid out as it would be heard."""
    stop_latency_s: float | None = None
    """From onset to last audible; 0 or less when nothing was heard after the onset."""
    stopped_by: Literal["us", "peer", "itself"] | None = None
    """Who ended playback: our cancel, the peer's sign that it yields, or nobody: it was heard to its end."""
    cancelled: bool = False
    """A cancel was sent: an answer was running and the dialect has such a message."""
    truncated_ms: int | None = None
    """How much of its speech we told the peer was heard; None where the dialect has no such message."""
    calls_after_onset: int = 0
    """Calls of the interrupted answer that came all the same, in `calls` of no turn."""
    answer: LaterTurn | None = None
    """The agent's answer to the clip that cut in."""


class Capture(_Record):
    """One attempt at one cell."""

    format: int = CAPTURE_FORMAT
    identity: str
    """Hash of all that could change the result, plus the repeat number: names the cell."""
    target: str
    item_id: str
    variant_id: str | None
    """None on a text twin, which belongs to the item."""
    condition: Condition
    repeat: int = 0
    attempt: int = 1
    finished: bool
    """True on the line that finishes its cell; an attempt that was or must be tried again has False."""
    started_ns: int
    adapter: str
    wire_version: int
    parser_version: int
    ending: Ending
    ending_detail: str = ""
    """Reason of `unfinished`, or a note on the ending."""
    error: ErrorInfo | None = None
    tools_seen: bool = True
    """False where nothing shows the agent's tool calls: that `calls` is empty then says nothing."""
    calls: tuple[ObservedCall, ...] = ()
    """Every call, ordered by output index: the first is "the first tool call"."""
    reply_text: str = ""
    reply_transcript: str = ""
    """The vendor's transcript of its own speech."""
    input_transcript: str | None = None
    """The caller's words as the peer heard them; of a cascade, all that its transcriber wrote."""
    input_tags: tuple[str, ...] | None = None
    """What a cascade's tagger measured in the audio; None where nothing did."""
    marks: dict[Mark, int] = Field(default_factory=dict)
    pacing: Pacing | None = None
    reply_audio: ReplyAudio | None = None
    usage: dict[str, Any] | None = None
    served: dict[str, Any] | None = None
    """File mode: the model and upstream that answered, finish reason, temperature; None where nothing tells."""
    second_turn: SecondTurn | None = None
    """None where the item scripts none or the first call did not start it."""
    barge_in: BargeIn | None = None
    """None where the config asks for none."""
    network: NetworkTimes | None = None
    """None where the transport measures none (a vendor's SDK), and in captures from before this was measured."""
    echoed: dict[str, Any] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    close_code: int | None = None
    close_reason: str = ""
    cassette: str | None = None
    """Path inside the run folder."""
    cassette_sha256: str | None = None
    """Over cassette and blob as written; None in captures from before it was kept."""
    host: str = ""
    """Host that served the attempt, without credentials."""

    @property
    def first_call(self) -> ObservedCall | None:
        """The call with the lowest output index."""
        return self.calls[0] if self.calls else None
