"""Later turns derived from their frames: what was changed in a capture of them is named and put right."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Capture, Ending, ErrorInfo, LaterTurn, Mark
from captures.scrub import Scrubber
from rig.agents.emulator import base_url, serve
from rig.config import parse_config
from rig.engine.plan import Cell
from rig.engine.prepare import prepare
from rig.engine.run import open_folder, run
from rig.replay.derive import derive, differences
from rig.replay.repair import repair
from rig.replay.source import ReplayError, StoredCall, StoredRun

ASK = "ask_clarifying_question"
SPEECH = b"\x10\x27\xf0\xd8" * 12_000
"""One second, loud, 24 kHz."""


def _banks() -> ModuleType:
    path = Path(__file__).parents[1] / "rig_engine" / "banks.py"
    spec = importlib.util.spec_from_file_location("banks_for_replay", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BANKS = _banks()


class Watch:
    """Looks away."""

    def attempt_ended(self, cell: Cell, capture: Capture) -> None: ...

    def waits(self, cell: Cell, error: object, wait_s: float) -> None: ...

    def target_stopped(self, target: str, error: object) -> None: ...


class Asks:
    """Asks, and books when it is told more."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        if earlier:
            return Reply(calls=(ReplyCall("book_table", {"party": 4, "time": "19:30"}),))
        return Reply(calls=(ReplyCall(ASK, {"question": "When?"}),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="When would you like to come?", pcm=SPEECH)


class Talks(Asks):
    """Speaks for three seconds, and books in its next answer."""

    answers = 0

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self.answers += 1
        if self.answers % 2:
            return Reply(text="Well, let me think about it.", pcm=3 * SPEECH)
        return Reply(calls=(ReplyCall("book_table", {"party": 4, "time": "19:30"}),))


def made(folder: Path, agent: Asks, **more: Any) -> StoredRun:
    """One call over the realtime dialect, as a run to be read again."""
    item = BANKS.BOOKING | {"followup": {"trigger_tools": [ASK], "result": "asked", "reply": "At half past seven."}}
    BANKS.write_bank(folder / "bank", {"noisy": BANKS.wav(BANKS.tone(0.5))}, (item,))
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        port = stack.enter_context(portal.wrap_async_context_manager(serve("openai_realtime", agent)))
        url = base_url("openai_realtime", "127.0.0.1", port)
        target = {"name": "agent", "adapter": "openai_realtime", "model": "m", "base_url": url}
        config = {"version": 1, "bank": "bank", "conditions": ["audio"], "targets": [target], "preflight": False}
        prepared = prepare(parse_config(yaml.safe_dump(config | more), "config.yaml", folder, {}))
        run_folder = open_folder(prepared, folder / "run", Scrubber(()))
        anyio.run(run, prepared, run_folder, Watch(), Scrubber(()))
    return StoredRun(folder / "run")


def derived(stored: StoredRun, capture: Capture) -> Capture:
    call = stored.call(capture)
    return derive(call, stored.client(capture.target), stored.prepared.resolved.config)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredRun, Capture]:
    stored = made(tmp_path_factory.mktemp("asked"), Asks())
    (capture,) = stored.folder.finished().values()
    return stored, capture


@pytest.fixture(scope="module")
def cut_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredRun, Capture]:
    stored = made(tmp_path_factory.mktemp("cut"), Talks(), barge_in={"after_s": 0.3})
    (capture,) = stored.folder.finished().values()
    return stored, capture


def test_a_second_turn_is_named_by_field_and_put_right(asked: tuple[StoredRun, Capture]) -> None:
    stored, capture = asked
    second = capture.second_turn
    assert second is not None
    assert second.after_result is not None
    assert second.answer is not None
    edited_call = second.answer.calls[0].model_copy(update={"name": "refuse"})
    marks = second.after_result.marks | {Mark.FIRST_AUDIO: 1}
    edited = capture.model_copy(
        update={
            "second_turn": second.model_copy(
                update={
                    "after_result": second.after_result.model_copy(update={"reply_transcript": "", "marks": marks}),
                    "answer": second.answer.model_copy(update={"calls": (edited_call,)}),
                }
            )
        }
    )
    again = derived(stored, edited)
    assert [one.field for one in differences(edited, again)] == [
        "second_turn.after_result.reply_transcript",
        "second_turn.after_result.marks.first_audio",
        "second_turn.answer.calls",
    ]
    assert again == capture


