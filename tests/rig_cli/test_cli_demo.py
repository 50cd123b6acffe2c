"""The demo in small: two of its items on its four targets, in real time. What it did is asserted, never how fast."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.bank.loader import load_bank
from rig.bank.models import CueKind
from rig.cli.run_command import DEMO_QUICK_ITEMS

ITEMS = ["demo-betting-01", "demo-maritime-01"]
ACOUSTIC = ["local-acoustic-realtime", "local-acoustic-socket", "local-acoustic-file"]
ESTIMATE = {"mean", "lo", "hi", "n", "items", "method"}
TESTED = ESTIMATE | {"p", "holm_p", "family", "verdict"}
PERCENTILES = {"p50", "p90", "p95", "p99", "n", "void"}


class Demo:
    """A finished run."""

    def __init__(self, cli: Any, config: Path) -> None:
        self.cli = cli
        self.config = config
        self.done = self.run()
        self.report: Any = json.loads(self.done.stdout)

    def run(self, *options: str) -> Any:
        """Run it, or go on with it."""
        return self.cli("run", self.config, "--out", "run", "--json", *options)

    @property
    def captures(self) -> list[Any]:
        """As they are on disk."""
        return [json.loads(line) for line in (self.cli.folder / "run" / "captures.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory, cli_in: Callable[[Path], AbstractContextManager[Any]], repo_dir: Path
) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    config = yaml.safe_load((repo_dir / "configs" / "demo.yaml").read_text())
    (folder / "small.yaml").write_text(yaml.safe_dump(config | {"items": ITEMS}))
    with cli_in(folder) as cli:
        yield Demo(cli, folder / "small.yaml")


def test_all_cells_are_measured(demo: Demo) -> None:
    assert demo.done.returncode == 0, demo.done.stderr
    assert {capture["item_id"] for capture in demo.captures} == set(ITEMS)
    planned = json.loads((demo.cli.folder / "run" / "run.json").read_text())["planned"]
    assert sorted(planned) == sorted([*ACOUSTIC, "local-cascade"])
    for name, cells in planned.items():
        assert cells == {"audio": 4, "probe": 4, "text_twin": 2}
        finished = [capture for capture in demo.captures if capture["target"] == name and capture["finished"]]
        assert len({capture["identity"] for capture in finished}) == len(finished) == 10


def test_nothing_failed(demo: Demo) -> None:
    assert demo.report["not_run"] == []
    for name, target in demo.report["targets"].items():
        failed = {kind: n for kind, n in target["endings"].items() if n and kind not in ("called", "declined")}
        assert not failed, name
        assert sum(target["endings"].values()) == target["attempts"] == 10


def test_the_three_ways_to_the_same_agent_agree_on_every_cell(demo: Demo) -> None:
    (agreement,) = demo.report["agreement"]
    assert agreement["targets"] == ACOUSTIC
    assert agreement["differing"] == []
    assert (agreement["agree"], agreement["cells"]) == (10, 10)


def test_and_so_do_the_captures_themselves(demo: Demo) -> None:
    """Not by the report's own reckoning: first call, its arguments, and the words of every probe."""
    did: dict[tuple[str, ...], dict[str, Any]] = {}
    for capture in demo.captures:
        if capture["target"] in ACOUSTIC:
            calls = [(call["name"], call["arguments"]) for call in capture["calls"][:1]]
            words = capture["reply_text"] or capture["reply_transcript"] if capture["condition"] == "probe" else ""
            cell = (capture["item_id"], str(capture["variant_id"]), capture["condition"])
            did.setdefault(cell, {})[capture["target"]] = (calls, words)
    assert len(did) == 10
    for cell, by_target in did.items():
        first, *others = (by_target[name] for name in ACOUSTIC)
        assert all(other == first for other in others), cell


def test_the_agent_that_hears_gains_on_the_one_that_does_not(demo: Demo) -> None:
    assert demo.report["null"] == "local-cascade"
    for name in ACOUSTIC:
        assert demo.report["targets"][name]["null_gain"]["mean"] > 0
    assert demo.report["targets"]["local-cascade"]["null_gain"] is None


