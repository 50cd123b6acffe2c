"""A leaderboard of 28 systems on 183 items from stored captures: wall time by stage and peak memory, beside the null
gain alone in plain loops, whose figures must be the same. Prints, judges nothing.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from captures.capture import Capture, Condition, Ending, Mark, ObservedCall
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.report.as_json import report_json
from rig.report.build import report_of
from rig.report.html.page import write_html
from rig.report.leaderboard import leaderboard
from rig.report.scored import scored_runs
from rig.report.tables import tables
from rig.scoring.cells import ScoredCell
from rig.scoring.digest import bank_digest
from rig.stats.bootstrap import RESAMPLES, SEED

SYSTEMS, ITEMS = 28, 183
NULL = "words"
_CUES: tuple[dict[str, Any], ...] = (
    {"emotion": "panicked"},
    {"emotion": "sarcastic"},
    {"scene": {"kind": "background", "asset": "tts:coach"}},
    {"scene": {"kind": "background", "asset": "synth:beep"}},
    {"scene": {"kind": "slot_noise", "slot": "that"}},
    {"speaker": "child"},
)


def item_of(index: int) -> dict[str, Any]:
    """One made-up item: a calm variant on most, one or two cues."""
    cues = [_CUES[(index + extra) % len(_CUES)] for extra in range(1 + (index % 8 == 0))]
    variants = [{"variant_id": f"cue{n}", **cue, "gold": {"tool": "hold"}} for n, cue in enumerate(cues)]
    if index % 9 < 5:
        variants.insert(0, {"variant_id": "calm", "gold": {"tool": "go"}})
    return {
        "id": f"item-{index:03}",
        "policy_mode": "explicit" if index % 2 else "implicit",
        "domain": f"domain {index % 12}",
        "legacy": index % 10 == 0,
        "transcript": "Do that now.",
        "scenario": "A call.",
        "tools": [{"name": name, "description": name} for name in ("go", "hold", "wait")],
        "variants": variants,
        "perception_probe": {
            "question": "What is heard?",
            "options": ["nothing", "something", "a bell"],
            "gold_by_variant": {
                v["variant_id"]: "nothing" if v["variant_id"] == "calm" else "something" for v in variants
            },
        },
    }


def write_bank(folder: Path) -> Bank:
    """The bank on disk, annotated with families, sectors and severities."""
    folder.mkdir()
    severities = ("life_safety", "financial", "vulnerable_duty", "privacy_compliance", "friction")
    notes = {}
    for index in range(ITEMS):
        (folder / f"item-{index:03}.yaml").write_text(yaml.safe_dump(item_of(index)), encoding="utf-8")
        notes[f"item-{index:03}"] = {
            "family": f"family {index % 30}",
            "sector": f"sector {index % 12}",
            "severity": severities[index % 5],
            "citation": f"rule {index % 20}",
            "grounding": "mandate",
        }
    (folder / "annotations.yaml").write_text(yaml.safe_dump(notes), encoding="utf-8")
    return load_bank(folder)


def captures_of(target: str, hears: float, bank: Bank) -> Iterator[Capture]:
    """All cells of a system that hears a cue with probability `hears`."""
    draw = random.Random(target)

    def capture(item: str, variant: str | None, condition: Condition, tool: str | None, text: str = "") -> Capture:
        call = ObservedCall(call_id="c", name=tool, arguments_json="{}", arguments={}, output_index=0)
        seconds = 1 + draw.random()
        marks = {Mark.COMMIT: 0, Mark.CALLER_SPEECH_END: 0, Mark.FIRST_CALL_COMPLETE: round(seconds * 1e9)}
        return Capture(
            identity=f"{target}-{item}-{variant}-{condition}", target=target, item_id=item, variant_id=variant,
            condition=condition, finished=True, started_ns=0, adapter="rig_socket", wire_version=1, parser_version=1,
            ending=Ending.CALLED if tool else Ending.DECLINED, calls=(call,) if tool else (), reply_text=text,
            marks=marks if tool and condition is Condition.AUDIO else {},
        )  # fmt: skip

    for item in bank.items:
        yield capture(item.id, None, Condition.TEXT_TWIN, "go" if draw.random() < 0.8 else "hold")
        for variant in item.variants:
            heard = not variant.is_neutral and draw.random() < hears
            tool = "hold" if heard or draw.random() < 0.1 else draw.choice(("go", "go", "go", "wait", None))
            yield capture(item.id, variant.variant_id, Condition.AUDIO, tool)
            if target != NULL:
                says = draw.choices(("something", "nothing", "a noise"), (heard + 0.2, 1.2 - heard, 0.1))[0]
                yield capture(item.id, variant.variant_id, Condition.PROBE, None, says)


def write_run(folder: Path, bank: Bank) -> Path:
    """One run folder that holds all systems and the null."""
    systems = {f"system-{index:02}": index / SYSTEMS for index in range(SYSTEMS)} | {NULL: 0.0}
    roles = {name: {"role": "words_only" if name == NULL else "contestant"} for name in systems}
    described = {"format": 1, "targets": roles, "bank": {"path": str(bank.root), "digest": bank_digest(bank)}}
    run = RunFolder.create(folder, described)
    with run.captures_path.open("w", encoding="utf-8") as file:
        for name, hears in systems.items():
            for capture in captures_of(name, hears, bank):
                file.write(json.dumps(capture.model_dump(mode="json")) + "\n")
    return folder


def plain_null_gain(cells: list[ScoredCell], null: list[ScoredCell]) -> tuple[float, float, float]:
    """Mean and 95 % interval, written from the definition, one draw and one cell at a time."""

    def credits(of: list[ScoredCell], condition: Condition) -> dict[tuple[str, str], float]:
        return {
            (cell.item_id, cell.variant_id): cell.action.credit
            for cell in of
            if cell.condition is condition and not cell.neutral and cell.action is not None
        }

    parts = [credits(of, condition) for of in (cells, null) for condition in (Condition.AUDIO, Condition.TEXT_TWIN)]
    by_item: dict[str, list[float]] = {}
    for key in parts[0]:
        if all(key in part for part in parts):
            own_audio, own_twin, null_audio, null_twin = (part[key] for part in parts)
            by_item.setdefault(key[0], []).append((own_audio - own_twin) - (null_audio - null_twin))
    items = sorted(by_item)
    means = []
    for draw in np.random.default_rng(SEED).integers(0, len(items), size=(RESAMPLES, len(items))):
        total, n = 0.0, 0
        for index in draw:
            for value in by_item[items[index]]:
                total += value
                n += 1
        means.append(total / n)
    values = [value for own in by_item.values() for value in own]
    lo, hi = np.quantile(means, [0.025, 0.975])
    return sum(values) / len(values), float(lo), float(hi)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints how long the block took."""
    started = time.monotonic()
    yield
    print(f"{what:<58}{time.monotonic() - started:8.2f} s", flush=True)


