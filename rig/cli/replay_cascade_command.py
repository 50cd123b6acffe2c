"""`rig replay-cascade`: a run's stored transcripts, told to other text models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rig.cli.report_command import print_report
from rig.cli.run_command import run_resolved
from rig.config import ResolvedConfig, load_config
from rig.engine.prepare import Prepared
from rig.engine.replay_cascade import chosen_targets, prepare_replay


def replay(
    run: Path,
    config: Path,
    targets: Sequence[str],
    source: str | None,
    out: Path | None,
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    """Replay, then report; the process's exit code.

    Raises:
        ConfigError, ReportError, RunFolderError, BankError: one line each, for the user.
    """

    def prepared(resolved: ResolvedConfig) -> Prepared:
        return prepare_replay(resolved, run, source)

    def tell(folder: Path) -> None:
        print_report([folder], [], None, as_json=as_json, markdown=False)

    return run_resolved(chosen_targets(load_config(config), targets), out, tell, verbose=verbose, prepared_by=prepared)
