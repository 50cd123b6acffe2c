"""The caller cuts in on the agent's speech, through the engine, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Condition, Ending, Mark
from rig.agents.emulator import ROUTES, base_url, serve
from rig.config import ConfigError, parse_config
from rig.engine.prepare import prepare

SECOND = b"\x10\x27\xf0\xd8" * 12_000
"""One second, loud, 24 kHz."""
TARGETS: dict[str, dict[str, Any]] = {
    "cascade": {"settings": {"transcriber": {"model": "w"}}},
    "gemini_live": {"model": "gemini-3.8-live"},
    "vercel_gateway": {"model": "openai/gpt-realtime"},
    "template_socket": {"settings": {"template": "plain_json"}},
    "twilio_media": {
        "settings": {"tool_calls": {"none": True}, "greeting": "none", "end_silence_s": 1.0},
        "turn_control": {"mode": "server_vad"},
    },
    "openai_live": {"settings": {"delegate_model": "d"}, "turn_control": {"mode": "server_vad"}},
    "nova_sonic": {
        "model": "amazon.nova-2-sonic-v1:0",
        "settings": {"stream": "websocket"},
        "turn_control": {"mode": "server_vad"},
    },
}


class Talker:
    """Speaks for three seconds, and books in its next answer."""

    def __init__(self) -> None:
        self._answers = 0

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self._answers += 1
        if self._answers % 2:
            return Reply(text="Well, let me think about it.", pcm=3 * SECOND)
        return Reply(calls=(ReplyCall("book_table", {"party": 4, "time": "19:30"}),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.", pcm=SECOND)


@contextmanager
def _targets(*names: str, **changes: Any) -> Iterator[list[dict[str, Any]]]:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        targets = []
        for name in names:
            port = stack.enter_context(portal.wrap_async_context_manager(serve(name, Talker())))
            target = {"name": name, "adapter": name, "model": "m", "base_url": base_url(name, "127.0.0.1", port)}
            targets.append(target | TARGETS.get(name, {}) | changes)
        yield targets


def _config(rig: Any, targets: list[dict[str, Any]], **barge_in: Any) -> dict[str, Any]:
    config: dict[str, Any] = rig.config("", limits={"setup_s": 10, "turn_s": 10})
    return config | {"targets": targets, "barge_in": {"after_s": 0.5, **barge_in}}


@pytest.fixture
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank", {"clear": banks.wav(banks.tone(0.6))})


def test_every_dialect(rig: Any, bank: Path) -> None:
    with _targets(*ROUTES) as targets:
        done = rig.run(_config(rig, targets))
    problems = []
    truncates = set()
    for capture in done.captures:
        found = capture.barge_in
        name = capture.target
        if not ROUTES[name].websocket:
            assert found is None  # file mode: nothing to cut in on
        elif found is None or found.not_played or found.answer is None:
            problems.append(f"{name}: {capture.ending} {capture.error} {found and found.not_played}")
        elif [call.name for call in found.answer.calls] != ([] if name == "twilio_media" else ["book_table"]):
            problems.append(f"{name}: answered by {found.answer.ending} {found.answer.error}")
        else:
            after_s = (found.onset_ns - capture.marks[Mark.FIRST_AUDIBLE]) / 1e9
            if not 0.49 <= after_s < 1:
                problems.append(f"{name}: cut in after {after_s:g} s")
            truncates |= {name} if found.truncated_ms is not None else set()
            # The emulators send an answer faster than it is heard: it has ended, and is cut in playback.
            if found.stopped_by == "us" and (capture.ending, found.cancelled) != (Ending.DECLINED, False):
                problems.append(f"{name}: {capture.ending} {capture.ending_detail}")
    assert not problems, "\n".join(problems)
    assert done.replayed() == []
    assert {"openai_realtime", "azure_realtime", "xai_realtime", "vercel_gateway", "rig_socket"} <= truncates
    assert "the caller cut in on" in "\n".join(done.report()["warnings"])


def test_under_server_vad_the_peer_yields_when_it_hears_the_caller(rig: Any, bank: Path) -> None:
    with _targets("openai_realtime", turn_control={"mode": "server_vad"}) as targets:
        done = rig.run(_config(rig, targets))
    assert done.replayed() == []
    capture = done.only
    found = capture.barge_in
    assert (found.stopped_by, found.cancelled) == ("peer", False)
    assert -0.03 < found.stop_latency_s < 0.6  # loudness is judged in steps of 10 ms
    heard_s = (found.last_audible_ns - capture.marks[Mark.FIRST_AUDIBLE]) / 1e9
    assert found.truncated_ms / 1e3 == pytest.approx(heard_s, abs=0.05)
    assert found.answer.calls[0].name == "book_table"
    assert Mark.COMMIT not in found.answer.marks


def test_a_running_answer_is_cancelled_and_its_rest_counts(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    tenth = SECOND[: len(SECOND) // 10]
    created = ga.created()
    item = {"id": "it1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    added = {"type": "response.output_item.added", "response_id": "resp_1", "output_index": 0, "item": item}
    speech = [step for _ in range(8) for step in (("send", ga.audio(tenth)), ("wait", 0.1))]
    cancelled = ga.done("cancelled", (), {"type": "cancelled", "reason": "client_cancelled"})
    script = [
        *ga.COMMITTED,
        *ga.sends([created, added]),
        *speech[:12],
        ("expect", "response.cancel"),
        *speech[:2],
        *ga.sends([cancelled]),
        ("expect", "input_audio_buffer.commit"),
        ("expect", "response.create"),
        *[(kind, _renamed(sent)) for kind, sent in ga.called()],
    ]
    server = serve(script)
    done = rig.run(rig.config(server.ws_url, barge_in={"after_s": 0.5}))
    capture = done.only
    assert done.replayed() == []
    found = capture.barge_in
    assert (capture.ending, capture.finished) == (Ending.UNFINISHED, True)
    assert capture.ending_detail == "the caller cut in after 0.5 s of speech"
    assert (found.cancelled, found.stopped_by) == (True, "us")
    assert found.truncated_ms == pytest.approx(500, abs=25)
    assert found.stop_latency_s == pytest.approx(0.15, abs=0.1)
    assert [call.name for call in found.answer.calls] == ["book_table"]
    assert Mark.FIRST_AUDIO not in found.answer.marks
    sent = server.connections[0].types
    assert sent.index("response.cancel") < sent.index("conversation.item.truncate")
    truncate = server.connections[0].first("conversation.item.truncate")
    assert (truncate["item_id"], truncate["audio_end_ms"]) == ("it1", found.truncated_ms)


def _renamed(sent: Any) -> Any:
    """Under another response's id."""
    return yaml.safe_load(yaml.safe_dump(sent).replace("resp_1", "resp_2"))


