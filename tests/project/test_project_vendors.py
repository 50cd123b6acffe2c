"""The vendors' page has one row for each realtime dialect, and says honestly how it was verified."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from adapters import registry
from rig.agents.emulator import ROUTES

COLUMNS = 10
VERIFIED = ("emulator with the vendor's SDK", "documentation only")


def test_every_realtime_vendor_has_its_row(repo_dir: Path) -> None:
    lines = (repo_dir / "docs" / "vendors.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| Vendor | `adapter`"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert {len(row) for row in rows} == {COLUMNS}
    # What has no key of its own (the rig socket) is no vendor.
    realtime = {name for name, route in ROUTES.items() if route.websocket and registry.dialect(name).default_key_env}
    assert Counter(row[1].strip("`") for row in rows) == Counter(realtime)
    for row in rows:
        assert row[-1].startswith(VERIFIED), row[0]
        assert all(row), row[0]
