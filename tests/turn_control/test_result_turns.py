"""Results of calls that go back between two caller turns, and the silence beside them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import anyio

from captures.capture import Ending, Mark
from turn_control.limits import Limits
from turn_control.silence import SilentCaller
from turn_control.turn import ResultTurn, TextTurn

Virtual = Callable[[Callable[[], Any]], Any]


def test_results_go_back_in_order_and_the_answer_to_them_is_a_record(
    virtual: Virtual, stage: Any, scripted_peer: Any
) -> None:
    steps = ((0.5, {"type": "said", "text": "Which day?"}), (0.75, {"type": "end"}))
    peer = scripted_peer(steps, after="result")

    async def main() -> Any:
        ready = await stage(peer)
        return await ready.play(ResultTurn({"a": "asked", "b": "ok"}), limits=Limits(turn_s=5))

    record = virtual(main)
    results = [(m["id"], m["output"]) for _, m in peer.received_at if m["type"] == "result"]
    assert results == [("a", "asked"), ("b", "ok")]
    assert record.ending is Ending.DECLINED
    assert record.reply_transcript == "Which day?"
    assert record.marks[Mark.ANSWER_END] - record.marks[Mark.COMMIT] == 750_000_000
    assert record.pacing.chunks == 0


def test_an_agent_that_says_nothing_to_a_result_is_no_answer_within_the_limit(
    virtual: Virtual, stage: Any, scripted_peer: Any
) -> None:
    async def main() -> Any:
        ready = await stage(scripted_peer())
        record = await ready.play(ResultTurn({"a": "asked"}), limits=Limits(turn_s=2))
        return record, ready.clock.now_ns()

    record, now_ns = virtual(main)
    assert record.ending is Ending.NO_ANSWER
    assert now_ns - record.marks[Mark.COMMIT] == 2_000_000_000


def test_the_next_turn_is_an_answer_of_its_own(virtual: Virtual, stage: Any, scripted_peer: Any) -> None:
    peer = scripted_peer(((0.1, {"type": "end"}),), after="result")

    async def main() -> Any:
        ready = await stage(peer)
        first = await ready.play(ResultTurn({"a": "asked"}))
        peer.after, peer.steps = "text", ((0.2, {"type": "call", "id": "b", "name": "book"}), (0.3, {"type": "end"}))
        return first, await ready.play(TextTurn("Friday."))

    first, second = virtual(main)
    assert first.ending is Ending.DECLINED
    assert (second.ending, [call.name for call in second.calls]) == (Ending.CALLED, ["book"])


def test_a_dialect_without_results_refuses(virtual: Virtual, stage: Any, scripted_peer: Any) -> None:
    peer = scripted_peer()

    async def main() -> Any:
        return await (await stage(peer, second_turn=False)).play(ResultTurn({"a": "asked"}))

    record = virtual(main)
    assert record.ending is Ending.CONFIGURATION_ERROR
    assert "result" in record.error.message
    assert peer.at("result") == []


def test_the_caller_is_silent_at_the_pace_of_speech(
    virtual: Virtual, stage: Any, scripted_peer: Any, advance: Callable[[float], None]
) -> None:
    peer = scripted_peer()

    async def main() -> Any:
        ready = await stage(peer, continuous_audio=True)
        with SilentCaller(ready.session, ready.ticker, 24_000, 20) as caller:
            await anyio.sleep(0.1)
            advance(0.5)  # blocked: no two silences at once afterwards
            await anyio.sleep(0.1)
        await anyio.sleep(1)
        return caller

    caller = virtual(main)
    pieces = peer.audio()
    assert all(pcm == bytes(960) for _, pcm in pieces)
    assert caller.sent == len(pieces)
    times = [t for t, _ in pieces]
    assert all(later - earlier >= 0.02 - 1e-6 for earlier, later in itertools.pairwise(times))
    assert 10 <= len(pieces) <= 12
    assert times[-1] <= 0.75
