"""Turns on the virtual clock: cases B07, B08 and B09, late calls, withdrawn calls and announced ends."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.dialect import TurnMode
from captures.capture import Ending, Mark
from turn_control.limits import Limits

EXTENDED = "gemini-3.8-live-extended-thinking"


def reply_s(record: Any) -> float:
    return sum(len(pcm) for _, pcm in record.reply_pieces) / 2 / 24_000


def names(record: Any) -> list[str]:
    return [call.name for call in record.calls]


def test_b07_audio_on_both_sides_of_a_call(gemini: Any) -> None:
    steps = [
        (0.3, gemini.audio(0.2)),
        (0.5, gemini.call("f1", "send_code", phone="5550100")),
        (0.6, gemini.audio(0.3)),
        (0.8, gemini.content(generationComplete=True)),
        (0.9, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}))
        return await stage.speak(1.0)

    record = gemini.virtual(main)
    assert record.ending is Ending.CALLED
    assert [(call.call_id, call.name, call.arguments) for call in record.calls] == [
        ("f1", "send_code", {"phone": "5550100"})
    ]
    assert reply_s(record) == pytest.approx(0.5)
    assert (record.marks[Mark.ANSWER_END] - record.marks[Mark.COMMIT]) / 1e9 == pytest.approx(0.9, abs=1e-3)


def test_b07_a_server_that_waits_for_the_result(gemini: Any) -> None:
    steps = [(0.3, gemini.audio(0.2)), (0.5, gemini.call("f1", "send_code", phone="5550100"))]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}))
        record = await stage.speak(1.0)
        return record, stage.clock.now_ns()

    record, ended_ns = gemini.virtual(main)
    assert (record.ending, names(record), record.error) == (Ending.CALLED, ["send_code"], None)
    assert (ended_ns - record.marks[Mark.COMMIT]) / 1e9 == pytest.approx(0.5 + Limits().quiet_s, abs=1e-3)


def test_b08_audio_stops_while_a_call_is_open(gemini: Any) -> None:
    async def main() -> Any:
        peer = gemini.ScriptedGemini(
            {"audio": [[(3.2, gemini.call("f1", "book_table", party=2))]]}, closes_on_late_audio=True
        )
        stage = await gemini.open_stage(peer, mode=TurnMode.SERVER_VAD)
        first = await stage.speak(3.0)
        audio_before_result = max(peer.at("audio"))
        called_at = peer.open_call_s
        stage.session.tool_result("f1", '{"ok": true}')
        peer.steps["audio"] = [[(0.5, gemini.content(turnComplete=True))]]
        second = await stage.speak(0.2)
        await stage.session.close()
        return first, second, audio_before_result - called_at, peer

    first, second, late_s, peer = gemini.virtual(main)
    assert (first.ending, names(first), first.closed) == (Ending.CALLED, ["book_table"], None)
    assert late_s <= 0.02
    assert first.pacing.trailing_silence_s == pytest.approx(0.2, abs=0.03)
    # Audio goes on once the call is answered, and the end that is owed for it comes at the close.
    kinds = [next(iter(message.get("realtimeInput", message))) for _, message in peer.received_at]
    assert kinds.index("toolResponse") > 0
    assert set(kinds[kinds.index("toolResponse") + 1 : -1]) == {"audio"}
    assert kinds[-1] == "audioStreamEnd"
    assert second.ending is Ending.DECLINED


def test_b08_a_close_after_the_call_keeps_the_call(gemini: Any) -> None:
    steps = [(1.2, gemini.call("f1", "book_table", party=2)), (1.5, (1008, "Operation is not enabled."))]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"audio": [steps]}), mode=TurnMode.SERVER_VAD)
        return await stage.speak(1.0)

    record = gemini.virtual(main)
    assert (record.ending, names(record)) == (Ending.CALLED, ["book_table"])
    assert (record.closed.code, record.closed.reason) == (1008, "Operation is not enabled.")
    assert "close_1008" in record.detail


def test_b08_a_close_before_any_output_is_a_failure(gemini: Any) -> None:
    steps = [(1.5, (1008, "Operation is not enabled."))]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"audio": [steps]}), mode=TurnMode.SERVER_VAD)
        return await stage.speak(3.0)

    record = gemini.virtual(main)
    assert record.ending is Ending.INFRASTRUCTURE_ERROR
    assert record.error.code == "close_1008"
    assert "Operation is not enabled." in record.error.message
    assert record.closed.code == 1008


def test_b09_a_false_pair_ends_nothing(gemini: Any) -> None:
    first = [(0.4, gemini.audio(0.3)), (0.6, gemini.content(generationComplete=True))]
    pair = [(0.0, gemini.content(interrupted=True)), (0.0, gemini.content(turnComplete=True))]
    answer = [
        (0.7, gemini.audio(0.2)),
        (0.9, gemini.call("c2", "pay_bill", amount=40)),
        (1.0, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        peer = gemini.ScriptedGemini({"activityStart": [[], pair], "activityEnd": [first, answer]})
        stage = await gemini.open_stage(peer)
        await stage.speak(0.5, Limits(turn_s=1.0))
        return await stage.speak(1.5)

    record = gemini.virtual(main)
    assert record.ending is Ending.CALLED
    assert [(call.name, call.arguments) for call in record.calls] == [("pay_bill", {"amount": 40})]
    first_audio_s = (record.marks[Mark.FIRST_AUDIO] - record.marks[Mark.COMMIT]) / 1e9
    assert first_audio_s == pytest.approx(0.7, abs=1e-3)
    assert any(warning.startswith("early_interruption") for warning in record.warnings)
    assert any(warning.startswith("early_end") for warning in record.warnings)


def test_b09_a_false_pair_after_the_commit_ends_nothing_either(gemini: Any) -> None:
    steps = [
        (0.1, gemini.content(interrupted=True, turnComplete=True)),
        (0.7, gemini.call("c2", "pay_bill", amount=40)),
        (0.8, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}))
        return await stage.speak(0.5)

    record = gemini.virtual(main)
    assert (record.ending, names(record)) == (Ending.CALLED, ["pay_bill"])


def test_b09_a_real_interruption_is_reported(gemini: Any) -> None:
    steps = [
        (0.3, gemini.audio(0.2)),
        (0.5, gemini.content(interrupted=True)),
        (0.6, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}))
        return await stage.speak(0.5)

    record = gemini.virtual(main)
    assert (record.ending, record.detail) == (Ending.UNFINISHED, "cancelled: interrupted")
    assert "the agent's speech was interrupted" in record.warnings


def test_a_call_after_a_turn_still_in_progress(gemini: Any) -> None:
    steps = [
        (0.5, gemini.audio(0.4)),
        (1.0, gemini.content(turnComplete=True, interactionStatus="IN_PROGRESS")),
        (2.4, gemini.call("c1", "book_table", party=4)),
        (2.6, gemini.audio(0.2)),
        (3.0, gemini.content(turnComplete=True, interactionStatus="IDLE")),
    ]

    async def main() -> Any:
        stage = await gemini.open_stage(
            gemini.ScriptedGemini({"activityEnd": [steps]}), model=EXTENDED, thinking_level="low"
        )
        return await stage.speak(0.5)

    record = gemini.virtual(main)
    assert (record.ending, names(record)) == (Ending.CALLED, ["book_table"])
    assert (record.marks[Mark.ANSWER_END] - record.marks[Mark.COMMIT]) / 1e9 == pytest.approx(3.0, abs=1e-3)
    assert reply_s(record) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("after_s", "ending"), [(1.4, Ending.CALLED), (2.5, Ending.DECLINED)], ids=["in grace", "too late"]
)
def test_a_late_call_without_a_status_has_its_grace(gemini: Any, after_s: float, ending: Ending) -> None:
    steps = [
        (0.5, gemini.audio(0.4)),
        (1.0, gemini.content(turnComplete=True)),
        (1.0 + after_s, gemini.call("c1", "book_table", party=4)),
    ]

    async def main() -> Any:
        peer = gemini.ScriptedGemini({"activityEnd": [steps]})
        stage = await gemini.open_stage(peer, model=EXTENDED, thinking_level="low")
        return await stage.speak(0.5)

    record = gemini.virtual(main)
    assert record.ending is ending
    assert (record.marks[Mark.ANSWER_END] - record.marks[Mark.COMMIT]) / 1e9 == pytest.approx(1.0, abs=1e-3)


def test_an_interaction_that_never_ends_is_unfinished(gemini: Any) -> None:
    steps = [
        (0.5, gemini.audio(0.4)),
        (1.0, gemini.content(turnComplete=True, interactionStatus="IN_PROGRESS")),
    ]

    async def main() -> Any:
        peer = gemini.ScriptedGemini({"activityEnd": [steps]})
        stage = await gemini.open_stage(peer, model=EXTENDED, thinking_level="low")
        return await stage.speak(0.5, Limits(turn_s=8))

    assert gemini.virtual(main).ending is Ending.UNFINISHED


def test_an_announced_end_is_noted_and_transient(gemini: Any) -> None:
    steps = [(0.1, {"goAway": {"timeLeft": "0.5s"}}), (0.6, (1008, "The session duration limit was reached."))]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}))
        return await stage.speak(0.5)

    record = gemini.virtual(main)
    assert (record.ending, record.error.kind) == (Ending.INFRASTRUCTURE_ERROR, "transient")
    assert any(warning.startswith("go_away: the server ends the session in 0.5s") for warning in record.warnings)


def test_the_turns_of_a_manual_session_on_the_wire(gemini: Any) -> None:
    steps = [(0.2, gemini.content(turnComplete=True))]

    async def main() -> Any:
        peer = gemini.ScriptedGemini({"activityEnd": [steps]})
        stage = await gemini.open_stage(peer)
        record = await stage.speak(0.1)
        await stage.session.close()
        return record, peer

    record, peer = gemini.virtual(main)
    kinds = [next(iter(message.get("realtimeInput", message))) for _, message in peer.received_at]
    assert kinds == ["setup", "activityStart", *["audio"] * 5, "activityEnd"]
    assert peer.at("activityEnd")[0] - peer.at("audio")[0] == pytest.approx(0.1, abs=1e-3)
    assert record.ending is Ending.DECLINED


def test_the_servers_own_end_of_speech_is_kept(gemini: Any) -> None:
    steps = [
        (0.05, {"voiceActivity": {"type": "ACTIVITY_START", "audioOffset": "0.02s"}}),
        (0.8, {"voiceActivity": {"voiceActivityType": "ACTIVITY_END", "audioOffset": "0.5s"}}),
        (1.0, gemini.audio(0.1)),
        (1.2, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        peer = gemini.ScriptedGemini({"audio": [steps]})
        stage = await gemini.open_stage(peer, mode=TurnMode.SERVER_VAD)
        record = await stage.speak(0.5)
        return record, peer

    record, peer = gemini.virtual(main)
    stopped_s = (record.marks[Mark.SERVER_SPEECH_STOPPED] - record.marks[Mark.FIRST_CHUNK]) / 1e9
    assert stopped_s == pytest.approx(0.8, abs=1e-3)
    assert Mark.COMMIT not in record.marks
    assert peer.at("activityStart") == peer.at("activityEnd") == []
