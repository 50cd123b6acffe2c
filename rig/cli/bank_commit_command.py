"""`rig bank commit` and `rig bank check`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from rig.bank import commitment


def write_commitment(bank: str, out: Path, secret_out: Path | None) -> int:
    """Commit to a bank; the exit code. Raises BankError, CommitmentError."""
    secret = commitment.new_secret() if secret_out is not None else None
    if secret_out is not None and secret is not None:
        commitment.save_secret(secret_out, secret)
    made = commitment.commit(bank, secret)
    commitment.save(out, made)
    print(f"{made.items} items, {made.clips} clips, {made.files} files; root {made.root}")
    print(f"rig: publish {out}, or its root alone", file=sys.stderr)
    if secret_out is not None:
        print(
            f"rig: keep {secret_out} to yourself: without it nobody can check, with it anybody can guess",
            file=sys.stderr,
        )
    return 0


def check_commitment(bank: str, file: Path, secret_file: Path | None, *, as_json: bool) -> int:
    """Hold a bank to a commitment; 0 when it is the same, else 1. Raises BankError, CommitmentError."""
    committed = commitment.load(file)
    secret = None if secret_file is None else commitment.load_secret(secret_file)
    found = commitment.differences(bank, committed, secret)
    if as_json:
        told = {"bank": committed.bank, "made": committed.made, "root": committed.root}
        print(json.dumps({**told, "same": not found, "differences": [asdict(one) for one in found]}, indent=2))
        return 1 if found else 0
    for one in found:
        print(f"{one.what}: {one.where}")
    said = f"{len(found)} differences" if found else f"the same in all {committed.files} files"
    print(f"{bank}: {said} as committed to on {committed.made} (root {committed.root[:16]}…)")
    return 1 if found else 0
