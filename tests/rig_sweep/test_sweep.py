"""`rig sweep`: how a turn's end is judged, what a config expands to, and a sweep against a real emulator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.dialect import TurnMode
from captures.capture import Capture, Condition, Ending, Mark
from captures.events import AudioDelta, Event, SpeechStopped, TimedEvent, ToolCall, TurnCommitted
from rig.config import ConfigError, ResolvedConfig, parse_config
from rig.sweep.expand import Point, expanded
from rig.sweep.measure import CallEnd, PointFigures, call_end, figures, with_frontier

MS = 1_000_000
START = 5_000 * MS


def _capture(commit_ms: int | None = None) -> Capture:
    marks = {Mark.FIRST_CHUNK: START}
    if commit_ms is not None:
        marks[Mark.COMMIT] = START + commit_ms * MS
    return Capture(
        identity="id",
        target="t",
        item_id="i",
        variant_id="v",
        condition=Condition.AUDIO,
        finished=True,
        started_ns=0,
        adapter="rig_socket",
        wire_version=1,
        parser_version=1,
        ending=Ending.DECLINED,
        marks=marks,
    )


def _end(events: list[tuple[int, Event]], commit_ms: int | None = None) -> CallEnd:
    timed = [TimedEvent(START + ms * MS, event) for ms, event in events]
    return call_end(_capture(commit_ms), timed, speech_end_s=3.0, void_limit_s=0.02)


CALL = ToolCall(call_id="c", name="x", arguments_json="{}", arguments={}, output_index=0)


def test_the_peers_word_after_the_callers_last_is_the_added_latency() -> None:
    assert _end([(3500, SpeechStopped()), (3510, TurnCommitted())]).added_s == pytest.approx(0.5)


def test_our_commit_ends_a_manual_turn() -> None:
    end = _end([(4000, CALL)], commit_ms=3200)
    assert not end.cut_off
    assert end.added_s == pytest.approx(0.2)


@pytest.mark.parametrize(
    "event", [SpeechStopped(), TurnCommitted(), CALL, AudioDelta(pcm=b"\xff\x3f\x00\xc0" * 480, rate_hz=24_000)]
)
def test_a_turn_ended_or_answered_before_the_last_word_is_cut_off(event: Event) -> None:
    end = _end([(1500, event), (3600, SpeechStopped())])
    assert end.cut_off
    assert end.added_s is None


def test_what_cuts_nothing_off() -> None:
    assert not _end([(2950, SpeechStopped())]).cut_off  # within the margin of the last word's end
    assert _end([(2950, SpeechStopped())]).added_s == pytest.approx(-0.05)
    assert not _end([(1000, AudioDelta(pcm=bytes(960), rate_hz=24_000))]).cut_off  # silence is no answer
    assert not _end([(-2000, SpeechStopped())]).cut_off  # before the caller began
    assert _end([]).added_s is None


def _point(target: str, added_s: list[float], cut: int) -> PointFigures:
    ends = [CallEnd(f"i{n}", 0, False, s, None) for n, s in enumerate(added_s)]
    ends += [CallEnd(f"c{n}", 0, True, None, None) for n in range(cut)]
    return figures(Point(target, target, TurnMode.SERVER_VAD, {}), ends, failed=0)


def test_the_frontier_is_what_no_other_way_beats() -> None:
    quick, slow, worse = _point("a", [0.2] * 6, 4), _point("a", [0.8] * 9, 1), _point("a", [0.9] * 8, 2)
    elsewhere = _point("b", [5.0], 9)
    assert [one.on_frontier for one in with_frontier([quick, slow, worse, elsewhere])] == [True, True, False, True]


def test_few_values_have_no_p90_and_none_no_figure() -> None:
    assert _point("a", [0.2] * 9, 0).added_p90_s is None
    assert _point("a", [0.2] * 10, 0).added_p90_s == pytest.approx(0.2)
    nothing = _point("a", [], 0)
    assert (nothing.cut_off, nothing.added_p50_s, nothing.calls) == (None, None, 0)


def _resolved(**keys: object) -> ResolvedConfig:
    config = {
        "version": 1,
        "bank": "demo",
        "targets": [
            {"name": "ga", "adapter": "openai_realtime", "model": "m", "embedded_agent": "local-cascade"},
            {"name": "gem", "adapter": "gemini_live", "model": "gemini-2.5-flash-native-audio",
             "embedded_agent": "local-cascade"},
        ],
    }  # fmt: skip
    return parse_config(json.dumps(config | keys), "config", Path(), {})


def test_a_config_expands_to_what_each_target_offers() -> None:
    sweep = expanded(_resolved(), {})
    assert [point.label for point in sweep.points if point.target == "ga"] == [
        "server_vad silence_duration_ms 200",
        "server_vad silence_duration_ms 500",
        "server_vad silence_duration_ms 800",
        "semantic_vad",
        "manual",
    ]
    assert [point.mode for point in sweep.points if point.target == "gem"] == ["server_vad"] * 3 + ["manual"]
    (left_out,) = sweep.left_out
    assert left_out.startswith("gem: semantic_vad: ")
    assert "demo-emergency-01" in sweep.resolved.config.items  # its caller breaks off
    assert "demo-retail-01" not in sweep.resolved.config.items
    assert sweep.resolved.config.conditions == (Condition.AUDIO,)


def test_its_own_ways_and_items_are_kept() -> None:
    sweep = expanded(
        _resolved(sweep={"server_vad": {"silence_duration_ms": [300], "threshold": [0.3, 0.6]}}, items=["demo-b*"]), {}
    )
    assert [dict(point.parameters) for point in sweep.points if point.target == "ga"] == [
        {"silence_duration_ms": 300, "threshold": 0.3},
        {"silence_duration_ms": 300, "threshold": 0.6},
    ]
    assert sweep.resolved.config.items == ("demo-b*",)
    assert any(line.startswith("gem: server_vad silence_duration_ms 300 threshold") for line in sweep.left_out)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sweep": {"server_vad": {"no_such_parameter": [1]}}}, "nothing of it is offered by any target"),
        ({"sweep": {"manual": {}, "server_vad": {"silence_duration_ms": list(range(1, 202))}}}, "at most 200 are run"),
        ({"sweep": {}}, "sweep"),
        ({"sweep": {"server_vad": {"silence_duration_ms": []}}}, "nothing of it is offered"),
    ],
)
def test_a_sweep_that_is_none_is_named(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        expanded(_resolved(**keys), {})


def test_a_sweep_of_an_emulator(tmp_path: Path) -> None:
    config = {
        "version": 1,
        "bank": "demo",
        "items": ["demo-emergency-01"],
        "targets": [{"name": "ga", "adapter": "openai_realtime", "model": "m", "embedded_agent": "local-cascade"}],
        "sweep": {"server_vad": {"silence_duration_ms": [400]}, "manual": {}},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    command = [
        sys.executable,
        "-P",
        "-m",
        "rig",
        "sweep",
        "config.yaml",
        "--out",
        "run",
        "--json",
        "--picture",
        "s.svg",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    detected, manual = json.loads(done.stdout)["points"]
    assert detected["point"] == {"target": "ga", "mode": "server_vad", "parameters": {"silence_duration_ms": 400}}
    # The emulator's detector waits for 400 ms of quiet: earlier it cannot end a turn.
    assert detected["added_p50_s"] > 0.3
    assert manual["cut_off"]["mean"] == 0.0
    assert manual["calls"] == detected["calls"] >= 2
    assert "<svg" in (tmp_path / "s.svg").read_text()
