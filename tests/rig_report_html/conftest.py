"""The small bank and the run builders of the report's tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_REPORT = Path(__file__).resolve().parent.parent / "rig_report" / "conftest.py"
_spec = importlib.util.spec_from_file_location("rig_html_builders", _REPORT)
assert _spec is not None
assert _spec.loader is not None
_builders = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _builders
_spec.loader.exec_module(_builders)

small_bank = _builders.small_bank
make_capture = _builders.make_capture
make_listener = _builders.make_listener
write_run = _builders.write_run


@pytest.fixture
def write_run_over() -> Callable[..., Path]:
    """`write_run_over(path, bank, captures)` → the folder."""
    write: Callable[..., Path] = _builders.write_run_to
    return write
