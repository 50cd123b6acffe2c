"""Client half and server half joined: verbs become intents, replies become events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.server import AnswerCancelled, AnswerWanted, AudioGiven, Reply, ReplyCall, SetupGiven, ToolResultGiven
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    AudioDelta,
    Failed,
    FailureKind,
    InputTranscript,
    Interrupted,
    SessionReady,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCall,
    TranscriptDelta,
    TurnCommitted,
    Unrecognised,
    Usage,
    Warned,
)

SPEECH = bytes(range(256)) * 60
"""0.32 s of 24 kHz PCM16."""


def of(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture
def opened(pair: Callable[..., Any], tools: tuple[ToolSpec, ...]) -> Callable[..., Any]:
    def make(mode: TurnMode = TurnMode.MANUAL, **extra: Any) -> Any:
        both = pair(**extra)
        setup = Setup("Be brief.", tools, 24_000, TurnControlSettings(mode))
        both.to_client(both.server.greeting({"model": "gpt-realtime-2.1"}))
        both.to_server(both.client.open(setup))
        return both

    return make


def speak(both: Any, pcm: bytes = SPEECH) -> None:
    both.to_server(both.client.start_turn())
    both.to_server(both.client.encode_clip(pcm, 24_000, 20).frames)
    both.to_server(both.client.commit_turn())


def test_settings_arrive_whole_and_are_confirmed(opened: Callable[..., Any], tools: tuple[ToolSpec, ...]) -> None:
    both = opened(voice="cedar", noise_reduction="far_field", max_output_tokens=500, speed=1.2)
    assert both.intents == [SetupGiven(Setup("Be brief.", tools, 24_000, TurnControlSettings(TurnMode.MANUAL)))]
    assert both.events == [
        SessionReady(
            "sess_000001",
            {
                "model": "gpt-realtime-2.1",
                "output_modalities": ["audio"],
                "tool_choice": "auto",
                "max_output_tokens": 500,
                "truncation": "auto",
                "turn_detection": None,
                "input_format": {"type": "audio/pcm", "rate": 24000},
                "transcription": None,
                "noise_reduction": {"type": "far_field"},
                "output_format": {"type": "audio/pcm", "rate": 24000},
                "voice": "cedar",
                "speed": 1.2,
                "tools": ["book_table", "cancel_order"],
            },
        )
    ]


def test_a_spoken_turn(opened: Callable[..., Any]) -> None:
    both = opened(transcription={"model": "gpt-4o-transcribe"})
    speak(both)
    assert both.intents[1:] == [AudioGiven(SPEECH, 24_000), AnswerWanted()]
    reply = Reply(text="One moment, please.", pcm=SPEECH, input_transcript="Hello")
    both.events.clear()
    both.to_client(list(both.server.answer(reply)))
    assert "".join(event.text for event in of(both.events, TranscriptDelta)) == reply.text
    assert b"".join(event.pcm for event in of(both.events, AudioDelta)) == SPEECH
    assert of(both.events, InputTranscript) == [InputTranscript("Hello")]
    assert of(both.events, Usage)[0].counts["output_token_details"]["audio_tokens"] == 6
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)
    assert not of(both.events, Unrecognised) + of(both.events, Warned)


def test_a_tool_turn_with_words_and_two_calls_goes_on_once(opened: Callable[..., Any]) -> None:
    both = opened()
    speak(both)
    calls = (ReplyCall("book_table", {"party": 4, "note": "naïve ☃"}), ReplyCall("cancel_order", {}))
    both.events.clear()
    both.to_client(list(both.server.answer(Reply(calls, "Done.", SPEECH))))
    first, second = of(both.events, ToolCall)
    assert (first.name, first.arguments, first.output_index) == ("book_table", {"party": 4, "note": "naïve ☃"}, 1)
    assert (second.name, second.arguments, second.output_index) == ("cancel_order", {}, 2)
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)

    both.intents.clear()
    both.to_server(both.client.tool_result(first.call_id, '{"ok":true}'))
    assert both.intents == [ToolResultGiven(first.call_id, '{"ok":true}')]
    both.to_server(both.client.tool_result(second.call_id, "done"))
    assert both.intents[1:] == [ToolResultGiven(second.call_id, "done"), AnswerWanted()]
    both.events.clear()
    both.to_client(list(both.server.answer(Reply(text="All done."))))
    assert "".join(event.text for event in of(both.events, TranscriptDelta)) == "All done."
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)


def test_a_result_given_during_the_answer_asks_to_go_on_after_it(opened: Callable[..., Any]) -> None:
    both = opened()
    speak(both)
    both.intents.clear()
    for frame in both.server.answer(Reply((ReplyCall("cancel_order", {}),))):
        known = len(of(both.events, ToolCall))
        both.to_client([frame])
        if len(of(both.events, ToolCall)) > known:
            both.to_server(both.client.tool_result(of(both.events, ToolCall)[0].call_id, "ok"))
            assert [type(intent) for intent in both.intents] == [ToolResultGiven]
    assert [type(intent) for intent in both.intents] == [ToolResultGiven, AnswerWanted]


def test_text_twin_and_text_answer(opened: Callable[..., Any]) -> None:
    both = opened(output_modalities=["text"])
    both.to_server(both.client.text("I want to cancel."))
    assert both.intents[1:] == [AnswerWanted("I want to cancel.")]
    both.to_client(list(both.server.answer(Reply(text="Sure, done.", pcm=SPEECH))))
    assert "".join(event.text for event in of(both.events, TextDelta)) == "Sure, done."
    assert not of(both.events, AudioDelta)


def test_cancelled_answer_stops_and_says_so(opened: Callable[..., Any]) -> None:
    both = opened()
    speak(both)
    stream = iter(both.server.answer(Reply(text="a b c d e f g", pcm=SPEECH * 20)))
    for _ in range(12):
        both.to_client([next(stream)])
    both.to_server(both.client.cancel())
    assert both.intents[-1] == AnswerCancelled()
    assert both.events[-1] == AnswerEnded(AnswerEnd.CANCELLED, "client_cancelled")
    assert list(stream) == []
    heard_ms = sum(len(event.pcm) for event in of(both.events, AudioDelta)) // 48
    both.to_server(both.client.truncate(heard_ms))
    both.to_server(both.client.cancel())
    assert both.events[-1] == Warned("response_cancel_not_active", "Cancellation failed: no active response found")


def test_failed_answer(opened: Callable[..., Any]) -> None:
    both = opened()
    speak(both)
    both.to_client(both.server.failure("rate_limit_exceeded", "Please try again in 1.5s."))
    assert both.events[-1] == Failed(
        FailureKind.RATE_LIMIT, "rate_limit_exceeded", "Please try again in 1.5s.", retry_after_s=1.5
    )


def test_a_60_ms_commit_is_refused_and_a_padded_one_is_not(opened: Callable[..., Any]) -> None:
    both = opened()
    speak(both, bytes(2 * 1440))
    assert both.events[1] == Failed(
        FailureKind.PROTOCOL,
        "input_audio_buffer_commit_empty",
        "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, "
        "but buffer only has 60.00ms of audio.",
    )
    both = opened()
    both.to_server(both.client.encode_clip(bytes(2 * 1440), 24_000, 20).frames)
    both.to_server([both.client.encode_silence(24_000, 40)])
    both.to_server(both.client.commit_turn())
    assert of(both.events, TurnCommitted)
    assert both.intents[1:] == [AudioGiven(bytes(2 * 2400), 24_000), AnswerWanted()]


@settings(max_examples=60, deadline=None)
@given(samples=st.integers(0, 5000), chunk_ms=st.integers(1, 250), seed=st.binary(min_size=2, max_size=2))
def test_a_clip_in_pieces_is_the_clip(samples: int, chunk_ms: int, seed: bytes) -> None:
    from adapters.dialect import TargetSettings
    from adapters.openai_family.wire import decode_audio
    from adapters.openai_realtime import DIALECT

    pcm = seed * samples
    clip = DIALECT.client(TargetSettings("m")).encode_clip(pcm, 24_000, chunk_ms)
    pieces = [decode_audio(orjson.loads(frame.payload)["audio"]) or b"" for frame in clip.frames]
    assert b"".join(pieces) == pcm
    assert (clip.samples, clip.chunk_ms, clip.rate_hz) == (samples, chunk_ms, 24_000)
    assert all(len(piece) == 2 * round(24 * chunk_ms) for piece in pieces[:-1])
    assert all(piece and len(piece) % 2 == 0 for piece in pieces)


LOUD = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 400
"""0.4 s of a 1 kHz square wave."""


@pytest.mark.parametrize("mode", [TurnMode.SERVER_VAD, TurnMode.SEMANTIC_VAD])
def test_the_servers_own_detection_ends_the_turn_after_half_a_second_of_quiet(
    opened: Callable[..., Any], mode: TurnMode
) -> None:
    both = opened(mode)
    speak(both, bytes(4800) + LOUD)
    assert both.events[1:] == [SpeechStarted(100)]
    for _ in range(24):
        both.to_server([both.client.encode_silence(24_000, 20)])
    assert len(both.events) == 2
    both.to_server([both.client.encode_silence(24_000, 20)])
    assert both.events[2:] == [SpeechStopped(1000), TurnCommitted("item_000001")]
    assert both.intents[1:] == [AudioGiven(bytes(4800) + LOUD + bytes(24_000), 24_000), AnswerWanted()]
    both.to_client(list(both.server.answer(Reply(text="Yes."))))
    assert both.events[-1] == AnswerEnded(AnswerEnd.COMPLETED)


def test_speech_over_the_answer_interrupts_it(opened: Callable[..., Any]) -> None:
    both = opened(TurnMode.SERVER_VAD)
    speak(both, LOUD + bytes(24_000))
    stream = iter(both.server.answer(Reply(text="a b c d e", pcm=SPEECH)))
    both.to_client([next(stream) for _ in range(8)])
    both.to_server(both.client.encode_clip(LOUD, 24_000, 20).frames)
    assert both.events[-2:] == [Interrupted(), AnswerEnded(AnswerEnd.CANCELLED, "turn_detected")]
    assert both.intents[-1] == AnswerCancelled()
    assert list(stream) == []
