"""Key pools, request rates and the spend ceiling: arithmetic and waiting, without a network."""

from __future__ import annotations

import anyio
import pytest

from captures.capture import Capture, Condition, Ending, Mark, Pacing, ReplyAudio
from rig.config import Price
from rig.engine.costs import Spending, cost_of, known_prices
from rig.engine.keys import KeyPool, NoKeyLeftError, RequestRate


def a_capture(usage: dict[str, object] | None, seconds: float = 60.0) -> Capture:
    return Capture(
        identity="i",
        target="t",
        item_id="item",
        variant_id="v",
        condition=Condition.AUDIO,
        finished=True,
        started_ns=0,
        adapter="a",
        wire_version=1,
        parser_version=1,
        ending=Ending.CALLED,
        marks={Mark.CONNECT_END: 0, Mark.SESSION_READY: 1, Mark.ANSWER_END: round(seconds * 1e9)},
        usage=usage,
    )


def test_the_least_used_key_is_taken_and_a_used_up_one_never_again() -> None:
    async def main() -> None:
        pool = KeyPool({"A": "key-a", "B": "key-b"}, sessions_per_key=1)
        async with pool.lease() as first, pool.lease() as second:
            assert {first.env, second.env} == {"A", "B"}
            with anyio.move_on_after(0.05) as scope:
                async with pool.lease():
                    pytest.fail("both keys are at their limit")
            assert scope.cancelled_caught
        pool.mark_used_up(first)
        async with pool.lease() as third:
            assert third.env == second.env
        pool.mark_used_up(second)
        with pytest.raises(NoKeyLeftError):
            async with pool.lease():
                pytest.fail("no key has quota")

    anyio.run(main)


def test_a_freed_key_wakes_who_waits_for_it() -> None:
    async def main() -> None:
        pool = KeyPool({"A": "key-a"}, sessions_per_key=1)
        taken: list[str | None] = []

        async def take() -> None:
            async with pool.lease() as key:
                taken.append(key.env)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:  # noqa: SIM117  # the lease ends before the group
                async with pool.lease():
                    group.start_soon(take)
                    await anyio.lowlevel.checkpoint()
                    assert taken == []
        assert taken == ["A"]

    anyio.run(main)


def test_a_key_never_shows_in_its_representation() -> None:
    async def main() -> None:
        async with KeyPool({"A": "TESTKEY-not-real-7f3a9c"}).lease() as key:
            assert "TESTKEY" not in repr(key)

    anyio.run(main)


def test_sessions_are_spaced_evenly() -> None:
    async def main() -> list[float]:
        rate = RequestRate(per_minute=1200)
        begun = anyio.current_time()
        starts = []
        for _ in range(4):
            await rate.wait_turn()
            starts.append(anyio.current_time() - begun)
        return starts

    # Each against the first: a late wake-up does not put off the sessions after it.
    assert all(start >= number * 0.05 - 0.001 for number, start in enumerate(anyio.run(main)))


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (
            {
                "input_tokens": 1_000_000,
                "input_token_details": {"audio_tokens": 400_000},
                "output_tokens": 100_000,
                "output_token_details": {"audio_tokens": 50_000},
            },
            0.4 * 32 + 0.6 * 4 + 0.05 * 64 + 0.05 * 16,
        ),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": None, "completion_tokens": 0},
            10 * 4 / 1e6,
        ),
        ({}, None),
        (None, None),
    ],
)
def test_cost_by_token(usage: dict[str, object] | None, cost: float | None) -> None:
    price = Price(
        input_audio_per_million=32, input_text_per_million=4, output_audio_per_million=64, output_text_per_million=16
    )
    assert cost_of(a_capture(usage), price) == (None if cost is None else pytest.approx(cost))


def test_cost_by_the_minute_and_the_ceiling() -> None:
    spending = Spending({"t": Price(per_session_minute=0.05)}, ceiling=0.1)
    spending.add(a_capture(None, seconds=90))
    assert (spending.spent, spending.reached, spending.unknown) == (pytest.approx(0.075), False, 0)
    spending.add(a_capture(None, seconds=30))
    assert spending.reached


def test_cost_by_the_minute_of_audio() -> None:
    pacing = Pacing(
        pace=1,
        chunk_ms=20,
        chunks=300,
        lateness_p50_ns=0,
        lateness_p99_ns=0,
        lateness_max_ns=0,
        last_chunk_ns=0,
        commit_ns=0,
    )
    reply = ReplyAudio(rate_hz=24000, received_s=3.0, leading_silence_s=None)
    capture = a_capture(None).model_copy(update={"pacing": pacing, "reply_audio": reply})
    price = Price(input_audio_per_minute=0.06, output_audio_per_minute=0.24)
    assert cost_of(capture, price) == pytest.approx(0.06 * 6 / 60 + 0.24 * 3 / 60)


def test_an_attempt_of_unknown_cost_is_counted_and_not_free() -> None:
    spending = Spending({"t": Price(input_text_per_million=4)}, ceiling=None)
    spending.add(a_capture(None))
    assert (spending.spent, spending.unknown) == (0.0, 1)


def test_shipped_prices_can_be_read() -> None:
    assert all(price.per_session_minute or price.by_token for price in known_prices().values())


def test_geminis_tokens_are_split_by_modality_and_its_thoughts_are_paid() -> None:
    usage = {
        "promptTokenCount": 300,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 200}, {"modality": "AUDIO", "tokenCount": 100}],
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30,
    }
    price = Price(
        input_audio_per_million=10, input_text_per_million=1, output_audio_per_million=5, output_text_per_million=2
    )
    assert cost_of(a_capture(dict(usage)), price) == pytest.approx((100 * 10 + 200 * 1 + 50 * 2) / 1e6)
