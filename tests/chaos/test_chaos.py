"""A few hundred sessions against a server that breaks in known ways; the long run is `soak.py`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


def test_every_fault_ends_as_it_must_and_nothing_is_left(
    campaign: ModuleType, small_bank: Path, tmp_path: Path
) -> None:
    figures = campaign.campaign(
        tmp_path / "run", small_bank, sessions=200, heavy=3, seed=20261201, at_once=100, batch=200
    )
    assert figures.surprises == []
    assert figures.hangs == 0
    assert figures.sessions == figures.as_expected == figures.lines == 204
    assert set(figures.faults) == {*campaign.EXPECTED, *campaign.HEAVY}
    assert (figures.tasks_left, figures.descriptors_left, figures.sessions_left) == (0, 0, 0)