def test_a_barge_in_is_named_by_field_and_put_right(cut_in: tuple[StoredRun, Capture]) -> None:
    stored, capture = cut_in
    found = capture.barge_in
    assert found is not None
    assert found.answer is not None
    assert found.answer.calls[0].name == "book_table"
    changes = {"stop_latency_s": -9.0, "last_audible_ns": 7, "calls_after_onset": 3}
    answer = found.answer.model_copy(update={"calls": ()})
    edited = capture.model_copy(update={"barge_in": found.model_copy(update={**changes, "answer": answer})})
    again = derived(stored, edited)
    assert {one.field for one in differences(edited, again)} == {
        "barge_in.stop_latency_s",
        "barge_in.last_audible_ns",
        "barge_in.calls_after_onset",
        "barge_in.answer.calls",
    }
    assert again == capture


def test_what_was_observed_of_a_later_turn_stays(asked: tuple[StoredRun, Capture]) -> None:
    stored, capture = asked
    before, after = capture.second_turn, derived(stored, capture).second_turn
    assert before is not None
    assert before == after
    assert before.answer is not None
    assert before.answer.pacing is not None


def test_a_reply_that_never_left_stays_as_it_was_captured(asked: tuple[StoredRun, Capture]) -> None:
    stored, capture = asked
    assert capture.second_turn is not None
    broken = LaterTurn(
        ending=Ending.INFRASTRUCTURE_ERROR, error=ErrorInfo(kind="transient", code="connection_lost", message="gone")
    )
    edited = capture.model_copy(update={"second_turn": capture.second_turn.model_copy(update={"answer": broken})})
    again = derived(stored, edited)
    assert again.second_turn is not None
    assert again.second_turn.answer == broken


def test_a_second_answer_that_does_not_end_is_told(cut_in: tuple[StoredRun, Capture]) -> None:
    stored, capture = cut_in
    found = capture.barge_in
    assert found is not None
    assert found.answer is not None
    marks = {mark: t_ns for mark, t_ns in found.answer.marks.items() if mark in (Mark.FIRST_CHUNK, Mark.FIRST_EVENT)}
    answer = found.answer.model_copy(update={"marks": marks})
    edited = capture.model_copy(update={"barge_in": found.model_copy(update={"answer": answer}), "close_code": None})
    call = stored.call(edited)
    early = StoredCall(edited, call.cell, tuple(one for one in call.frames if one.t_ns < marks[Mark.FIRST_EVENT]))
    with pytest.raises(ReplayError, match=r"no end of the answer \(barge_in.answer\)"):
        derive(early, stored.client(capture.target), stored.prepared.resolved.config)


def test_a_damaged_line_of_a_call_that_was_cut_in_on_is_set_aside(tmp_path: Path) -> None:
    stored = made(tmp_path, Talks(), barge_in={"after_s": 0.3})
    stored.folder.captures_path.write_bytes(b'{"torn\n')
    (repaired,) = repair(stored.folder.path).repairs
    assert repaired.capture is None
    assert "the caller was to cut in on it, and the line alone told when" in repaired.told


def test_a_damaged_line_of_a_call_without_speech_comes_back_as_not_cut_in_on(tmp_path: Path) -> None:
    stored = made(tmp_path, Asks(), barge_in={"after_s": 0.3})
    (before,) = stored.folder.finished().values()
    stored.folder.captures_path.write_bytes(b'{"torn\n')
    (repaired,) = repair(stored.folder.path).repairs
    assert repaired.capture is not None
    assert repaired.capture.barge_in == before.barge_in
    assert repaired.capture.calls == before.calls
