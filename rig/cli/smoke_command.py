"""`rig smoke`: the small suite over a config's targets, judged, and written for CI."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from rig.bank.loader import PACKAGED_BANK
from rig.checks import written
from rig.checks.judge import Judged, exit_code
from rig.checks.load import load_targets
from rig.checks.smoke import CONDITIONS, SMOKE_ITEMS, judge_smoke
from rig.cli.check_command import STEP_SUMMARY_ENV, write_text
from rig.cli.chosen import Chosen
from rig.cli.run_command import run_resolved
from rig.config import ResolvedConfig, load_config
from rig.report.layout import plain

TURN_LIMIT_S = 15.0
"""An agent that says nothing for so long is as good as silent; a config may say less."""
ATTEMPTS = 2
INTERRUPTED = 130


def smoke(
    config: Path,
    out: Path | None,
    targets: list[str],
    *,
    own_items: bool,
    credit_at_least: float | None,
    junit: Path | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Run and judge; the exit code: 0 all limits kept, 1 one broken, 2 one could not be measured, 130 interrupted.

    Raises:
        ConfigError, BankError, LimitsError and what `rig run` raises: one line each, for the user.
    """
    resolved = suite_of(Chosen(targets=targets).of(load_config(config)), own_items=own_items)
    names = [target.name for target in resolved.config.targets]
    judged: list[Judged] = []
    folder = Path()

    def tell(path: Path) -> None:
        nonlocal folder
        folder = path
        loaded = load_targets(path, None, names)
        judged.extend(one for target in loaded.targets for one in judge_smoke(target, credit_at_least))

    if run_resolved(resolved, out, tell, verbose=verbose) == INTERRUPTED:
        return INTERRUPTED
    code = exit_code(judged, inconclusive_passes=False)
    if junit is not None:
        write_text(junit, written.junit(judged, inconclusive_passes=False, name="rig smoke"))
    if step_summary := os.environ.get(STEP_SUMMARY_ENV):
        text = written.markdown(judged, code, str(folder), (), name="rig smoke", how="Counts of this one run.")
        write_text(Path(step_summary), text, append=True)
    if as_json:
        told = {**written.as_json(judged, code, ()), "run": str(folder.resolve())}
        print(json.dumps(told, indent=2, allow_nan=False))
    else:
        for line in written.lines(judged):
            print(line)
        print(f"rig smoke {written.summed_up(judged, code)}; cells: rig cells {plain(str(folder))}", file=sys.stderr)
    return code


def suite_of(resolved: ResolvedConfig, *, own_items: bool) -> ResolvedConfig:
    """The config with the small suite in place of its own: one repeat, first turns alone, short waits.

    `own_items`: the config's own bank and items, for agents that take no others.
    """
    own = resolved.config
    limits = own.limits.model_copy(
        update={"turn_s": min(own.limits.turn_s, TURN_LIMIT_S), "attempts": min(own.limits.attempts, ATTEMPTS)}
    )
    chosen = {} if own_items else {"bank": PACKAGED_BANK, "engine": None, "items": SMOKE_ITEMS}
    changes = {
        **chosen, "conditions": CONDITIONS, "repeats": 1, "second_turn": False, "barge_in": None, "limits": limits,
    }  # fmt: skip
    public = {
        **resolved.public,
        **({"bank": PACKAGED_BANK, "items": list(SMOKE_ITEMS)} if chosen else {}),
        "conditions": list(map(str, CONDITIONS)),
        "repeats": 1,
        "second_turn": False,
        "limits": limits.model_dump(),
    }
    dropped = {"barge_in", "engine"} if chosen else {"barge_in"}
    public = {key: value for key, value in public.items() if key not in dropped}
    return replace(resolved, config=own.model_copy(update=changes), public=public)
