"""`rig bank lint`."""

from __future__ import annotations

import dataclasses
import json

from rig.bank.blind import blind_policies
from rig.bank.lint import lint
from rig.bank.loader import read_bank


def print_lint(bank: str, *, as_json: bool) -> int:
    """Print every problem, and what blind policies earn; 1 if any problem is an error, else 0.

    Goes on past files that cannot be read. Raises BankError where there is no such folder.
    """
    read = read_bank(bank)
    problems = lint(read)
    policies = blind_policies(read)
    errors = sum(problem.level == "error" for problem in problems)
    variants = sum(len(item.variants) for item in read.items)
    if as_json:
        found = {
            "bank": read.name,
            "items": len(read.items),
            "variants": variants,
            "clips": len(read.clips),
            "unread_files": sorted(read.unread),
            "problems": [dataclasses.asdict(problem) for problem in problems],
            "blind_policies": [dataclasses.asdict(policy) | {"exceeds": policy.exceeds} for policy in policies],
        }
        print(json.dumps(found, indent=2))
        return 1 if errors else 0
    for problem in problems:
        print(problem)
    if policies:
        print("Blind policies: what they earn without hearing anything, and the bound" + _unjudged(policies[0].judged))
        for policy in policies:
            print(f"  {policy.name:<46} {policy.mean:.2f}  {policy.bound:.2f}{'  EXCEEDS' if policy.exceeds else ''}")
    left_out = f"; with errors, not checked together with the others: {', '.join(sorted(read.unread))}"
    print(
        f"{read.name}: {len(read.items)} items, {variants} variants, {len(read.clips)} clips; "
        f"{errors} errors, {len(problems) - errors} warnings{left_out if read.unread else ''}"
    )
    return 1 if errors else 0


def _unjudged(judged: bool) -> str:
    return "" if judged else " (too few items to judge by)"
