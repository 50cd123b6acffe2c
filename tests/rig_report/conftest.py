"""A small bank on disk and runs over it, written through the public API of run folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from captures.capture import Capture, Condition, Ending, Mark, ObservedCall, Pacing
from captures.run_folder import RunFolder
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.scoring.digest import bank_digest

ITEMS = ("alpha", "beta", "gamma", "delta")


@pytest.fixture
def small_bank(tmp_path: Path) -> Bank:
    """Four items (calm → `wait`, alarm behind the caller → `act`) and an invariant control."""
    folder = tmp_path / "bank"
    folder.mkdir()
    for name in (*ITEMS, "control"):
        act = "wait" if name == "control" else "act"
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
                    "gold": {"tool": act},
                },
            ],
            "perception_probe": {
                "question": "What else is heard?",
                "options": ["nothing", "an alarm"],
                "gold_by_variant": {"calm": "nothing", "alarm": "an alarm"},
            },
        }
        if name == "control":
            item["design"] = "invariant_control"
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(item), encoding="utf-8")
    return load_bank(folder)


def capture_of(
    target: str,
    item: str,
    variant: str | None,
    condition: Condition,
    tool: str | None = None,
    text: str = "",
    **fields: Any,
) -> Capture:
    """One finished capture; audio ones are paced, and 0.5 s from commit to the complete call."""
    marks: dict[Mark, int] = {}
    pacing = None
    if condition is not Condition.TEXT_TWIN:
        marks = {Mark.FIRST_CHUNK: 0, Mark.COMMIT: 10**9, Mark.CALLER_SPEECH_END: 9 * 10**8}
        pacing = Pacing(
            pace=1.0,
            chunk_ms=20,
            chunks=50,
            lateness_p50_ns=400_000,
            lateness_p99_ns=2_000_000,
            lateness_max_ns=3_000_000,
            last_chunk_ns=100_000,
            commit_ns=200_000,
        )
    calls: tuple[ObservedCall, ...] = ()
    if tool is not None:
        marks[Mark.FIRST_CALL_COMPLETE] = 15 * 10**8
        calls = (ObservedCall(call_id="c", name=tool, arguments_json="{}", arguments={}, output_index=0),)
    base: dict[str, Any] = {
        "identity": f"{target}-{item}-{variant}-{condition}",
        "target": target,
        "item_id": item,
        "variant_id": variant,
        "condition": condition,
        "finished": True,
        "started_ns": 0,
        "adapter": "rig_socket",
        "wire_version": 1,
        "parser_version": 1,
        "ending": Ending.CALLED if tool else Ending.DECLINED,
        "calls": calls,
        "reply_text": text,
        "marks": marks,
        "pacing": pacing,
    }
    return Capture(**(base | fields))


def listener(target: str, deaf_on: Sequence[str] = ()) -> list[Capture]:
    """All cells of an agent that acts on every alarm but those of the items it is deaf on."""
    found = []
    for item in (*ITEMS, "control"):
        hears = item not in (*deaf_on, "control")
        found += [
            capture_of(target, item, None, Condition.TEXT_TWIN, "wait"),
            capture_of(target, item, "calm", Condition.AUDIO, "wait"),
            capture_of(target, item, "alarm", Condition.AUDIO, "act" if hears else "wait"),
            capture_of(target, item, "calm", Condition.PROBE, text="Nothing."),
            capture_of(target, item, "alarm", Condition.PROBE, text="an alarm" if hears else "I hear nothing"),
        ]
    return found


def write_run_to(path: Path, bank: Bank, captures: Sequence[Capture], /, **run_json: Any) -> Path:
    names = list(dict.fromkeys(capture.target for capture in captures))
    described: dict[str, Any] = {
        "format": 1,
        "targets": {name: {"role": "contestant", "adapter": "rig_socket"} for name in names},
        "bank": {"name": bank.name, "path": str(bank.root), "digest": bank_digest(bank)},
        "chunk_ms": 20,
        "pace": 1.0,
        "void_limit_s": 0.02,
    }
    folder = RunFolder.create(path, described | run_json)
    lines = (json.dumps(capture.model_dump(mode="json")) for capture in captures)
    folder.captures_path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def make_capture() -> Callable[..., Capture]:
    return capture_of


@pytest.fixture
def make_listener() -> Callable[..., list[Capture]]:
    return listener


@pytest.fixture
def write_run(tmp_path: Path, small_bank: Bank) -> Callable[..., Path]:
    """`write_run(captures, **run_json)` → the folder."""

    def write(captures: Sequence[Capture], name: str = "run", /, **run_json: Any) -> Path:
        return write_run_to(tmp_path / name, small_bank, captures, **run_json)

    return write
