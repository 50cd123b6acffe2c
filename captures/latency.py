"""Latencies as the tables name them, derived from a capture's marks. Pure.

Values are seconds, may be negative, and are never clamped. A latency whose marks are absent is absent. One that our
own timing spoilt is void: the action still counts, the time enters no table.
"""

from __future__ import annotations

from dataclasses import dataclass

from captures.capture import Capture, Condition, Mark

VOID_LIMIT_S = 0.020
"""Above this lateness of ours a latency is void (default; a run's config may set it)."""

SPANS: dict[str, tuple[Mark, Mark]] = {
    "commit_to_tool_call": (Mark.COMMIT, Mark.FIRST_CALL_COMPLETE),
    "commit_to_first_audio": (Mark.COMMIT, Mark.FIRST_AUDIO),
    "speech_end_to_tool_call": (Mark.CALLER_SPEECH_END, Mark.FIRST_CALL_COMPLETE),
    "speech_end_to_first_audible": (Mark.CALLER_SPEECH_END, Mark.FIRST_AUDIBLE),
}
"""Latencies of turns streamed in real time: name → (origin, end)."""

FILE_SPANS: dict[str, tuple[Mark, Mark]] = {
    "request_to_tool_call": (Mark.COMMIT, Mark.FIRST_CALL_COMPLETE),
}
"""Latencies of whole-clip requests: another origin, never mixed with the above."""

PARTS = ("endpointing_hold", "network", "model", "leading_silence")
"""What `speech_end_to_first_audible` is made of where the peer says when it took the caller's turn to be over."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One measured latency. `void` holds the reasons why it may enter no table; empty means it may."""

    name: str
    seconds: float
    void: tuple[str, ...]


def latencies(capture: Capture, void_limit_s: float = VOID_LIMIT_S) -> list[Latency]:
    """All latencies that `capture`, of an audio cell, has marks for; none for text twins and probes.

    A capture without caller chunks (text twin, file mode) has no pacing to be late in; only event-loop lag can void it.
    """
    if capture.condition is not Condition.AUDIO:
        return []
    spans = SPANS if Mark.FIRST_CHUNK in capture.marks else FILE_SPANS
    found = []
    for name, (origin, end) in spans.items():
        if origin in capture.marks and end in capture.marks:
            seconds = (capture.marks[end] - capture.marks[origin]) / 1e9
            found.append(Latency(name, seconds, _void_reasons(capture, end, void_limit_s)))
    return found


def parts(capture: Capture, void_limit_s: float = VOID_LIMIT_S) -> list[Latency]:
    """The parts that `capture`, of a streamed audio cell, has marks for.

    `endpointing_hold`: from the end of the caller's speech until the peer says that it has stopped. `network`: one
    round trip, the shortest ping of the turn. `model`: from the peer's word (from our commit, where it says nothing) to
    the first byte of audio, less the round trip of a commit where that was measured; the peer's own word has no way
    to it in that span. `leading_silence`: from the first byte to the first audible sample. With a hold, hold, model and
    leading silence add up to `speech_end_to_first_audible`; without one, network, model and leading silence add up to
    the time from our commit.
    """
    marks = capture.marks
    if capture.condition is not Condition.AUDIO or Mark.FIRST_CHUNK not in marks:
        return []
    found = []
    over = Mark.SERVER_SPEECH_STOPPED
    if over in marks and Mark.CALLER_SPEECH_END in marks:
        seconds = (marks[over] - marks[Mark.CALLER_SPEECH_END]) / 1e9
        found.append(Latency("endpointing_hold", seconds, _void_reasons(capture, over, void_limit_s)))
    origin = over if over in marks else Mark.COMMIT
    round_trip_s = _round_trip_s(capture)
    if Mark.FIRST_AUDIO in marks:
        void = _void_reasons(capture, Mark.FIRST_AUDIO, void_limit_s)
        if round_trip_s is not None:
            found.append(Latency("network", round_trip_s, void))
        if origin in marks:
            wire_s = (round_trip_s or 0.0) if origin is Mark.COMMIT else 0.0
            found.append(Latency("model", (marks[Mark.FIRST_AUDIO] - marks[origin]) / 1e9 - wire_s, void))
        if capture.reply_audio is not None and capture.reply_audio.leading_silence_s is not None:
            found.append(Latency("leading_silence", capture.reply_audio.leading_silence_s, void))
    return found


def _round_trip_s(capture: Capture) -> float | None:
    """The shortest: longer ones waited for the peer, or for us."""
    pings = capture.network.ping_ns if capture.network is not None else ()
    return min(pings) / 1e9 if pings else None


def _void_reasons(capture: Capture, end: Mark, limit_s: float) -> tuple[str, ...]:
    pacing = capture.pacing
    if pacing is None:
        return ()
    reasons = []
    if pacing.chunks and pacing.pace != 1:
        reasons.append("not paced in real time")
    measured = {
        "chunk lateness p99": pacing.lateness_p99_ns,
        "last chunk": pacing.last_chunk_ns,
        "commit": pacing.commit_ns or 0,
        "event loop after commit": _worst_lag_ns(capture, end),
    }
    reasons += [f"{what} {ns / 1e6:.1f} ms late" for what, ns in measured.items() if ns / 1e9 > limit_s]
    return tuple(reasons)


def _worst_lag_ns(capture: Capture, end: Mark) -> int:
    """Largest lag whose blocked interval touches commit → `end`."""
    assert capture.pacing is not None
    start_ns, end_ns = capture.marks.get(Mark.COMMIT), capture.marks[end]
    return max(
        (
            lag.lag_ns
            for lag in capture.pacing.loop_lags
            if (start_ns is None or lag.t_ns >= start_ns) and lag.t_ns - lag.lag_ns <= end_ns
        ),
        default=0,
    )
