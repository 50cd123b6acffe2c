"""Files that survive a crash: written under a temporary name, synced, then renamed. Knows nothing of their content."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TEMPORARY = ".tmp"
"""Suffix of files that are not finished; whoever holds the folder's lock may delete them."""


def write_file(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all. Raises `OSError`.

    The name itself is durable after `sync_folder(path.parent)`.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def sync_folder(path: Path) -> None:
    """Make new names in `path` durable. Raises `OSError`."""
    if sys.platform == "win32":
        return  # folders cannot be opened there; the file system journals names itself
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
