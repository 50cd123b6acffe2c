"""Keeps a run folder in any store that fsspec knows (S3, GCS, SSH, …): fetched before a run, pushed while it goes on.

The folder itself is local: what is appended and synced line by line needs a file system. Files other than
`captures.jsonl` are written once, so only what is new or longer is pushed, that one last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import anyio.to_thread

from captures.durable import TEMPORARY
from captures.run_folder import RunFolderError

_LAST = ("captures.jsonl", "run.json")
_NOT_KEPT = (".lock",)
_EVERY_S = 30.0


class Store:
    """A folder in a store. Its calls block; use a thread."""

    def __init__(self, url: str) -> None:
        """Raises RunFolderError where the store cannot be used."""
        try:
            import fsspec
        except ImportError:
            raise RunFolderError("--store needs fsspec: pip install 'voice-agent-rig[cluster]'") from None
        self.url = url
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            raise RunFolderError(f"{url}: this store cannot be used ({error})") from None
        self._pushed: dict[str, int] = {}

    def fetch(self, folder: Path) -> int:
        """Bring what the store holds into `folder`; the number of files. Raises RunFolderError."""
        try:
            if not self._files.exists(self._root):
                return 0
            found: dict[str, Any] = self._files.find(self._root, detail=True)
            for path, about in found.items():
                name = PurePosixPath(path).relative_to(PurePosixPath(self._root)).as_posix()
                if ".." in PurePosixPath(name).parts:
                    raise RunFolderError(f"{self.url}: holds a file outside its folder: {name}")
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(path, str(folder / name))
                self._pushed[name] = int(about["size"])
        except OSError as error:
            raise RunFolderError(f"{self.url}: cannot be read ({error})") from None
        return len(found)

    def push(self, folder: Path) -> int:
        """Bring what is new in `folder` to the store; the number of files. Raises RunFolderError."""
        names = sorted(
            (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()),
            key=lambda name: (name in _LAST, _LAST.index(name) if name in _LAST else 0, name),
        )
        count = 0
        try:
            for name in names:
                size = (folder / name).stat().st_size
                if name in _NOT_KEPT or name.endswith(TEMPORARY):
                    continue
                if self._pushed.get(name) == size and name != "run.json":
                    continue
                target = f"{self._root}/{name}"
                self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(folder / name), target)
                self._pushed[name] = size
                count += 1
        except OSError as error:
            raise RunFolderError(f"{self.url}: cannot be written ({error})") from None
        return count


@asynccontextmanager
async def kept_in(store: Store | None, folder: Path) -> AsyncIterator[None]:
    """Push `folder` to `store` every half minute while the context lasts, and at its end. Raises RunFolderError."""
    if store is None:
        yield
        return

    async def now_and_then() -> None:
        while True:
            await anyio.sleep(_EVERY_S)
            await anyio.to_thread.run_sync(store.push, folder)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(now_and_then)
            yield
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(store.push, folder)
