"""`rig verify`: whether a run is what it says it is, in a summary that can be filed."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rig.report.layout import plain
from rig.verify.checks import Result, verify

_WORDS = {0: "verified", 1: "FAILED", 2: "not fully verifiable"}


def print_verification(run: Path, bank: Path | None, *, as_json: bool) -> int:
    """Verify and print; the exit code: 0 verified, 1 a check failed, 2 a check was not possible.

    Raises:
        RunFolderError: there is no run.
    """
    found = verify(run, bank)
    made = datetime.now(UTC).isoformat(timespec="seconds")
    by = f"voice-agent-rig {version('voice-agent-rig')}"
    if as_json:
        body = asdict(found) | {"format": 1, "made": made, "by": by, "exit_code": found.exit_code}
        print(json.dumps(body, indent=1))
        return found.exit_code
    print(f"Verification of {plain(found.run)}\nmade {made} by {by}\n")
    for name, sha256 in found.files.items():
        print(f"  {name:<16} sha256 {sha256}")
    print()
    for check in found.checks:
        mark = {Result.PASSED: "ok", Result.FAILED: "FAILED", Result.NOTED: "note"}.get(check.result, "–")
        print(f"  {mark:<7} {check.name:<13} {plain(check.told)}")
        for line in check.findings:
            print(f"          {'':<13} {plain(line)}")
    print(f"\n{_WORDS[found.exit_code]}")
    return found.exit_code
