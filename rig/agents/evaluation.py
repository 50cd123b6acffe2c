"""How well the embedded agents' tags hit a bank's cues: a confusion table, with limits fitted on half of the items.

    python -m rig.agents.evaluation [BANK] [--fit] [--mixed] [--run RUN_FOLDER] [--json]

An item belongs to the fitted half or to the other by a hash of its id; what counts is the other half, which the fit
never saw. `--fit` writes the limits and the split into `hearing_limits.yaml`. `--mixed` also lays every computed sound
under the other half's neutral clips: no bank has them all. `--run` splits what a run's targets were credited with by
whether a cue has a tag of its own, and by half. What a variant's cue is comes from the item file; what is heard comes
from the clip alone.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import yaml

from captures.capture import Condition
from captures.run_folder import RunFolder, RunFolderError
from rig.agents.hearing import measure
from rig.agents.tagging import AUDIBLE, BY_HAND, RULES, Limit, Limits, confidences, fitted_limits, limits_path
from rig.bank.loader import BankError, load_bank
from rig.bank.models import Bank, Item, Variant
from rig.bank.rendering.deliveries import emotion_name
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.surroundings import SOUNDS
from rig.scoring.cells import BankMismatchError, ScoredCell, score_captures

EXPECTED: dict[str, frozenset[str]] = {
    "keypad": frozenset({"keypad"}),
    "siren": frozenset({"siren"}),
    "co_alarm": frozenset({"co_alarm"}),
    "smoke_alarm": frozenset({"smoke_alarm"}),
    "monitor_beep": frozenset({"monitor_beep"}),
    "beeping": frozenset({"reversing_alarm"}),
    "noise_burst": frozenset({"slot noise"}),
    "background_noise": frozenset({"water_running", "machine_hum", "crowd"}),
    "whispered": frozenset({"whispered"}),
    "loud": frozenset({"panic", "urgent", "anger"}),
    "agitated": frozenset({"panic", "urgent"}),
    "quiet": frozenset({"whispered", "resigned", "grief"}),
    "child_voice": frozenset({"child"}),
    "second_voice": frozenset({"second voice"}),
    "cut_off": frozenset({"line drop"}),
    "breathy": frozenset({"fear", "tearful", "breathless", "anxious", "grief"}),
    "blurred": frozenset({"slurred"}),
    "exaggerated": frozenset({"sarcasm"}),
}
"""Tag → the cues on which it is right. On any other cue, and on neutral speech, it is false."""

_FALSE_WEIGHT = 3.0
"""A tag on a clip without its cue costs as much as so many missed shares: most clips have no cue of a given tag."""
_LEAST_SCALE = 0.02
_MIXED_SNR_DB = (6.0, 12.0)


@dataclass(frozen=True, slots=True)
class Clip:
    """A variant's cue, and what was measured in its clip."""

    item_id: str
    variant_id: str
    cue: str
    kind: str
    measures: Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and fit first where asked to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rig.agents.evaluation", description=__doc__.split("\n\n")[0])
    parser.add_argument("bank", nargs="?", default="demo", help="a bank folder, or the name of a packaged bank")
    parser.add_argument("--fit", action="store_true", help=f"fit on half of the items and write {limits_path().name}")
    parser.add_argument("--mixed", action="store_true", help="also sounds laid under the other half's neutral clips")
    parser.add_argument("--run", type=Path, help="a run of the same bank, to see what its targets make of the cues")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    chosen = parser.parse_args(arguments)
    try:
        bank = load_bank(chosen.bank)
        credits = _credits(chosen.run, bank) if chosen.run else []
    except (BankError, RunFolderError, BankMismatchError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    clips = measured(bank)
    seed = split_seed(clips)
    fitted = [clip for clip in clips if in_fitted_half(clip.item_id, seed)]
    rest = [clip for clip in clips if not in_fitted_half(clip.item_id, seed)]
    if chosen.fit:
        limits_path().write_text(as_text(fit(fitted), bank, seed, fitted), encoding="utf-8")
        fitted_limits.cache_clear()
    halves = {"fitted": fitted, "other": rest}
    if chosen.json:
        print(json.dumps({name: _as_json(half) for name, half in halves.items()} | {"seed": seed}, indent=2))
        return 0
    print(f"{bank.name} {bank.version}: split by item with seed {seed}")
    for name, half in halves.items():
        items = len({clip.item_id for clip in half})
        print(f"\n{name} half: {items} items, {len(half)} clips\n")
        print(hit_table(half))
    print("\nother half, cue by tag (clips)\n")
    print(confusion_table(rest))
    if chosen.mixed:
        print("\nsounds under the other half's neutral clips\n")
        print(hit_table(mixed(bank, seed), {tag: EXPECTED[tag] for tag in BY_HAND if tag != "keypad"}))
    if credits:
        print("\ncredit on cue-bearing audio\n")
        print(credit_table(credits, clips, seed))
    return 0


def measured(bank: Bank) -> list[Clip]:
    """Every clip of first turns that is on disk."""
    found = []
    for item in bank.items:
        for variant in item.variants:
            entry = bank.clip(item, variant)
            path = bank.clip_path(entry) if entry else None
            if path is None:
                continue
            samples, rate_hz = soundfile.read(path, dtype="float64")
            kind = bank.cue_kind(item, variant)
            found.append(
                Clip(
                    item.id,
                    variant.variant_id,
                    cue_of(item, variant),
                    kind or "neutral",
                    measure(samples, int(rate_hz)),
                )
            )
    return found


def mixed(bank: Bank, seed: int) -> list[Clip]:
    """Neutral clips of the other half with each computed sound under them, 6 and 12 dB below the speech."""
    found = []
    for item in bank.items:
        variant = next((one for one in item.variants if one.is_neutral), None)
        entry = bank.clip(item, variant) if variant else None
        path = bank.clip_path(entry) if entry else None
        if variant is None or path is None or in_fitted_half(item.id, seed):
            continue
        samples, rate_hz = soundfile.read(path, dtype="float64")
        level = _rms(samples)
        for (name, sound), snr_db in itertools.product(SOUNDS.items(), _MIXED_SNR_DB):
            if rate_hz != RATE_HZ:
                raise ValueError(f"{path}: {rate_hz} Hz; sounds are computed at {RATE_HZ} Hz")
            made = sound.make(samples.size / rate_hz + 0.1, np.random.default_rng(seed))[: samples.size]
            both = samples + made * (level / _rms(made) * 10 ** (-snr_db / 20))
            found.append(Clip(item.id, f"{variant.variant_id}+{name}", name, "mixed", measure(both, int(rate_hz))))
    return found


def _rms(samples: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Level of what sounds: the parts within 40 dB of the peak."""
    loud = samples[np.abs(samples) > 0.01 * np.max(np.abs(samples))]
    return float(np.sqrt(np.mean(np.square(loud))))


def cue_of(item: Item, variant: Variant) -> str:
    """What there is to hear in a variant, as its file says; `neutral` for nothing."""
    scene = variant.scene
    if scene is None:
        return variant.speaker or emotion_name(variant.emotion)
    source, _, name = (scene.asset or "").partition(":")
    if scene.kind == "background":
        return "second voice" if source == "tts" else "keypad" if name.startswith(("dtmf", "keypad")) else name
    return {"slot_noise": "slot noise", "truncation": "line drop"}.get(scene.kind, scene.kind)


def in_fitted_half(item_id: str, seed: int) -> bool:
    """Whether limits are fitted on an item's clips."""
    return hashlib.sha256(f"{seed}:{item_id}".encode()).digest()[0] % 2 == 0


def split_seed(clips: Iterable[Clip]) -> int:
    """The first seed under which each tag's cues, where two or more items have them, are found in either half.

    It looks at cues alone, never at how well anything does.
    """
    clips = list(clips)
    having = [
        {clip.item_id for clip in clips if clip.cue in cues} for tag, cues in EXPECTED.items() if tag not in BY_HAND
    ]
    having = [items for items in having if len(items) > 1]
    for seed in itertools.count():
        if all(len({in_fitted_half(item_id, seed) for item_id in items}) == 2 for items in having):
            return seed
    raise AssertionError("there is always such a seed")


def fit(clips: Sequence[Clip]) -> Limits:
    """Limits that cost least on these clips, each in the middle of its gap. Tags are fitted in the order of `RULES`."""
    limits: dict[str, dict[str, Limit]] = {tag: dict(conditions) for tag, conditions in BY_HAND.items()}
    for tag, rule in RULES.items():
        if tag in limits:
            continue
        limits[tag] = {name: Limit(_open_end(rule.above, name), 1.0) for name in rule.measures}
        ruled_out = np.array([_ruled_out(clip, tag, limits) for clip in clips])
        truth = np.array([clip.cue in EXPECTED[tag] for clip in clips])
        for _ in range(3):
            for name in rule.measures:
                limits[tag][name] = _best(clips, tag, name, limits, ruled_out, truth)
    return limits


def _open_end(above: tuple[str, ...], name: str) -> float:
    return -1e9 if name in above else 1e9


def _ruled_out(clip: Clip, tag: str, limits: Limits) -> bool:
    sure = confidences(clip.measures, limits)
    return any(sure[other] > AUDIBLE for other in RULES[tag].unless)


def _best(
    clips: Sequence[Clip],
    tag: str,
    name: str,
    limits: Limits,
    ruled_out: np.ndarray[tuple[int], np.dtype[np.bool_]],
    truth: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> Limit:
    """The limit of one measure that costs least while the tag's others stay; among equals the widest gap's middle."""
    rule = RULES[tag]
    values = np.array([clip.measures[name] for clip in clips])
    others = ~ruled_out
    for other in rule.measures:
        if other != name:
            seen = np.array([clip.measures[other] for clip in clips])
            at = limits[tag][other].at
            others &= seen >= at if other in rule.above else seen <= at
    scale = max(_LEAST_SCALE, 0.25 * float(np.std(values[~truth])))
    steps = np.unique(values)
    candidates = [(_open_end(rule.above, name), 0.0)]
    candidates += [((low + high) / 2, high - low) for low, high in itertools.pairwise(steps.tolist())]

    def cost(at: float) -> float:
        given = others & (values >= at if name in rule.above else values <= at)
        missed = np.mean(~given[truth]) if truth.any() else 0.0
        return float(missed + _FALSE_WEIGHT * np.mean(given[~truth]))

    at, _ = min(candidates, key=lambda one: (round(cost(one[0]), 9), -one[1]))
    return Limit(at, scale)


def as_text(limits: Limits, bank: Bank, seed: int, clips: Sequence[Clip]) -> str:
    """The data file: fitted limits with what they were fitted on."""
    data = {
        "bank": f"{bank.name} {bank.version}".strip(),
        "seed": seed,
        "fitted_items": sorted({clip.item_id for clip in clips}),
        "limits": {
            tag: {name: [float(f"{limit.at:.4g}"), float(f"{limit.scale:.3g}")] for name, limit in conditions.items()}
            for tag, conditions in limits.items()
            if tag not in BY_HAND
        },
    }
    head = (
        "# Written by `python -m rig.agents.evaluation --fit`: tag -> measure -> [limit, scale of its confidence].\n"
        "# Fitted on the clips of these items alone.\n"
    )
    return head + yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=110)


def tags_of(clip: Clip) -> frozenset[str]:
    """The tags of a clip by the packaged limits."""
    return (
        frozenset(tag for tag, sure in confidences(clip.measures).items() if sure >= AUDIBLE)
        if clip.measures
        else frozenset()
    )


def hit_table(clips: Sequence[Clip], expected: Mapping[str, frozenset[str]] = EXPECTED) -> str:
    """Tag by tag: found of those there are, false ones of all others; as Markdown."""
    lines = ["| tag | found | false | false on |", "|---|---|---|---|"]
    for tag, cues in expected.items():
        own = [clip for clip in clips if clip.cue in cues]
        others = [clip for clip in clips if clip.cue not in cues]
        wrong = Counter(clip.cue for clip in others if tag in tags_of(clip))
        found = f"{sum(tag in tags_of(clip) for clip in own)} of {len(own)}" if own else "no clips"
        on = ", ".join(f"{cue} {count}" if count > 1 else cue for cue, count in sorted(wrong.items()))
        lines.append(f"| {tag} | {found} | {sum(wrong.values())} of {len(others)} | {on} |")
    return "\n".join(lines)


def confusion_table(clips: Sequence[Clip]) -> str:
    """Cue by cue: which tags its clips got; as Markdown."""
    lines = ["| cue | clips | tags |", "|---|---|---|"]
    for cue in sorted({clip.cue for clip in clips}):
        own = [clip for clip in clips if clip.cue == cue]
        given = Counter(tag for clip in own for tag in tags_of(clip))
        none = sum(not tags_of(clip) for clip in own)
        told = [f"{tag} {count}" for tag, count in sorted(given.items(), key=lambda one: (-one[1], one[0]))] + (
            [f"none {none}"] if none else []
        )
        lines.append(f"| {cue} | {len(own)} | {', '.join(told)} |")
    return "\n".join(lines)


def _credits(run: Path, bank: Bank) -> list[ScoredCell]:
    """Cells of a run in which a cue was there to be heard, controls left out."""
    cells = score_captures(RunFolder.open(run).read_captures(), bank, {})
    return [
        cell
        for cell in cells
        if cell.condition is Condition.AUDIO and cell.headline and not cell.neutral and cell.credit is not None
    ]


def credit_table(cells: Sequence[ScoredCell], clips: Sequence[Clip], seed: int) -> str:
    """Mean credit by whether the clip has a tag of its own, by half and by cue; as Markdown."""
    cues = {(clip.item_id, clip.variant_id): clip.cue for clip in clips}
    tagged = frozenset[str]().union(*EXPECTED.values())
    targets = sorted({cell.target for cell in cells})
    groups: dict[str, list[ScoredCell]] = {}
    for cell in cells:
        cue = cues[cell.item_id, cell.variant_id]
        half = "fitted" if in_fitted_half(cell.item_id, seed) else "other"
        has = "with" if cue in tagged else "without"
        for group in (f"cues {has} a tag", f"cues {has} a tag, {half} half", f"{has} a tag: {cue}"):
            groups.setdefault(group, []).append(cell)
    lines = [f"| cues | clips | {' | '.join(targets)} |", "|---|---|" + "---|" * len(targets)]
    for group in sorted(groups):
        earned = [[cell.credit or 0.0 for cell in groups[group] if cell.target == target] for target in targets]
        means = " | ".join(f"{np.mean(one):.2f}" if one else "–" for one in earned)
        lines.append(f"| {group} | {max(map(len, earned))} | {means} |")
    return "\n".join(lines)


def _as_json(clips: Sequence[Clip]) -> list[dict[str, object]]:
    return [
        {"item": clip.item_id, "variant": clip.variant_id, "cue": clip.cue, "kind": str(clip.kind)}
        | {"confidence": {tag: round(sure, 3) for tag, sure in confidences(clip.measures).items()}}
        for clip in clips
    ]


if __name__ == "__main__":
    sys.exit(main())
