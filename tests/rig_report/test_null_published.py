"""Null-test figures of the published systems, from the published credits alone, in plain loops."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from rig.bank.loader import load_bank
from rig.importing.records import import_run
from rig.report.as_json import report_json
from rig.report.build import build_report
from rig.stats.bootstrap import SEED

Credits = dict[tuple[str, str], float]


def published(path: Path, neutral: set[tuple[str, str]]) -> tuple[Credits, Credits, Credits]:
    """Audio and twin credit on cue-bearing cells, and strict passes of audio on all."""
    audio, twin, passed = {}, {}, {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["cond"] == "audio":
            passed[row["item"], row["variant"]] = float(row["scores"]["passed"])
            if (row["item"], row["variant"]) not in neutral:
                audio[row["item"], row["variant"]] = row["scores"]["credit"]
        elif row["cond"] == "text_twin":
            for variant, scores in row["scores"].items():
                if (row["item"], variant) not in neutral:
                    twin[row["item"], variant] = scores["credit"]
    return audio, twin, passed


def neutral_cells(items: Path) -> set[tuple[str, str]]:
    found = set()
    for path in items.glob("*.yaml"):
        item = yaml.safe_load(path.read_text(encoding="utf-8"))
        for variant in item["variants"]:
            plain = not variant.get("scene") and not variant.get("speaker")
            if plain and variant.get("emotion", "neutral") == "neutral":
                found.add((item["id"], variant["variant_id"]))
    return found


def bootstrap(cells: Credits) -> tuple[float, float, float, float]:
    """Mean, 95 % bounds, p."""
    items = sorted({item for item, _ in cells})
    own = [[value for (item, _), value in cells.items() if item == name] for name in items]
    means = []
    for row in np.random.default_rng(SEED).integers(0, len(items), size=(4000, len(items))):
        drawn = [value for place in row for value in own[place]]
        means.append(math.fsum(drawn) / len(drawn))
    lo, hi = np.quantile(means, [0.025, 0.975])
    tail = min(sum(one <= 1e-12 for one in means), sum(one >= -1e-12 for one in means)) / 4000
    return math.fsum(cells.values()) / len(cells), float(lo), float(hi), min(1.0, max(2 * tail, 1 / 4000))


@pytest.mark.shared_data
def test_figures_follow_from_the_published_credits(shared_dir: Path, tmp_path: Path) -> None:
    data = shared_dir / "voxparity-dev"
    bank = load_bank(data / "items")
    runs = []
    for name, role in (("gem25native", "contestant"), ("cascadeopen", "words_only")):
        runs.append(import_run([data / "records" / f"{name}.jsonl"], bank, name, role, tmp_path / name).path)
    report = report_json(build_report(runs, bank))
    found = report["targets"]["gem25native"]
    neutral = neutral_cells(data / "items")
    audio, twin, passed = published(data / "records" / "gem25native.jsonl", neutral)
    null_audio, null_twin, null_passed = published(data / "records" / "cascadeopen.jsonl", neutral)
    own = {cell: audio[cell] - twin[cell] for cell in audio}
    theirs = {cell: null_audio[cell] - null_twin[cell] for cell in null_audio}
    bound = bootstrap(theirs)[2]
    both = {
        item: float(all(value for (name, _), value in passed.items() if name == item))
        for item in {i for i, _ in passed}
    }
    null_both = {item: float(all(value for (name, _), value in null_passed.items() if name == item)) for item in both}
    for ours, cells in (
        (found["null_gain"], {cell: own[cell] - theirs[cell] for cell in own}),
        (found["null_tests"]["against"]["cascadeopen"], {cell: own[cell] - theirs[cell] for cell in own}),
        (found["null_tests"]["shift"], {cell: own[cell] - bound for cell in own}),
        (found["both_right"]["against_null"], {(item, ""): both[item] - null_both[item] for item in both}),
    ):
        assert [ours[key] for key in ("mean", "lo", "hi", "p")] == pytest.approx(bootstrap(cells), abs=1e-9)
        assert (ours["n"], ours["holm_p"], ours["verdict"]) == (len(cells), ours["p"], "above")
    assert found["both_right"]["text_twin"]["mean"] == 0
    assert found["both_right"]["eligible_items"] == found["both_right"]["items"] == 20
    assert found["null_tests"]["with_incomplete_cells"]["incomplete_cells"] == 0
    assert found["null_tests"]["with_incomplete_cells"]["mean"] == pytest.approx(found["null_gain"]["mean"])