def main() -> None:
    """Write bank and run, report on them, and print figures."""
    with tempfile.TemporaryDirectory() as scratch:
        bank = write_bank(Path(scratch) / "bank")
        run = write_run(Path(scratch) / "run", bank)
        clips = sum(len(item.variants) for item in bank.items)
        print(f"{SYSTEMS} systems and a null, {ITEMS} items, {clips} clips, {RESAMPLES} resamples per statistic")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        with timed("whole report from the run folder"):
            scored = scored_runs([run])
            report = report_of(scored)
        with timed("its leaderboard, all tables and JSON"):
            leaderboard(report)
            tables(report)
            json.dumps(report_json(report), allow_nan=False)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory {peak:.0f} MB, of which {before:.0f} MB before the report")
        with timed("its HTML page, without audio, of what was scored already"):
            write_html(Path(scratch) / "report.html", report, scored, audio=False)
        print(f"size of the page {(Path(scratch) / 'report.html').stat().st_size / 1e6:.1f} MB")
        null = list(scored.cells[NULL])
        with timed("plain loops: null gain of all systems, nothing else"):
            plain = {name: plain_null_gain(list(own), null) for name, own in scored.cells.items() if name != NULL}
        worst = 0.0
        for name, figures in plain.items():
            tested = report.target(name).null_gain
            assert tested is not None
            ours = (tested.estimate.mean, tested.estimate.lo, tested.estimate.hi)
            worst = max(worst, *(abs(a - b) for a, b in zip(figures, ours, strict=True) if b is not None))
        print(f"largest difference to the plain loops {worst:.1e}")


if __name__ == "__main__":
    main()
