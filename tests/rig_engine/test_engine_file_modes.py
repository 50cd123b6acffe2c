"""Runs of file-mode targets: what a capture holds, rows voided because nobody listened, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Ending, Mark
from rig.agents.emulator import base_url, serve
from rig.agents.faults import parse

BOOKED = {"party": 4, "time": "19:30"}


class Clerk:
    """Books the table."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        return Reply(calls=(ReplyCall("book_table", BOOKED),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.")


@pytest.fixture
def target(banks: Any, tmp_path: Path) -> Iterator[Any]:
    """A target at an emulator of its own: `target(dialect, *faults, **entry)`."""
    banks.write_bank(tmp_path / "bank", {"clear": banks.wav(banks.tone(0.3))})
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def start(dialect: str, *faults: str, **entry: Any) -> dict[str, Any]:
            served = serve(dialect, Clerk(), plan=parse(faults))
            url = base_url(dialect, "127.0.0.1", stack.enter_context(portal.wrap_async_context_manager(served)))
            return {"name": dialect, "adapter": dialect, "model": "m", "base_url": url, **entry}

        yield start


def test_a_capture_says_how_it_was_served(rig: Any, target: Any) -> None:
    targets = [
        target("openrouter", settings={"upstream": "rig", "temperature": 0.0}),
        target("dashscope"),
        target("gemini_file"),
        target("mistral"),
    ]
    done = rig.run(rig.config("", targets=targets))
    found = {capture.target: capture for capture in done.captures}
    assert {capture.ending for capture in done.captures} == {Ending.CALLED}
    assert found["openrouter"].served == {
        "model": "m",
        "upstream": "Rig Emulator",
        "finish_reason": "tool_calls",
        "temperature": "0",
    }
    assert found["dashscope"].served["temperature"] == "vendor default"
    assert found["dashscope"].usage["prompt_tokens_details"]["audio_tokens"] == 3
    assert found["gemini_file"].usage["promptTokensDetails"][1] == {"modality": "AUDIO", "tokenCount": 10}
    assert found["gemini_file"].served["finish_reason"] == "STOP"
    assert found["mistral"].usage["prompt_audio_seconds"] == 1
    for capture in done.captures:
        assert capture.host.startswith("127.0.0.1:")
        assert [call.arguments for call in capture.calls] == [BOOKED]


def test_audio_that_nobody_heard_is_counted_and_never_scored(rig: Any, target: Any) -> None:
    done = rig.run(rig.config("", targets=[target("openrouter", "deaf"), target("mistral")]))
    (deaf,) = [capture for capture in done.captures if capture.target == "openrouter"]
    assert (deaf.ending, deaf.finished, deaf.error.kind) == (Ending.INFRASTRUCTURE_ERROR, False, "audio_not_heard")
    assert len(deaf.calls) == 1  # kept for the record
    report = done.report()
    assert report["targets"]["openrouter"]["credit"]["neutral"] is None
    assert report["targets"]["openrouter"]["endings"]["infrastructure_error"] == 1
    assert report["targets"]["mistral"]["credit"]["neutral"]["mean"] == 1
    assert any("openrouter: audio not heard in 1 attempt" in line for line in report["warnings"])


def test_a_clip_that_is_too_long_names_the_limit_before_any_request(
    rig: Any, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.gemini_file.client.MAX_AUDIO_S", 0.2)
    capture = rig.run(rig.config("", targets=[target("gemini_file", base_url="http://127.0.0.1:1")])).only
    assert (capture.ending, capture.error.code) == (Ending.INPUT_ERROR, "too_large")
    assert capture.error.message == "the clip lasts 0.3 s, more than Gemini's limit of 0.2 s: use a shorter clip"
    assert Mark.CONNECT_START not in capture.marks


def test_a_limited_upstream_stalls_no_other_target(rig: Any, target: Any) -> None:
    """One target is told to wait and waits; with one session for all, the others go on meanwhile."""
    limited = target("openrouter", "http=429:rate_limit_exceeded:2")
    targets = [limited, target("mistral"), target("dashscope")]
    limits = {"attempts": 2}
    config = rig.config("", targets=targets, max_sessions=1, limits=limits)
    done = rig.run(config)
    order = [(capture.target, capture.finished) for capture in done.captures]
    first_retry = [place for place, (name, _) in enumerate(order) if name == "openrouter"][1]
    assert all(finished for name, finished in order if name != "openrouter")
    assert sum(name != "openrouter" for name, _ in order[:first_retry]) == 2
    assert {capture.error.kind for capture in done.captures if capture.target == "openrouter"} == {"rate_limit"}


def test_file_mode_takes_no_session_from_realtime(rig: Any, target: Any) -> None:
    """With one session for all and slow answers in file mode, the realtime cells do not queue behind them."""
    targets = [target("openai_chat", "delay=0.6"), target("openai_realtime")]
    done = rig.run(rig.config("", targets=targets, repeats=2, max_sessions=1))
    ends = {
        name: [capture.marks[Mark.ANSWER_END] for capture in done.captures if capture.target == name]
        for name in ("openai_chat", "openai_realtime")
    }
    begun = [capture.started_ns for capture in done.captures if capture.target == "openai_realtime"]
    assert min(begun) < min(ends["openai_chat"])
