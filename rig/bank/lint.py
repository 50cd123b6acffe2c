"""Checks of a bank that no single field can fail by itself: golds, tools, probes, ids, slots, channels, clips, tricks.

What a file may hold at all is checked by the models while loading. Some checks are errors in our own banks and
warnings in imported ones, whose files we do not change.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from rig.bank.blind import blind_policies
from rig.bank.items import PARAM_TYPES
from rig.bank.models import Annotation, Bank, Gold, Item, Param, Problem, Tool, Variant
from rig.bank.wording import digits_in_speech, gendered

Level = Literal["error", "warning", "strict"]
"""`strict`: an error in an own bank, a warning in an imported one."""
Finding = tuple[str, str, Level]
"""Field, message, level."""

_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
assert set(_PYTHON_TYPES) == set(PARAM_TYPES)


def lint(bank: Bank) -> list[Problem]:
    """All problems of a bank, the loader's findings first, then file by file. Reads each clip's bytes once.

    Of a bank with `unread` files, what could be missing for that reason alone is not reported.
    """
    problems = list(bank.warnings)
    own = bank.info.origin == "own"

    def note(file: str, findings: Iterable[Finding]) -> None:
        for field, message, level in findings:
            is_error = level == "error" or (level == "strict" and own)
            problems.append(Problem(file, field, message, "error" if is_error else "warning"))

    note("bank.yaml", _doubles("standing_actions", [tool.name for tool in bank.standing_actions]))
    for item in bank.items:
        file = bank.sources.get(item.id, item.id)
        tools = {tool.name: tool for tool in bank.menu(item)}
        note(file, _ids(item))
        note(file, _policy(item))
        note(file, _golds(item, tools))
        note(file, _followup(item, tools))
        note(file, _siblings(item))
        note(file, _probe(item))
        note(file, _audible(item))
        note(file, _wording(item))
    note("items", _tricks(bank))
    note("annotations.yaml", _annotations(bank, own))
    note("audio/manifest.yaml", _clips(bank))
    return problems


def _tricks(bank: Bank) -> Iterator[Finding]:
    for policy in blind_policies(bank):
        if policy.exceeds:
            message = (
                f"earns {policy.mean:.2f} without hearing anything, at most {policy.bound:.2f} may be: "
                "move golds, or change lengths (bank.yaml: blind_bounds)"
            )
            yield policy.name, message, "strict"


def _wording(item: Item) -> Iterator[Finding]:
    for field, words, only_pronouns in gendered(item):
        message = f"{words!r}: no action may depend on the speaker's gender; say it without"
        yield field, message, "warning" if only_pronouns else "strict"
    for field, digits in digits_in_speech(item):
        yield field, f"{digits!r}: spell it out, or engines and recognisers read it each in their own way", "warning"


def _doubles(field: str, names: Iterable[str]) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if count > 1:
            yield field, f"{name!r} stands here {count} times: names are unique", "error"


def _ids(item: Item) -> Iterator[Finding]:
    yield from _doubles("variants", [variant.variant_id for variant in item.variants])
    yield from _doubles("tools", [tool.name for tool in item.tools])
    for index, tool in enumerate(item.tools):
        yield from _doubles(f"tools[{index}].params", [param.name for param in tool.params])
    if item.perception_probe:
        yield from _doubles("perception_probe.options", item.perception_probe.options)


def _policy(item: Item) -> Iterator[Finding]:
    if item.policy_mode == "explicit" and item.explicit_policy is None:
        yield "explicit_policy", "is missing although policy_mode is explicit", "error"
    if item.policy_mode == "implicit" and item.explicit_policy is not None:
        yield "explicit_policy", "is stated although policy_mode is implicit: it will not be shown", "strict"


def _golds(item: Item, tools: Mapping[str, Tool]) -> Iterator[Finding]:
    distinct = {_action(variant.gold) for variant in item.variants}
    if item.is_control and len(distinct) > 1:
        yield "design", "an invariant control has one gold for all variants", "error"
    if not item.is_control and len(item.variants) == 1:
        message = "only one: it is scored, but shows nothing of what is heard besides the words"
        yield "variants", message, "strict"
    elif not item.is_control and len(distinct) < 2:
        yield (
            "variants",
            "all variants have the same gold: at least two must differ (or design: invariant_control)",
            "error",
        )
    for index, variant in enumerate(item.variants):
        yield from _gold(f"variants[{index}].gold", variant.gold, tools)


def _gold(field: str, gold: Gold, tools: Mapping[str, Tool]) -> Iterator[Finding]:
    yield from _call(f"{field}", gold.tool, gold.args, tools)
    if gold.tool is not None and gold.tool in tools:
        optional = {name: values or () for name, values in gold.optional_args.items()}
        yield from _arguments(f"{field}.optional_args", tools[gold.tool], optional)
        for param in tools[gold.tool].params:
            if param.required and param.name not in gold.args and param.name not in gold.optional_args:
                message = f"{param.name} is required by {gold.tool}, so no valid call can match this gold"
                yield f"{field}.args", message, "strict"
    for position, acceptable in enumerate(gold.acceptable):
        here = f"{field}.acceptable[{position}]"
        yield from _call(here, acceptable.tool, acceptable.args, tools)
        if acceptable.tool == gold.tool and not acceptable.args:
            yield here, f"{acceptable.tool} is this variant's gold already", "strict"


def _followup(item: Item, tools: Mapping[str, Tool]) -> Iterator[Finding]:
    if item.followup is None:
        return
    for index, name in enumerate(item.followup.trigger_tools):
        if name not in tools:
            message = f"{name!r} is not on the menu ({', '.join(sorted(tools))}): it can start no second turn"
            yield f"followup.trigger_tools[{index}]", message, "strict"
    variants = {variant.variant_id for variant in item.variants}
    for variant_id, gold in item.followup.gold_by_variant.items():
        field = f"followup.gold_by_variant.{variant_id}"
        if variant_id not in variants:
            yield field, "the item has no such variant", "strict"
        yield from _gold(field, gold, tools)


def _action(gold: Gold) -> str:
    return json.dumps([gold.tool, {name: list(values) for name, values in gold.args.items()}], sort_keys=True)


def _call(
    field: str, tool: str | None, args: Mapping[str, tuple[JsonValue, ...]], tools: Mapping[str, Tool]
) -> Iterator[Finding]:
    if tool is None:
        return
    if tool not in tools:
        yield f"{field}.tool", f"{tool!r} is not on the menu ({', '.join(sorted(tools))})", "error"
        return
    yield from _arguments(f"{field}.args", tools[tool], args)


def _arguments(field: str, tool: Tool, args: Mapping[str, tuple[JsonValue, ...]]) -> Iterator[Finding]:
    params = {param.name: param for param in tool.params}
    for name, values in args.items():
        if name not in params:
            yield f"{field}.{name}", f"{tool.name} has no such parameter", "error"
            continue
        for index, value in enumerate(values):
            if complaint := _misfit(params[name], value):
                yield f"{field}.{name}[{index}]", f"{json.dumps(value)[:60]} {complaint}", "error"


def _misfit(param: Param, value: JsonValue) -> str | None:
    """Why the tool could never be called with this value, or None."""
    fits = isinstance(value, _PYTHON_TYPES[param.type])
    if isinstance(value, bool) and param.type != "boolean":
        fits = False
    if not fits:
        hint = ": list each admissible list" if param.type == "array" else ""
        return f"is not of type {param.type}{hint}"
    if param.enum is not None and value not in param.enum:
        return "is not in the parameter's enum"
    return None


def _siblings(item: Item) -> Iterator[Finding]:
    for index, variant in enumerate(item.variants):
        for position, acceptable in enumerate(variant.gold.acceptable):
            for sibling in item.variants:
                if sibling is not variant and sibling.gold.tool == acceptable.tool != variant.gold.tool:
                    field = f"variants[{index}].gold.acceptable[{position}].tool"
                    message = f"{acceptable.tool} is the gold of {sibling.variant_id}: no credit for ignoring the cue"
                    yield field, message, "strict"


def _probe(item: Item) -> Iterator[Finding]:
    probe = item.perception_probe
    if probe is None:
        return
    field = "perception_probe.gold_by_variant"
    variants = {variant.variant_id for variant in item.variants}
    for missing in sorted(variants - set(probe.gold_by_variant)):
        yield field, f"no answer for variant {missing}", "error"
    for variant_id, answer in probe.gold_by_variant.items():
        if variant_id not in variants:
            yield f"{field}.{variant_id}", "no such variant", "error"
        if answer not in probe.options:
            yield f"{field}.{variant_id}", f"{answer!r} is not among the options", "error"


def _audible(item: Item) -> Iterator[Finding]:
    channels = {variant.channel for variant in item.variants}
    if len(channels) > 1:
        shown = ", ".join(sorted(channel or "none" for channel in channels))
        yield "variants", f"several channels ({shown}): one for all variants, or it becomes a cue", "error"
    for index, variant in enumerate(item.variants):
        yield from _slot(item, variant, f"variants[{index}].scene.slot")


def _slot(item: Item, variant: Variant, field: str) -> Iterator[Finding]:
    scene = variant.scene
    if scene is None:
        return
    if scene.slot is None:
        if scene.kind in ("slot_noise", "truncation"):
            yield field, f"{scene.kind} must say which words it hides", "strict"
    elif not scene.slot.strip() or _words(scene.slot) not in _words(item.transcript):
        yield field, f"{scene.slot!r} is not in the transcript", "error"


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _annotations(bank: Bank, own: bool) -> Iterator[Finding]:
    items = {item.id: item for item in bank.items}
    for item_id, annotation in bank.annotations.items():
        if item_id in items:
            yield from _annotation(bank, items[item_id], annotation)
        elif not bank.unread:
            yield item_id, "no such item in this bank", "strict"
    whole = own and "annotations.yaml" not in bank.unread
    for item_id in sorted(set(items) - set(bank.annotations)) if whole else ():
        yield item_id, "is missing: roles and harm would have to be derived", "warning"


def _annotation(bank: Bank, item: Item, annotation: Annotation) -> Iterator[Finding]:
    menu = {tool.name for tool in bank.menu(item)}
    for tool in annotation.roles:
        if tool not in menu:
            yield f"{item.id}.roles.{tool}", f"is not on the menu ({', '.join(sorted(menu))})", "error"
    if isinstance(annotation.cue_kind, Mapping):
        for variant_id in sorted(set(annotation.cue_kind) - {variant.variant_id for variant in item.variants}):
            yield f"{item.id}.cue_kind.{variant_id}", "no such variant", "error"


def _clips(bank: Bank) -> Iterator[Finding]:
    manifest_read = "audio/manifest.yaml" not in bank.unread
    if not bank.clips and manifest_read:
        yield "", "no clips: only text twins can run", "warning"
        return
    wanted = {(item.id, variant.variant_id) for item in bank.items for variant in item.variants}
    for item_id, variant_id in sorted(wanted - set(bank.clips)) if manifest_read else ():
        yield f"{item_id}/{variant_id}", "no clip for this variant", "error"
    for turn, clips in ((1, bank.clips), (2, bank.reply_clips)):
        for (item_id, variant_id), clip in sorted(clips.items()):
            field = f"{item_id}/{variant_id}" + (" (turn 2)" if turn == 2 else "")
            path = bank.clip_path(clip)
            if (item_id, variant_id) not in wanted:
                if not bank.unread:
                    yield field, "no such variant in this bank", "warning"
            elif turn == 2 and bank.item(item_id).followup is None:
                yield field, "the item has no followup, so nobody plays this reply", "warning"
            elif path is None:
                yield field, f"audio/{clip.sha256}.flac or .wav is not there", "error"
            elif _sha256(path) != clip.sha256:
                yield field, f"audio/{path.name} is not the file that its name says: restore it", "error"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
