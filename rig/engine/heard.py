"""A turn's reply as it would be heard, and what of it a capture keeps."""

from __future__ import annotations

import anyio.to_thread

from captures.capture import LaterTurn, Mark, ReplyAudio
from captures.playback import Playback, play
from turn_control.turn import TurnRecord


async def heard(record: TurnRecord) -> Playback | None:
    """The reply laid out in time (in a thread: it may be long); None when the turn had no audio."""
    return await anyio.to_thread.run_sync(_play, record)


def _play(record: TurnRecord) -> Playback | None:
    return play(record.reply_pieces, record.reply_rate_hz) if record.reply_rate_hz else None


def reply_audio(record: TurnRecord, playback: Playback | None) -> ReplyAudio | None:
    """The capture's part on the reply's audio; None when there was none."""
    if playback is None or record.reply_rate_hz is None:
        return None
    return ReplyAudio(
        rate_hz=record.reply_rate_hz,
        received_s=playback.received_s,
        leading_silence_s=playback.leading_silence_s,
        stray_bytes=playback.stray_bytes,
        gaps=playback.gaps,
        gaps_s=playback.gaps_s,
    )


async def later_turn(record: TurnRecord) -> LaterTurn:
    """What a capture keeps of a turn after the first."""
    playback = await heard(record)
    marks = dict(record.marks)
    if playback is not None and playback.first_audible_ns is not None:
        marks[Mark.FIRST_AUDIBLE] = playback.first_audible_ns
    return LaterTurn(
        ending=record.ending,
        ending_detail=record.detail,
        error=record.error,
        calls=record.calls,
        reply_text=record.reply_text,
        reply_transcript=record.reply_transcript,
        input_transcript=record.input_transcript,
        input_tags=record.input_tags,
        marks=marks,
        pacing=record.pacing,
        reply_audio=reply_audio(record, playback),
        usage=record.usage,
        warnings=record.warnings,
    )
