"""The null test's company over runs held in memory, against a slow implementation that shares no code with ours."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.capture import Capture, Condition, Ending, LaterTurn, ObservedCall, SecondTurn
from rig.bank.models import Annotation, Bank, BankInfo, ClipEntry, Item
from rig.report.as_json import report_json
from rig.report.build import report_on
from rig.report.model import Report
from rig.report.runs import LoadedRun
from rig.report.tables import tables
from rig.stats.bootstrap import SEED

ITEMS = 14
CUES: tuple[dict[str, Any], ...] = (
    {"emotion": "panicked"},
    {"scene": {"kind": "background", "asset": "synth:beep"}},
    {"scene": {"kind": "slot_noise", "slot": "x"}},
)
Table = dict[tuple[str, str, str | None], str | None]
"""(target, item, variant or None on the twin) → the tool that was called."""


def item_of(index: int) -> Item:
    """calm → go; one cue, on every third item two → hold."""
    cues = [CUES[(index + extra) % 3] for extra in range(2 if index % 3 == 0 else 1)]
    tools = [{"name": name, "description": name} for name in ("go", "hold", "ask")]
    return Item.model_validate(
        {
            "id": f"i{index:02}",
            "policy_mode": "implicit",
            "domain": f"d{index % 4}",
            "legacy": index % 5 == 0,
            "transcript": "Do it.",
            "scenario": "A call.",
            "tools": tools,
            "variants": [
                {"variant_id": "calm", "gold": {"tool": "go"}},
                *({"variant_id": f"cue{n}", **cue, "gold": {"tool": "hold"}} for n, cue in enumerate(cues)),
            ],
            "perception_probe": {
                "question": "Heard?",
                "options": ["nothing", "a cue"],
                "gold_by_variant": {"calm": "nothing", "cue0": "a cue", "cue1": "a cue"},
            },
            "followup": {"trigger_tools": ["ask"], "result": "Asked.", "reply": "Yes."},
        }
    )


def bank_of(items: int = ITEMS) -> Bank:
    made = tuple(item_of(index) for index in range(items))
    return Bank(
        root=Path("nowhere"),
        info=BankInfo(name="made"),
        items=made,
        annotations={item.id: Annotation(family=f"f{index % 3}") for index, item in enumerate(made)},
        clips={
            (item.id, variant.variant_id): ClipEntry(
                item_id=item.id, variant_id=variant.variant_id, sha256="0" * 64, engine=f"e{index % 2}"
            )
            for index, item in enumerate(made)
            for variant in item.variants
        },
    )


def capture(target: str, item: str, variant: str | None, tool: str | None, repeat: int = 0, **fields: Any) -> Capture:
    calls = (ObservedCall(call_id="c", name=tool, arguments_json="{}", arguments={}, output_index=0),) if tool else ()
    base: dict[str, Any] = {
        "identity": f"{target}-{item}-{variant}-{repeat}-{fields.get('condition', '')}",
        "target": target,
        "item_id": item,
        "variant_id": variant,
        "condition": Condition.AUDIO if variant else Condition.TEXT_TWIN,
        "repeat": repeat,
        "finished": True,
        "started_ns": 0,
        "adapter": "rig_socket",
        "wire_version": 1,
        "parser_version": 1,
        "ending": Ending.CALLED if tool else Ending.DECLINED,
        "calls": calls,
    }
    return Capture(**(base | fields))


def reported(bank: Bank, captures: Sequence[Capture], nulls: Sequence[str] = ("n1",), **roles: str) -> Report:
    names = dict.fromkeys(one.target for one in captures)
    known = {"n1": "words_only", "n2": "words_only"} | roles
    targets = {name: {"role": known.get(name, "contestant"), "adapter": "rig_socket"} for name in names}
    return report_on([LoadedRun(Path("run"), {"targets": targets}, tuple(captures), ())], bank, nulls)


def behaviour(seed: int, hears: Mapping[str, float], bank: Bank) -> Table:
    draw = np.random.default_rng(seed)
    table: Table = {}
    for target, share in hears.items():
        for item in bank.items:
            table[target, item.id, None] = ("go", "hold", None)[int(draw.integers(0, 8)) % 3]
            for variant in item.variants:
                cued = variant.variant_id != "calm" and draw.random() < share
                table[target, item.id, variant.variant_id] = (
                    "hold" if cued else ("go", "hold", None)[int(draw.integers(0, 3))]
                )
    return table


# ---- the slow implementation: credit is equality of tools; one draw and one cell at a time


def slow_shift(table: Table, bank: Bank, target: str) -> dict[tuple[str, str], float]:
    found = {}
    for item in bank.items:
        for variant in item.variants:
            if variant.variant_id == "calm" or (target, item.id, variant.variant_id) not in table:
                continue
            if (target, item.id, None) in table:
                audio = table[target, item.id, variant.variant_id] == "hold"
                found[item.id, variant.variant_id] = float(audio) - float(table[target, item.id, None] == "hold")
    return found


def slow_test(cells: Mapping[tuple[str, str], float]) -> tuple[float, float, float, float]:
    """Mean, 95 % bounds, p."""
    items = sorted({item for item, _ in cells})
    means = []
    for row in np.random.default_rng(SEED).integers(0, len(items), size=(4000, len(items))):
        drawn = [value for place in row for (item, _), value in cells.items() if item == items[place]]
        means.append(math.fsum(drawn) / len(drawn))
    low = sum(one <= 1e-12 for one in means) / 4000
    high = sum(one >= -1e-12 for one in means) / 4000
    lo, hi = np.quantile(means, [0.025, 0.975])
    return math.fsum(cells.values()) / len(cells), float(lo), float(hi), min(1.0, max(2 * min(low, high), 1 / 4000))


def slow_holm(ps: dict[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for rank, name in enumerate(sorted(ps, key=lambda one: ps[one])):
        found[name] = max([min(1.0, ps[name] * (len(ps) - rank)), *found.values()])
    return found


def test_gains_intersection_union_and_shift_equal_those_of_plain_loops() -> None:
    bank = bank_of()
    hears = {"deaf": 0.0, "half": 0.5, "keen": 0.95, "n1": 0.05, "n2": 0.1}
    table = behaviour(7, hears, bank)
    report = reported(bank, [capture(*key, tool) for key, tool in table.items()], ("n1", "n2"))
    found = report_json(report)["targets"]
    contestants = ("deaf", "half", "keen")
    shifts = {name: slow_shift(table, bank, name) for name in hears}
    corrected = {}
    for null in ("n1", "n2"):
        slow = {
            name: slow_test({cell: value - shifts[null][cell] for cell, value in shifts[name].items()})
            for name in contestants
        }
        corrected[null] = slow_holm({name: figures[3] for name, figures in slow.items()})
        for name, figures in slow.items():
            ours = found[name]["null_tests"]["against"][null]
            assert [ours[key] for key in ("mean", "lo", "hi", "p")] == pytest.approx(figures, abs=1e-9)
            assert ours["holm_p"] == pytest.approx(corrected[null][name])
    for name in contestants:
        joined = found[name]["null_tests"]["every_null"]
        above = all(
            corrected[null][name] <= 0.05 and found[name]["null_tests"]["against"][null]["mean"] > 0
            for null in ("n1", "n2")
        )
        assert (joined["verdict"] == "above") is above
        if above:
            assert joined["holm_p"] == pytest.approx(max(corrected[null][name] for null in ("n1", "n2")))
    assert found["keen"]["null_tests"]["every_null"]["verdict"] == "above"
    bound = max(slow_test(shifts[null])[2] for null in ("n1", "n2"))
    slow = {name: slow_test({cell: value - bound for cell, value in shifts[name].items()}) for name in contestants}
    holm = slow_holm({name: figures[3] for name, figures in slow.items()})
    for name, figures in slow.items():
        ours = found[name]["null_tests"]["shift"]
        assert [ours[key] for key in ("mean", "lo", "hi", "p")] == pytest.approx(figures, abs=1e-9)
        assert ours["holm_p"] == pytest.approx(holm[name])
    assert {"null gain", "null gain against n2", "shift beyond the highest null"} <= {
        one.name for one in report.families
    }


def test_robustness_columns_and_ranges_equal_recounts() -> None:
    bank = bank_of()
    table = behaviour(3, {"keen": 0.8, "n1": 0.1}, bank)
    found = report_json(reported(bank, [capture(*key, tool) for key, tool in table.items()]))["targets"]["keen"]
    robust = found["robustness"]
    own, theirs = slow_shift(table, bank, "keen"), slow_shift(table, bank, "n1")
    gain = {cell: value - theirs[cell] for cell, value in own.items()}
    kinds = {(item.id, v.variant_id): v.cue_class for item in bank.items for v in item.variants}

    def rest(keep: Callable[[tuple[str, str]], bool]) -> tuple[float, float, float, float]:
        return slow_test({cell: value for cell, value in gain.items() if keep(cell)})

    for column, figures in (
        ("without_masked_word", rest(lambda cell: kinds[cell] != "scene:slot_noise")),
        ("without_legacy", rest(lambda cell: int(cell[0][1:]) % 5 != 0)),
        ("stacked", rest(lambda cell: int(cell[0][1:]) % 5 != 0)),
    ):
        assert [robust[column][key] for key in ("mean", "lo", "hi", "p")] == pytest.approx(figures, abs=1e-9), column
    for name, groups in (("family", 3), ("sector", 4), ("voice_vendor", 2)):
        slow = [rest(lambda cell, g=g, n=groups: int(cell[0][1:]) % n != g) for g in range(groups)]  # type: ignore[misc]
        ours = robust["left_out"][name]
        assert ours["groups"] == groups
        assert (ours["lowest"], ours["highest"]) == (
            pytest.approx(min(one[0] for one in slow)),
            pytest.approx(max(one[0] for one in slow)),
        )
        assert ours["lowest_lo"] == pytest.approx(min(one[1] for one in slow))
    assert robust["follow_up"] is None
    assert robust["not_measured"]["follow_up"] == "no second turn was measured"
    over = {name: np.mean([table[name, item.id, "calm"] == "hold" for item in bank.items]) for name in ("keen", "n1")}
    assert robust["over_reaction_subtracted"]["mean"] == pytest.approx(
        np.mean(list(gain.values())) - max(0.0, over["keen"] - over["n1"])
    )


def test_second_turns_take_the_place_of_first_ones_in_their_column_alone() -> None:
    bank = bank_of(6)
    answer = LaterTurn(
        ending=Ending.CALLED,
        calls=(ObservedCall(call_id="d", name="hold", arguments_json="{}", arguments={}, output_index=0),),
    )
    turn = SecondTurn(call_id="c", tool="ask", result="Asked.", reply="Yes.", reply_as="text", answer=answer)
    captures = []
    for item in bank.items:
        for target in ("asks", "n1"):
            captures.append(capture(target, item.id, None, "go"))
            for variant in item.variants:
                asks = target == "asks" and variant.variant_id == "cue0"
                more: dict[str, Any] = {"second_turn": turn} if asks else {}
                captures.append(capture(target, item.id, variant.variant_id, "ask" if asks else "go", **more))
    found = report_json(reported(bank, captures))["targets"]["asks"]
    assert found["null_gain"]["mean"] == 0
    assert found["robustness"]["follow_up"]["mean"] == pytest.approx(6 / 8)
    assert found["robustness"]["stacked"]["mean"] == 0


def test_incomplete_cells_enter_a_gain_of_their_own_and_are_counted() -> None:
    bank = bank_of(6)
    table = behaviour(5, {"keen": 1.0, "n1": 0.0}, bank)
    del table["keen", "i00", None]  # the twin of one item with two cues
    del table["n1", "i01", "cue0"]
    found = report_json(reported(bank, [capture(*key, tool) for key, tool in table.items()]))["targets"]["keen"]
    cues = [(item.id, v.variant_id) for item in bank.items for v in item.variants if v.variant_id != "calm"]

    def mean(target: str, twin: bool) -> float:
        keys = [(target, item, None if twin else variant) for item, variant in cues]
        return float(np.mean([table[key] == "hold" for key in keys if key in table]))

    incomplete = found["null_tests"]["with_incomplete_cells"]
    expected = (mean("keen", False) - mean("keen", True)) - (mean("n1", False) - mean("n1", True))
    assert (incomplete["mean"], incomplete["n"]) == (pytest.approx(expected), len(cues))
    assert (incomplete["incomplete_cells"], found["null_gain"]["n"]) == (3, len(cues) - 3)


def test_a_twin_that_seldom_acts_is_flagged() -> None:
    bank = bank_of(8)
    captures = []
    for item in bank.items:
        for target, twin in (("mute-twin", None), ("sound", "go"), ("n1", "go")):
            captures.append(capture(target, item.id, None, twin))
            for variant in item.variants:
                heard = target != "n1" and variant.variant_id != "calm"
                captures.append(capture(target, item.id, variant.variant_id, "hold" if heard else "go"))
    found = report_json(reported(bank, captures))["targets"]
    acts = found["mute-twin"]["null_tests"]["acts"]
    assert (acts["audio"]["mean"], acts["text_twin"]["mean"], acts["twin_seldom_acts"]) == (1.0, 0.0, True)
    assert found["sound"]["null_tests"]["acts"]["twin_seldom_acts"] is False
    # A null that never moves has Wilson's bound on the items that might.
    assert found["sound"]["null_tests"]["shift_note"] == "+0.324, of n1"


def test_targets_without_a_text_path_have_the_level_contrast_and_families_of_their_own() -> None:
    bank = bank_of()
    table = {
        key: tool
        for key, tool in behaviour(2, {"keen": 0.9, "n1": 0.1, "n2": 0.1}, bank).items()
        if key[0] != "keen" or key[2]
    }
    report = reported(bank, [capture(*key, tool) for key, tool in table.items()], ("n1", "n2"))
    found = report_json(report)["targets"]["keen"]
    assert found["null_gain"] is None
    assert found["null_tests"]["measure"] == "level contrast"
    assert found["null_tests"]["against"]["n1"]["family"] == "level contrast"
    assert found["null_tests"]["against"]["n2"]["family"] == "level contrast against n2"
    assert found["null_tests"]["with_incomplete_cells"] is None
    assert found["null_tests"]["shift"] is None
    assert report.disagreements is None


def test_equivalence_needs_the_whole_90_percent_interval() -> None:
    bank = bank_of()
    captures = []
    for item in bank.items:
        for target in ("same", "n1"):
            captures.append(capture(target, item.id, None, "go"))
            for variant in item.variants:
                odd = target == "same" and item.id in ("i04", "i07") and variant.variant_id == "cue0"
                captures.append(capture(target, item.id, variant.variant_id, "hold" if odd else "go"))
    equal = report_json(reported(bank, captures))["targets"]["same"]["null_tests"]["equivalence"]
    assert 0 <= equal["lo90"] < equal["hi90"]
    assert equal["within"] == {"0.10": equal["hi90"] < 0.1, "0.05": False}


def shown(report: Report) -> str:
    found = json.dumps(report_json(report), allow_nan=False)
    return found + " ".join(cell for table in tables(report) for row in table.rows for cell in row)


def test_what_cannot_be_computed_is_said_and_never_nan() -> None:
    one = bank_of(1)
    table = behaviour(1, {"a": 1.0, "n1": 0.0}, one)
    report = reported(one, [capture(*key, tool) for key, tool in table.items()])
    tests = report_json(report)["targets"]["a"]["null_tests"]
    assert tests["equivalence"]["within"] == {"0.10": None, "0.05": None}
    assert tests["shift_note"] == "no shift test: no interval for audio − twin of n1"
    assert not re.search(r"\bnan\b", shown(report).lower())
    bank = bank_of(5)
    alike = [capture(t, i.id, v, "go") for t in ("a", "n1") for i in bank.items for v in (None, "calm", "cue0")]
    report = reported(bank, alike)
    assert report_json(report)["targets"]["a"]["null_tests"]["against"]["n1"]["verdict"] == "none"
    assert not re.search(r"\bnan\b", shown(report).lower())
    without = reported(bank, [one for one in alike if one.target == "a"], ())
    assert without.target("a").null_tests is None
    assert report_json(without)["verdicts"] is None
    second = [*alike, *(capture("n2", "i00", v, "go") for v in (None, "calm"))]
    tests = report_json(reported(bank, second, ("n1", "n2")))["targets"]["a"]
    assert list(tests["null_tests"]["against"]) == ["n1"]
    assert tests["null_tests"]["every_null"] is None
    assert tests["robustness"]["not_measured"]["stacked"] == "no identical cell with the null"
    apart = [one for one in alike if (one.target == "n1") is (one.item_id in ("i00", "i01"))]
    assert reported(bank, apart).target("a").null_tests is None


@settings(max_examples=5, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(order: Any) -> None:
    bank = bank_of(7)
    captures = [capture(*key, tool) for key, tool in behaviour(9, {"a": 0.7, "b": 0.3, "n1": 0.1}, bank).items()]
    shuffled = list(captures)
    order.shuffle(shuffled)
    before, after = (report_json(reported(bank, one, ("n1",))) for one in (captures, shuffled))
    for name in ("a", "b"):
        for part in ("null_tests", "robustness", "null_gain"):
            assert before["targets"][name][part] == after["targets"][name][part]


def test_verdicts_of_other_rules_are_compared_with_the_null_test() -> None:
    bank = bank_of()
    captures = []
    heard = {"listens": True, "hears-only": True, "n1": False}
    for item in bank.items:
        for target, hears in heard.items():
            captures.append(capture(target, item.id, None, "go"))
            for variant in item.variants:
                cued = variant.variant_id != "calm"
                acts = cued and target == "listens"
                captures.append(capture(target, item.id, variant.variant_id, "hold" if acts else "go"))
                if target != "n1":
                    said = "a cue" if cued and hears else "nothing"
                    probe = {"condition": Condition.PROBE, "reply_text": said}
                    captures.append(capture(target, item.id, variant.variant_id, None, **probe))
    found = report_json(reported(bank, captures))["verdicts"]
    assert (found["tested"], found["null_test_above"]) == (["listens", "hears-only"], ["listens"])
    rules = {rule["rule"]: rule for rule in found["rules"]}
    assert rules["credit above the null's"]["disagree"] == []
    assert rules["probe ≥ 0.5"]["disagree"] == ["hears-only"]
    assert (rules["probe ≥ 0.5"]["disagree_lo"], rules["probe ≥ 0.5"]["disagree_hi"]) == (1.0, 1.0)
    best = rules["probe, best threshold"]
    assert (best["threshold"], best["disagree"]) == (1.0, ["hears-only"])
    assert rules["credit significantly above the null's"]["disagree_lo"] is None


def test_repeats_have_reliability_and_a_list_of_flakes() -> None:
    bank = bank_of(4)
    captures = []
    for item in bank.items:
        for repeat in range(3):
            captures.append(capture("a", item.id, "calm", "go", repeat))
            flaky = item.id == "i01" and repeat == 2
            captures.append(capture("a", item.id, "cue0", "go" if flaky else "hold", repeat))
    found = report_json(reported(bank, captures, ()))["targets"]["a"]["repeats"]
    assert (found["rollouts"], found["cells"]) == (3, 8)
    assert found["pass_all"]["1"]["mean"] == pytest.approx(23 / 24)
    assert found["pass_all"]["3"]["mean"] == pytest.approx(7 / 8)
    assert found["pass_any"]["2"]["mean"] == 1.0
    assert found["agreement"]["mean"] == pytest.approx((7 + 1 / 3) / 8)
    assert found["flakes"] == [{"item": "i01", "variant": "cue0", "passed": 2, "rollouts": 3}]
    single = [one for one in captures if one.repeat == 0]
    assert report_json(reported(bank, single, ()))["targets"]["a"]["repeats"] is None


def test_both_right_says_how_many_items_it_is_about() -> None:
    bank = bank_of(5)
    table = behaviour(4, {"a": 1.0}, bank)
    del table["a", "i02", "cue0"]  # then i02 has one variant run
    found = report_json(reported(bank, [capture(*key, tool) for key, tool in table.items()], ()))["targets"]["a"]
    assert found["both_right"]["eligible_items"] == 4
    assert found["both_right"]["text_twin"]["mean"] == 0
