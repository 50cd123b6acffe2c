"""Qwen-Audio's own: the text twin, settings that hold for the connection, the transcript in one piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.dialect import TurnMode
from adapters.server import AnswerWanted, Reply, SetupGiven
from captures.events import AnswerEnded, SessionReady, TranscriptDelta, Warned

Make = Callable[..., Any]
NAME = "qwen_audio_realtime"
SPEECH = bytes(range(256)) * 60


def test_the_callers_turn_as_text(both: Make) -> None:
    pair = both(NAME).open()
    assert pair.client.capabilities.text_twin
    pair.to_server(pair.client.text("Book for four."))
    assert pair.intents[1:] == [AnswerWanted("Book for four.")]
    pair.to_client(pair.server.answer(Reply(text="Done.", pcm=SPEECH)))
    assert isinstance(pair.events[-1], AnswerEnded)
    assert not pair.of(Warned)


def test_the_transcript_comes_whole(both: Make) -> None:
    pair = both(NAME).open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply(text="One two three.", pcm=SPEECH)))
    assert "response.audio_transcript.delta" not in pair.kinds()
    assert [event.text for event in pair.of(TranscriptDelta)] == ["One two three."]


def test_a_transcript_in_pieces_counts_once_too(both: Make) -> None:
    pair = both(NAME).open()
    pair.client.commit_turn()
    place = {"response_id": "r", "item_id": "i", "content_index": 0}
    events = pair.hear(
        {"type": "response.audio_transcript.delta", "delta": "One ", **place},
        {"type": "response.audio_transcript.delta", "delta": "two.", **place},
        {"type": "response.audio_transcript.done", "transcript": "One two.", **place},
    )
    assert events == [TranscriptDelta("One "), TranscriptDelta("two.")]


def test_voice_is_sent_in_the_first_update_and_later_ones_change_nothing(both: Make) -> None:
    pair = both(NAME, voice="longanlingxin", enable_speech_emotion=False, max_history_turns=5).open()
    session = pair.sent[0]["session"]
    assert (session["voice"], session["enable_speech_emotion"], session["max_history_turns"]) == (
        "longanlingxin",
        False,
        5,
    )
    assert pair.of(SessionReady)[0].echoed["voice"] == "longanlingxin"
    (updated,) = pair.say({"type": "session.update", "session": {"voice": "longanlufeng", "instructions": "Other."}})
    assert (updated["session"]["voice"], updated["session"]["instructions"]) == ("longanlingxin", "Other.")


def test_settings_sent_once(both: Make) -> None:
    pair = both(NAME, voice="longanlingxin").open()
    pair.speak(SPEECH)
    pair.to_client(pair.server.answer(Reply(text="Yes.")))
    assert [message["type"] for message in pair.sent].count("session.update") == 1


def test_meaning_ends_turns_by_the_vendors_name_of_it(both: Make) -> None:
    pair = both(NAME).open(TurnMode.SEMANTIC_VAD)
    assert pair.sent[0]["session"]["turn_detection"] == {"type": "smart_turn"}
    setup = pair.intents[0]
    assert isinstance(setup, SetupGiven)
    assert setup.setup.turn_control.mode is TurnMode.SEMANTIC_VAD
    assert not pair.of(Warned)


@pytest.mark.parametrize(
    ("session", "place"),
    [
        ({"modalities": ["audio"]}, "session.modalities"),
        ({"max_history_turns": 51}, "session.max_history_turns"),
        ({"turn_detection": {"type": "semantic_vad"}}, "session.turn_detection.type"),
    ],
)
def test_values_are_refused(both: Make, session: Any, place: str) -> None:
    assert both(NAME).refused(session) == ("invalid_value", place)


def test_detection_is_settled_by_the_first_audio(both: Make) -> None:
    pair = both(NAME).open()
    pair.say({"type": "input_audio_buffer.append", "audio": "AAAA"})
    assert pair.refused({"turn_detection": {"type": "server_vad"}}) == ("invalid_value", "session.turn_detection")
    (updated,) = pair.say({"type": "session.update", "session": {"turn_detection": None, "instructions": "Other."}})
    assert updated["session"]["instructions"] == "Other."


def test_a_second_answer_is_refused_in_the_vendors_words(both: Make) -> None:
    pair = both(NAME).open()
    pair.speak(SPEECH)
    (error,) = pair.say({"type": "response.create"})
    assert error["error"] == {
        "type": "invalid_request_error",
        "code": "invalid_value",
        "message": "Cannot create response while another response is in progress.",
        "param": "response.create",
    }
    assert pair.hear(error) == [Warned("invalid_value", error["error"]["message"])]


def test_an_answer_without_tools_or_history(both: Make) -> None:
    pair = both(NAME).open()
    change = {"conversation": "none", "instructions": "Greet.", "tool_choice": "none", "modalities": ["text"]}
    (created,) = pair.say({"type": "response.create", "response": change})
    assert (created["type"], created["response"]["modalities"]) == ("response.created", ["text"])
    given = pair.intents[-2]
    assert isinstance(given, SetupGiven)
    assert (given.setup.instructions, given.setup.tools) == ("Greet.", ())
