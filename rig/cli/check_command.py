"""`rig check`: reads run and limits, prints the outcome, writes the files that CI wants."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rig.bank.loader import load_bank
from rig.checks import written
from rig.checks.judge import exit_code, judge
from rig.checks.limits import LimitsError, read_limits
from rig.checks.load import load_targets
from rig.report.layout import plain

STEP_SUMMARY_ENV = "GITHUB_STEP_SUMMARY"


def check_run(
    run: Path,
    config: Path,
    baseline: Path | None,
    bank: Path | None,
    *,
    junit: Path | None,
    summary: Path | None,
    as_json: bool,
) -> int:
    """Judge `run`, print and write the outcome; returns the exit code.

    Raises:
        LimitsError, ReportError, RunFolderError, BankError, BankMismatchError: one line each, for the user.
    """
    limits = read_limits(config)
    if limits.needs_baseline and baseline is None:
        raise LimitsError(f"{config}: {limits.needs_baseline[0]} needs an earlier run: name it with --baseline")
    loaded = load_targets(run, baseline, limits.targets, load_bank(str(bank)) if bank is not None else None)
    judged = [one for target in loaded.targets for one in judge(target, limits, loaded.baseline.get(target.name))]
    code = exit_code(judged, limits.inconclusive_passes)
    text = written.markdown(judged, code, str(run), loaded.warnings)
    if junit is not None:
        write_text(junit, written.junit(judged, limits.inconclusive_passes))
    if summary is not None:
        write_text(summary, text)
    if step_summary := os.environ.get(STEP_SUMMARY_ENV):
        write_text(Path(step_summary), text, append=True)
    if as_json:
        print(json.dumps(written.as_json(judged, code, loaded.warnings), indent=2, allow_nan=False))
    else:
        for line in [*written.lines(judged), *(f"warning: {plain(one)}" for one in loaded.warnings)]:
            print(line)
        print(f"rig check {written.summed_up(judged, code)}", file=sys.stderr)
    return code


def write_text(path: Path, text: str, append: bool = False) -> None:
    """Write or append. Raises LimitsError, one line, where that cannot be."""
    try:
        with path.open("a" if append else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LimitsError(f"{path}: cannot be written ({error.strerror})") from None