def test_json_has_the_documented_shape(demo: Demo) -> None:
    for name, target in demo.report["targets"].items():
        estimates = [target["credit"]["cue_bearing"], target["credit"]["neutral"], target["audio_minus_twin"]]
        estimates += [target["both_right"]]
        if name in ACOUSTIC:
            assert set(target["null_gain"]) >= TESTED
            estimates += target["probe"].values()
            assert len(target["probe"]) == 4
        for estimate in estimates:
            assert set(estimate) >= ESTIMATE
        assert target["level_contrast"] is None, "not measured: no item of these asks for it"
        for latency in target["latency"].values():
            assert latency is None or set(latency) >= PERCENTILES
        paced = set(target["pacing"] or ()) >= {"p50_ms", "p99_ms", "max_ms"}
        assert paced is (name != "local-acoustic-file")


def test_only_streamed_turns_have_streamed_latencies(demo: Demo) -> None:
    for name in ACOUSTIC:
        latency = demo.report["targets"][name]["latency"]
        streamed, filed = ("commit_to_tool_call", "request_to_tool_call")
        given, absent = (filed, streamed) if name.endswith("file") else (streamed, filed)
        assert latency[given]["n"] + latency[given]["void"] > 0
        assert latency[absent] is None
        assert (latency["speech_end_to_tool_call"] is None) is name.endswith("file")


def test_going_on_runs_nothing_more_and_reports_the_same(demo: Demo) -> None:
    before = demo.captures
    planned = json.loads(demo.run("--dry-run").stdout)
    assert {row["target"]: row["cells"] for row in planned["targets"]} == dict.fromkeys(
        [*ACOUSTIC, "local-cascade"], 10
    )
    again = demo.run()
    assert again.returncode == 0
    assert "run: 40 cells are done already; 0 to go" in again.stderr
    assert demo.captures == before
    assert json.loads(again.stdout) == demo.report


def test_reports_for_people(demo: Demo) -> None:
    tables = demo.cli("report", "run")
    markdown = demo.cli("report", "run", "--markdown")
    assert (tables.returncode, markdown.returncode) == (0, 0)
    for name in [*ACOUSTIC, "local-cascade"]:
        assert name in tables.stdout
        assert f"| {name} " in markdown.stdout
    for table in ("Credit", "Hearing beyond the words", "Endings", "Latency", "Pacing", "Agreement"):
        assert table in tables.stdout
        assert table in markdown.stdout
    assert "\x1b" not in tables.stdout, "no colours where nobody looks"


def test_the_quick_demo_is_a_third_with_every_kind_of_cue(cli: Any) -> None:
    whole, quick = (json.loads(cli("demo", *more, "--dry-run", "--json").stdout) for more in ((), ("--quick",)))
    for all_of_it, part in zip(whole["targets"], quick["targets"], strict=True):
        assert 0.25 <= part["cells"] / all_of_it["cells"] <= 0.4
        assert part["wall_minutes"] < 3
    bank = load_bank("demo")
    items = [bank.item(item_id) for item_id in DEMO_QUICK_ITEMS]
    assert {bank.cue_kind(item, variant) for item in items for variant in item.variants} == {None, *CueKind}
    assert {item.explicit_policy is None for item in items} == {True, False}
    assert any(item.followup for item in items)
    assert any(item.design == "invariant_control" for item in items)


def test_the_whole_demo_as_a_plan(cli: Any) -> None:
    done = cli("demo", "--dry-run", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)
    assert [row["target"] for row in plan["targets"]] == [*ACOUSTIC, "local-cascade"]
    for row in plan["targets"]:
        assert row["cells"] == row["audio"] + row["text_twin"] + row["probe"]
        assert row["text_twin"] >= 28
        assert row["audio"] >= 64
        assert 0 < row["audio_minutes"] < 20
        assert 0 < row["wall_minutes"] < 5
    assert (plan["not_planned"], plan["input_errors"]) == ([], [])
    assert list(cli.folder.iterdir()) == [], "nothing is written"
