"""Realtime minus file mode: known differences are found again, and what cannot be compared is said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Capture, Condition, Ending, Mark
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.cli.compare_command import print_serving
from rig.report.html.serving import serving_page
from rig.report.runs import ReportError
from rig.report.serving import LEAST_SHARED, MEASURES, ServedPair, serving_report
from rig.report.serving_tables import serving_json, serving_notes, serving_tables

Make = Callable[..., Capture]
Write = Callable[..., Path]
ITEMS = 60


@pytest.fixture
def small_bank(tmp_path: Path) -> Bank:
    """Many items of the form of the small bank: calm → `wait`, alarm behind the caller → `act`."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(ITEMS):
        name = f"item-{number:02}"
        item = {
            "id": name,
            "policy_mode": "implicit",
            "domain": "test",
            "transcript": "Hello.",
            "scenario": "A call.",
            "tools": [{"name": "wait", "description": "Wait."}, {"name": "act", "description": "Act."}],
            "variants": [
                {"variant_id": "calm", "gold": {"tool": "wait"}},
                {
                    "variant_id": "alarm",
                    "scene": {"kind": "background", "asset": "synth:beep"},
                    "gold": {"tool": "act"},
                },
            ],
            "perception_probe": {
                "question": "What else is heard?",
                "options": ["nothing", "an alarm"],
                "gold_by_variant": {"calm": "nothing", "alarm": "an alarm"},
            },
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(item), encoding="utf-8")
    return load_bank(folder)


@pytest.fixture
def agent(make_capture: Make) -> Callable[..., list[Capture]]:
    """`agent(name, acts, hears, names_option)`: a share of calls made, of alarms heard, of probes answered."""

    def cells(name: str, acts: float = 1.0, hears: float = 1.0, names_option: float = 1.0) -> list[Capture]:
        rng = random.Random(f"7/{name}")
        found = []
        for number in range(ITEMS):
            item = f"item-{number:02}"
            heard = rng.random() < hears
            for variant in ("calm", "alarm"):
                alarm = heard and variant == "alarm"
                tool = ("act" if alarm else "wait") if rng.random() < acts else None
                says = ("an alarm" if alarm else "nothing") if rng.random() < names_option else "How can I help?"
                found.append(make_capture(name, item, variant, Condition.AUDIO, tool))
                found.append(make_capture(name, item, variant, Condition.PROBE, text=says))
        return found

    return cells


@pytest.fixture
def both(write_run: Write) -> Callable[..., Path]:
    """`both(realtime, file)` → a run of two targets of one family."""

    def write(realtime: Sequence[Capture], file: Sequence[Capture], **more: Any) -> Path:
        held = [
            one.model_copy(update={"marks": {m: t for m, t in one.marks.items() if m is not Mark.FIRST_CHUNK}})
            for one in file
        ]
        targets = {
            captures[0].target: {
                "role": "contestant",
                "adapter": "any",
                "family": "one",
                "capabilities": {"streams_audio": streams},
            }
            for captures, streams in ((realtime, True), (held, False))
        }
        return write_run([*realtime, *held], "run", targets=targets, **more)

    return write


def only(report_of: Path, **more: Any) -> ServedPair:
    (pair,) = serving_report([report_of], **more).pairs
    return pair


def change(pair: ServedPair, measure: str) -> tuple[float, float | None, float | None]:
    delta = pair.deltas[measure]
    assert delta is not None
    return delta.change.mean, delta.change.lo, delta.change.hi


def within(pair: ServedPair, measure: str, truth: float) -> bool:
    _, lo, hi = change(pair, measure)
    assert lo is not None
    assert hi is not None
    return lo <= truth <= hi


def test_an_agent_that_acts_less_when_served_realtime(both: Callable[..., Path], agent: Any) -> None:
    pair = only(both(agent("rt", acts=0.7), agent("held")))
    assert within(pair, "acts", -0.3)
    assert change(pair, "acts")[2] < 0  # type: ignore[operator]
    assert within(pair, "credit", -0.3)
    # What it heard is untouched: no difference at all, and no interval where every cell agrees.
    assert change(pair, "probe_wrong") == (0.0, None, None)
    assert change(pair, "unsafe_execution") == (0.0, None, None)


