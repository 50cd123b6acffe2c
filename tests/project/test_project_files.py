"""The files themselves: nothing of the machine they were written on, and every module says what it is for."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

PACKAGES = ("captures", "transports", "adapters", "turn_control", "rig")
# Written so that this file does not match itself.
FOREIGN = re.compile(
    rb"(?<![\w.])/(?:work|root|home)/|/tmp/v[/]|pypi[.]org|pythonhosted[.]org|deb[.]debian[.]org|index-url[ =]+http"
)


def tracked(repo_dir: Path) -> list[str]:
    """Paths that git knows and that are there, relative to the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repo_dir, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\0") if path and (repo_dir / path).is_file()]


def test_no_path_of_a_machine_and_no_registry(repo_dir: Path) -> None:
    found = []
    for path in tracked(repo_dir):
        content = (repo_dir / path).read_bytes()
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.splitlines(), 1):
            if (match := FOREIGN.search(line)) is not None:
                found.append(f"{path}:{number}: {match.group().decode()}")
    assert found == []


def test_every_module_says_what_it_is_for(repo_dir: Path) -> None:
    silent = []
    for path in tracked(repo_dir):
        if path.endswith(".py") and path.startswith(
            (*(f"{name}/" for name in PACKAGES), "tests/benchmarks/", "examples/")
        ):
            module = ast.parse((repo_dir / path).read_text())
            if module.body and not ast.get_docstring(module):
                silent.append(path)
    assert silent == []
