"""The files beside this one, for tests (which are no packages)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_HERE = Path(__file__).parent
_module("hostile", _HERE / "hostile.py")
_CAMPAIGN = _module("campaign", _HERE / "campaign.py")
_BANKS = _module("chaos_banks", _HERE.parent / "rig_engine" / "banks.py")


@pytest.fixture
def campaign() -> ModuleType:
    """`campaign.py`."""
    return _CAMPAIGN


@pytest.fixture
def small_bank(tmp_path: Path) -> Path:
    """A bank of one item with a clip of 0.1 s."""
    clip = _BANKS.wav(_BANKS.tone(0.1))
    root: Path = _BANKS.write_bank(tmp_path / "bank", {"clear": clip}, items=(_BANKS.BOOKING,))
    return root