def test_an_agent_that_hears_less_when_served_realtime(both: Callable[..., Path], agent: Any) -> None:
    pair = only(both(agent("rt", hears=0.6), agent("held")))
    # Half the probes are on alarms, so a third of them unheard costs half as much over all cells.
    assert within(pair, "probe_wrong", -0.2)
    assert within(pair, "credit", -0.4)
    assert within(pair, "unsafe_execution", 0.4)
    assert change(pair, "acts") == (0.0, None, None)


def test_replies_that_name_no_option_are_wrong_or_missing(both: Callable[..., Path], agent: Any) -> None:
    pair = only(both(agent("rt", names_option=0.5), agent("held")))
    assert within(pair, "probe_wrong", -0.5)
    assert change(pair, "probe_missing") == (0.0, None, None)
    wrong, missing = pair.deltas["probe_wrong"], pair.deltas["probe_missing"]
    assert wrong is not None
    assert missing is not None
    assert wrong.change.n == 2 * ITEMS > missing.change.n


def test_the_same_agent_twice_shows_zero_everywhere(both: Callable[..., Path], agent: Any) -> None:
    realtime = agent("rt", acts=0.8, hears=0.5)
    pair = only(both(realtime, [one.model_copy(update={"target": "held"}) for one in realtime]))
    assert {key: change(pair, key)[0] for key in pair.deltas} == {measure.key: 0.0 for measure in MEASURES}


def test_several_pairs_are_pooled_and_those_without_an_interval_named(write_run: Write, agent: Any) -> None:
    names = {"rt1": 0.7, "rt2": 0.5, "rt3": 1.0}
    captures = [cell for name, acts in names.items() for cell in agent(name, acts=acts)] + agent("held")
    run = write_run(captures, "run", config={"pairs": [{"realtime": name, "file": "held"} for name in names]})
    report = serving_report([run])
    row = report.pooled["acts"]
    assert row.pooled is not None
    assert row.pooled.pairs == 2
    assert row.pooled.lo <= -0.4 <= row.pooled.hi
    assert row.left_out == ("rt3 − held",)
    assert report.pooled["probe_wrong"].pooled is None
    shown = serving_tables(report)[0]
    assert [row[0] for row in shown.rows] == ["rt1 − held", "rt2 − held", "rt3 − held", "pooled over pairs"]
    assert "DerSimonian" in shown.caption
    assert all(measure.cells in shown.caption and measure.unit in shown.caption for measure in MEASURES)


def test_times_stand_side_by_side_under_their_origins(both: Callable[..., Path], agent: Any) -> None:
    report = serving_report([both(agent("rt"), agent("held"))])
    latency = serving_json(report)["pairs"][0]["latency"]
    assert set(latency["rt"]) == {"commit_to_tool_call"}
    assert set(latency["held"]) == {"request_to_tool_call"}
    assert latency["rt"]["commit_to_tool_call"]["origin"] != latency["held"]["request_to_tool_call"]["origin"]
    assert not any("call" in key for key in serving_json(report)["pairs"][0]["deltas"])
    times = next(table for table in serving_tables(report) if table.title.startswith("Time"))
    assert "no difference is taken" in times.caption
    assert "commit → tool call" in times.rows[0][1]
    assert "request → tool call" in times.rows[0][2]


def test_cells_of_one_side_alone_are_listed(both: Callable[..., Path], agent: Any) -> None:
    file = [
        one.model_copy(update={"ending": Ending.INFRASTRUCTURE_ERROR}) if one.item_id == "item-03" else one
        for one in agent("held")
    ]
    report = serving_report([both([one for one in agent("rt") if one.item_id != "item-05"], file)])
    (pair,) = report.pairs
    assert not pair.refused
    assert {(cell.item_id, cell.measured_by) for cell in pair.unshared} == {("item-03", "rt"), ("item-05", "held")}
    assert len(pair.unshared) == 8
    listed = dict(serving_notes(report))["Cells that not both sides measured"]
    assert any("item-03/alarm (audio, repeat 0): only rt" in line for line in listed)
    assert len(serving_json(report)["pairs"][0]["unshared"]) == 8


