"""`rig bank lint`."""

from __future__ import annotations

import dataclasses
import json

from rig.bank.lint import lint
from rig.bank.loader import load_bank


def print_lint(bank: str, *, as_json: bool) -> int:
    """Print every problem; 1 if any is an error, else 0."""
    loaded = load_bank(bank)
    problems = lint(loaded)
    errors = sum(problem.level == "error" for problem in problems)
    if as_json:
        print(json.dumps([dataclasses.asdict(problem) for problem in problems], indent=2))
    else:
        for problem in problems:
            print(problem)
        variants = sum(len(item.variants) for item in loaded.items)
        print(
            f"{loaded.name}: {len(loaded.items)} items, {variants} variants, {len(loaded.clips)} clips; "
            f"{errors} errors, {len(problems) - errors} warnings"
        )
    return 1 if errors else 0
