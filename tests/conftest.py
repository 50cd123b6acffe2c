"""Shared fixtures: where the reference data lies, and how its absence is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPO = Path(__file__).resolve().parent.parent


def _shared() -> Path | None:
    candidate = Path(os.environ.get("RIG_SHARED_DIR", _REPO.parent / "shared"))
    return candidate if (candidate / "voxparity-dev").is_dir() else None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shared_data: needs the reference data beside the project (../shared)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect, with a printed line, what needs absent reference data."""
    if _shared() is not None:
        return
    absent = [item for item in items if item.get_closest_marker("shared_data")]
    if absent:
        items[:] = [item for item in items if item not in absent]
        config.hook.pytest_deselected(items=absent)
        print(f"\n{len(absent)} tests deselected: reference data not found (set RIG_SHARED_DIR)")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder with the reference data (`voxparity-dev`, `cases`)."""
    found = _shared()
    assert found is not None, "tests using shared_dir carry the marker shared_data"
    return found


@pytest.fixture(scope="session")
def repo_dir() -> Path:
    """The project's own folder."""
    return _REPO