@pytest.mark.parametrize(("missing", "refused"), [(6, False), (7, True)])
def test_below_nine_in_ten_shared_a_pair_is_refused(
    both: Callable[..., Path], agent: Any, missing: int, refused: bool
) -> None:
    assert LEAST_SHARED == 0.9
    left_out = {f"item-{number:02}" for number in range(missing)}
    run = both([one for one in agent("rt") if one.item_id not in left_out], agent("held"))
    pair = only(run)
    assert bool(pair.refused) is refused
    if refused:
        assert "106 of 120 audio cells (88%)" in pair.refused
        assert pair.deltas == {}
        assert serving_tables(serving_report([run]))[0].title == "Cells of each pair"
        assert any(heading == "Refused" for heading, _ in serving_notes(serving_report([run])))


def test_planned_cells_count_as_not_shared(both: Callable[..., Path], agent: Any) -> None:
    planned = {"rt": {"audio": 2 * ITEMS, "probe": 2 * ITEMS}, "held": {"audio": 300, "probe": 2 * ITEMS}}
    pair = only(both(agent("rt"), agent("held"), planned=planned))
    assert "120 of 300 audio cells" in pair.refused


def test_a_condition_that_one_side_cannot_run_is_no_reason_to_refuse(both: Callable[..., Path], agent: Any) -> None:
    run = both([one for one in agent("rt") if one.condition is Condition.AUDIO], agent("held"))
    pair = only(run)
    assert not pair.refused
    assert pair.deltas["probe_wrong"] is None
    assert "not run on both" in next(t for t in serving_tables(serving_report([run])) if "Cells" in t.title).rows[0]


def test_sides_that_are_not_what_the_pair_says_are_refused(both: Callable[..., Path], agent: Any) -> None:
    run = both(agent("rt"), agent("held"))
    assert "cannot be the realtime side" in only(run, pairs=[("held", "rt")]).refused


def test_steps_of_a_family_are_compared_one_after_the_other(write_run: Write, agent: Any, make_capture: Make) -> None:
    names = ("gen1", "gen2", "gen3")
    captures = [cell for name, hears in zip(names, (0.2, 0.6, 0.6), strict=True) for cell in agent(name, hears=hears)]
    captures += [
        make_capture(name, f"item-{n:02}", None, Condition.TEXT_TWIN, "wait") for name in names for n in range(ITEMS)
    ]
    run = write_run(captures, "run", config={"steps": [{"name": "gen", "targets": list(names)}]})
    report = serving_report([run])
    assert [(step.first, step.second) for step in report.steps] == [("gen1", "gen2"), ("gen2", "gen3")]
    gain = report.steps[0].deltas["gain"]
    assert gain is not None
    assert gain.change.lo is not None
    assert gain.change.hi is not None
    assert gain.change.lo <= 0.4 <= gain.change.hi
    assert report.pooled["credit"].pooled is None


def test_without_pairs_it_says_how_to_name_them(write_run: Write, agent: Any) -> None:
    run = write_run(agent("lonely"), "run")
    with pytest.raises(ReportError, match="--pair REALTIME=FILE"):
        serving_report([run])
    with pytest.raises(ReportError, match="no target 'other'"):
        serving_report([run], [("lonely", "other")])


def test_page_and_json_hold_what_the_tables_do(both: Callable[..., Path], agent: Any) -> None:
    report = serving_report([both(agent("rt", acts=0.5), agent("held"))])
    page = serving_page(report)
    for table in serving_tables(report):
        assert table.title in page
    assert "src=" not in page
    assert json.loads(json.dumps(serving_json(report), allow_nan=False))["pairs"][0]["realtime"] == "rt"


def test_a_refused_pair_ends_with_its_reason_and_two(
    both: Callable[..., Path], agent: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = both([one for one in agent("rt") if one.item_id > "item-30"], agent("held"))
    assert print_serving([run], [], None, as_json=False, markdown=False, html=None) == 2
    assert "58 of 120 audio cells (48%)" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "page.html"
    assert print_serving([run], ["held=rt"], None, as_json=False, markdown=True, html=page) == 2
    assert "## Refused" in capsys.readouterr().out
    assert "cannot be the realtime side" in page.read_text(encoding="utf-8")
    with pytest.raises(ReportError, match="--pair rt: write REALTIME=FILE"):
        print_serving([run], ["rt"], None, as_json=True, markdown=False, html=None)
