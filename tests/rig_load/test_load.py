"""`rig load`: its figures by example, and ramps against real emulators on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from captures.capture import Capture, Condition, Ending, ErrorInfo, Mark, Pacing
from rig.cli.load_command import seconds_of
from rig.config import ConfigError, parse_config
from rig.engine.prepare import prepare
from rig.load.figures import LoadLevel, level_of, spread
from rig.load.ramp import check

MS = 1_000_000


def _call(latency_ms: int = 500, late_ms: int = 1, error: str | None = None, warnings: tuple[str, ...] = ()) -> Capture:
    return Capture(
        identity="id",
        target="t",
        item_id="i",
        variant_id="v",
        condition=Condition.AUDIO,
        finished=error is None,
        started_ns=0,
        adapter="rig_socket",
        wire_version=1,
        parser_version=1,
        ending=Ending.CALLED if error is None else Ending.INFRASTRUCTURE_ERROR,
        error=None if error is None else ErrorInfo(kind="transient", code=error, message=""),
        marks={
            Mark.CONNECT_START: 0,
            Mark.SESSION_READY: 30 * MS,
            Mark.FIRST_CHUNK: 40 * MS,
            Mark.COMMIT: 1000 * MS,
            Mark.FIRST_CALL_COMPLETE: (1000 + latency_ms) * MS,
        }
        if error is None
        else {},
        pacing=Pacing(
            pace=1.0,
            chunk_ms=20,
            chunks=50,
            lateness_p50_ns=MS // 2,
            lateness_p99_ns=late_ms * MS,
            lateness_max_ns=late_ms * MS,
            last_chunk_ns=0,
            commit_ns=0,
        ),
        warnings=warnings,
    )


def _level(calls: list[Capture], cpu_share: float = 0.2) -> LoadLevel:
    return level_of(
        10, 60.0, calls, void_limit_s=0.02, loop_lag_ns=3 * MS, cpu_share=cpu_share, spent=None, stopped=None
    )


def test_a_levels_figures() -> None:
    calls = [_call(400 + 10 * n) for n in range(20)] + [_call(error="http_503") for _ in range(5)]
    level = _level(calls)
    assert level.calls == 25
    assert level.error_share == 0.2
    assert level.errors == {"http_503": 5}
    assert level.endings == {"called": 20, "infrastructure_error": 5}
    assert level.latency["commit_to_tool_call"].p50 == pytest.approx(0.495)
    assert level.latency["commit_to_tool_call"].p95 == pytest.approx(0.5805)
    assert level.latency["set_up"].p50 == pytest.approx(0.03)
    assert not level.own.saturated


def test_a_percentile_of_too_few_is_absent_and_of_none_too() -> None:
    assert spread([0.1] * 19).p95 is None
    assert spread([]) == spread([]).model_copy(update={"p50": None, "p95": None, "n": 0})
    assert _level([_call(error="dns")]).latency == {}


def test_void_calls_enter_no_latency_and_show_whose_limit_it_is() -> None:
    level = _level([_call() for _ in range(15)] + [_call(latency_ms=9000, late_ms=50) for _ in range(2)])
    assert level.latency["commit_to_tool_call"].n == 15
    assert level.own.void_share == pytest.approx(2 / 17)
    assert level.own.chunk_p99_ms == 50
    assert level.own.saturated
    assert _level([_call()], cpu_share=0.9).own.saturated
    assert _level([_call(warnings=("99 bytes of audio were still unsent at the commit",))]).own.backlogged == 1


def _config(**target: object) -> str:
    base = {"name": "t", "adapter": "openai_realtime", "model": "m"}
    config = {"version": 1, "bank": "demo", "items": ["demo-emergency-01"], "targets": [base | target]}
    return json.dumps(config)


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ({"base_url": "ws://127.0.0.1:9/v1/realtime"}, True),
        ({"base_url": "ws://localhost:9/v1/realtime"}, True),
        ({"base_url": "wss://agent.example/v1/realtime"}, False),
        ({"base_url": "wss://127.0.0.1.example/v1/realtime"}, False),
        ({"base_url": "wss://agent.example/v1/realtime", "i_own_this": True}, True),
        ({"api_key_env": "KEY"}, False),
        ({"embedded_agent": "local-acoustic"}, True),
    ],
)
def test_only_what_the_user_owns_is_loaded(target: dict[str, object], allowed: bool) -> None:
    prepared = prepare(parse_config(_config(**target), "config", Path(), {"KEY": "k"}))
    if allowed:
        assert check(prepared, prepared.targets[0])
    else:
        with pytest.raises(ValueError, match="needs `i_own_this: true`"):
            check(prepared, prepared.targets[0])


def _rig_load(folder: Path, config: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "config.yaml").write_text(config)
    command = [sys.executable, "-P", "-m", "rig", "load", "config.yaml", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_a_ramp_against_an_emulator(tmp_path: Path) -> None:
    config = _config(embedded_agent="local-cascade")
    done = _rig_load(tmp_path, config, "--ramp", "1,4", "--hold", "2", "--json", "--picture", "load.svg")
    assert done.returncode == 0, done.stderr
    one, four = json.loads(done.stdout)["levels"]
    assert (one["concurrency"], four["concurrency"]) == (1, 4)
    assert one["endings"].keys() | four["endings"].keys() <= {"called", "declined"}
    assert 1 <= one["calls"] <= four["calls"] >= 4
    assert four["latency"]["set_up"]["n"] >= 4
    assert four["own"]["chunk_p99_ms"] is not None
    assert "<svg" in (tmp_path / "load.svg").read_text()


def test_too_many_errors_end_it(tmp_path: Path) -> None:
    config = _config(embedded_agent="local-cascade", faults=["http=503"])
    done = _rig_load(tmp_path, config, "--ramp", "12,50", "--hold", "4")
    assert done.returncode == 1, done.stderr
    assert "rig: ended at 12 at once: 100 % of 1" in done.stderr
    assert "http_503" in done.stdout


@pytest.mark.parametrize("ramp", ["", "0", "1,x", "99999"])
def test_a_ramp_that_is_none_is_named(tmp_path: Path, ramp: str) -> None:
    done = _rig_load(tmp_path, _config(embedded_agent="local-cascade"), "--ramp", ramp)
    assert done.returncode == 2
    assert "--ramp" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hold_is_read_with_its_unit() -> None:
    assert [seconds_of(text) for text in ("60", "60s", "1.5m", "1s", "60m")] == [60, 60, 90, 1, 3600]
    for text in ("", "s", "x", "0s", "61m", "nan", "inf", "-5s", "1h"):
        with pytest.raises(ConfigError, match="--hold"):
            seconds_of(text)
