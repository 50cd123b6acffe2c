"""`rig import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rig.bank.loader import load_bank
from rig.importing import records


def import_run(paths: Sequence[Path], bank: Path, name: str, role: str, out: Path) -> None:
    """Write a run folder from published records.

    Raises:
        BankError, RecordsError, RunFolderError, WriterError: one line per problem, for the user.
    """
    records.import_run(paths, load_bank(str(bank)), name, role, out)
    print(f"rig: imported into {out}; read it with: rig report {out}", file=sys.stderr)
