"""Shared fixtures: where the reference data lies, and how its absence is said."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

_PULSE = ("pulseaudio", "pactl", "parec")
_REPO = Path(__file__).resolve().parent.parent


def _shared() -> Path | None:
    candidate = Path(os.environ.get("RIG_SHARED_DIR", _REPO.parent / "shared"))
    return candidate if (candidate / "voxparity-dev").is_dir() else None


def _chromium() -> str | None:
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shared_data: needs the reference data beside the project (../shared)")
    config.addinivalue_line("markers", "node: runs Node, and installs one pinned package with npm")
    config.addinivalue_line("markers", "device: plays through PyAudio into PulseAudio's null sinks")
    config.addinivalue_line("markers", "chromium: opens a page in headless Chromium")


def _absent() -> dict[str, str]:
    """Marker of tests that cannot be run here → why."""
    packages = "pulseaudio pulseaudio-utils libasound2-plugins portaudio19-dev gcc python3-dev"
    no_device = importlib.util.find_spec("pyaudio") is None or any(shutil.which(name) is None for name in _PULSE)
    found = {
        "shared_data": (_shared() is None, "reference data not found (set RIG_SHARED_DIR)"),
        "node": (
            shutil.which("node") is None or shutil.which("npm") is None,
            "Node or npm not found (on Debian: apt-get install nodejs npm)",
        ),
        "device": (
            no_device,
            f"PyAudio or PulseAudio not found (apt-get install {packages}; make test EXTRAS=dev,device)",
        ),
        "chromium": (_chromium() is None, "Chromium not found (on Debian: apt-get install chromium)"),
    }
    return {marker: why for marker, (absent, why) in found.items() if absent}


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Says what is deselected, also where workers of their own collect the tests."""
    return [f"deselected: tests marked {marker}: {why}" for marker, why in _absent().items()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect, with a printed line, what needs absent reference data, devices or programs."""
    for marker in _absent():
        absent = [item for item in items if item.get_closest_marker(marker)]
        if absent:
            items[:] = [item for item in items if item not in absent]
            config.hook.pytest_deselected(items=absent)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser."""
    found = _chromium()
    assert found is not None, "tests using chromium carry the marker chromium"
    return found


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
