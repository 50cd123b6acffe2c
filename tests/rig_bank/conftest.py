"""A small bank on disk, whole and right, for tests to break."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.bank.loader import load_bank
from rig.bank.models import Bank

ITEM: dict[str, Any] = {
    "id": "own-0001",
    "policy_mode": "explicit",
    "domain": "banking",
    "transcript": "Send nine hundred to the usual account, please.",
    "scenario": "You are a bank's telephone agent.",
    "explicit_policy": "Policy: if the amount was not heard, ask for it again.",
    "tools": [
        {
            "name": "send_money",
            "description": "Send the amount.",
            "params": [
                {"name": "amount", "type": "integer", "required": True},
                {"name": "labels", "type": "array of string"},
                {"name": "speed", "type": "string", "enum": ["normal", "instant"]},
            ],
        },
        {"name": "ask_again", "description": "Ask for the missing part.", "params": []},
    ],
    "variants": [
        {"variant_id": "clear", "emotion": "neutral", "gold": {"tool": "send_money", "args": {"amount": [900]}}},
        {
            "variant_id": "masked",
            "emotion": "neutral",
            "scene": {"kind": "slot_noise", "asset": "synth:white_noise", "slot": "nine hundred", "seed": 1},
            "gold": {
                "tool": "ask_again",
                "acceptable": [{"tool": "ask_clarifying_question", "credit": 0.7}],
            },
        },
    ],
    "perception_probe": {
        "question": "How was the amount?",
        "options": ["clear", "masked by noise"],
        "gold_by_variant": {"clear": "clear", "masked": "masked by noise"},
    },
}


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out each time: the loader reads no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@pytest.fixture
def item() -> dict[str, Any]:
    """A fresh copy of an item file's data, without a problem."""
    return copy.deepcopy(ITEM)


@pytest.fixture
def write_bank(tmp_path: Path) -> Callable[..., Path]:
    """Write a bank folder of files (relative name → data or raw text); returns the folder."""

    def write(files: Mapping[str, Any]) -> Path:
        root = tmp_path / "bank"
        for name, data in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(data if isinstance(data, str) else yaml.dump(data, Dumper=_Dumper), encoding="utf-8")
        return root

    return write


@pytest.fixture
def own_bank(write_bank: Callable[..., Path]) -> Callable[..., Bank]:
    """Load a bank of our own (`origin: own`) that holds one item, annotated as told."""

    def load(item: dict[str, Any], annotation: dict[str, Any] | None = None, origin: str = "own") -> Bank:
        files = {
            "bank.yaml": {"name": "test", "version": "3", "origin": origin},
            "items/one.yaml": item,
            "annotations.yaml": {item["id"]: annotation or {}},
        }
        return load_bank(write_bank(files))

    return load