def test_an_agent_that_only_calls_is_not_cut_in_on(rig: Any, serve: Any, ga: Any, bank: Path) -> None:
    server = serve([*ga.COMMITTED, *ga.called()])
    capture = rig.run(rig.config(server.ws_url, barge_in={"after_s": 0.2})).only
    assert capture.ending is Ending.CALLED
    assert capture.barge_in.not_played == "the agent said nothing audible"
    assert (capture.barge_in.answer, capture.barge_in.stop_latency_s) == (None, None)


class TestThePlan:
    """Which cells are cut in on, and what names them."""

    def cells(self, rig: Any, **changes: Any) -> Any:
        config = rig.config("ws://127.0.0.1:1/", conditions=["audio", "text_twin"], **changes)
        return prepare(parse_config(yaml.safe_dump(config), "config.yaml", rig.folder, {})).plan.cells

    def test_audio_cells_only_and_the_identity_tells(self, rig: Any, bank: Path) -> None:
        plain, half, second = self.cells(rig), self.cells(rig, barge_in={}), self.cells(rig, barge_in={"after_s": 1})
        by_condition = {cell.condition: cell for cell in half}
        assert by_condition[Condition.AUDIO].barge_in.after_s == 0.5
        assert by_condition[Condition.AUDIO].barge_in.clip is by_condition[Condition.AUDIO].clip
        assert by_condition[Condition.TEXT_TWIN].barge_in is None
        ids = [{cell.condition: cell.identity for cell in cells} for cells in (plain, half, second)]
        assert len({one[Condition.AUDIO] for one in ids}) == 3
        assert len({one[Condition.TEXT_TWIN] for one in ids}) == 1

    def test_another_clip_is_named_by_item_and_variant(self, rig: Any, bank: Path) -> None:
        cells = self.cells(rig, barge_in={"clip": "booking/clear"})
        assert next(cell for cell in cells if cell.barge_in).barge_in.name == "booking/clear"
        with pytest.raises(ConfigError, match="'booking/loud' is no clip of the chosen items"):
            self.cells(rig, barge_in={"clip": "booking/loud"})
