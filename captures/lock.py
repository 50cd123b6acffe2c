"""One writer per run folder: a lock that the operating system drops when its holder dies."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FolderLockedError(RuntimeError):
    """Another process writes this folder; one line that names it and says what to do."""


@contextmanager
def folder_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path` until the block ends. Raises `FolderLockedError` at once when another holds it.

    Where the file system (or Windows) has no such locks, a file made exclusively stands in for one: it has to be
    deleted by hand when its holder was killed, and the message says so.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        locked = _try_lock(handle)
        if locked is False:
            raise FolderLockedError(
                f"{path.parent}: another rig writes this run ({_owner(path)}); wait for it or stop it"
            )
        if locked is None:
            with _exclusive_file(path.with_name(path.name + ".exclusive")):
                yield
            return
        os.ftruncate(handle, 0)
        os.pwrite(handle, _me(), 0)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool | None:
    """True: locked. False: another holds it. None: no such locks here."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _exclusive_file(path: Path) -> Iterator[None]:
    try:
        with path.open("xb") as file:
            file.write(_me())
    except FileExistsError:
        raise FolderLockedError(
            f"{path.parent}: another rig writes this run ({_owner(path)}); if it is no longer alive, delete {path}"
        ) from None
    try:
        yield
    finally:
        path.unlink()


def _me() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_bytes())
        return f"process {int(owner['pid'])} on {owner['host']!s}"
    except (OSError, ValueError, KeyError, TypeError):
        return "its process is unknown"
