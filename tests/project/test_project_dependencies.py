"""The dependencies: each is explained, and none at run time binds a user of the rig by its licence."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PERMISSIVE = ("MIT", "BSD", "Apache", "ISC", "PSF", "Python Software Foundation", "MPL", "Mozilla")
SHARED_LIBRARIES = {"soxr": "LGPL-2.1-or-later"}
"""Used as installed, unmodified: the LGPL then asks nothing of a user's own code (libsndfile's case, too)."""
BINDING = re.compile(r"\b[AL]?GPL|GNU|proprietary|commercial", re.IGNORECASE)


def declared(repo_dir: Path) -> dict[str, set[str]]:
    """Package names by extra; run-time ones under the empty name."""
    project = tomllib.loads((repo_dir / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: {canonicalize_name(Requirement(line).name) for line in lines} for extra, lines in groups.items()}


def run_time_tree(repo_dir: Path) -> list[str]:
    """Names of all that a plain installation brings along on this machine."""
    found: set[str] = set()
    waiting = set(declared(repo_dir)[""])
    while waiting:
        name = waiting.pop()
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue  # for another system, e.g. uvloop where there is none
        found.add(name)
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting |= {canonicalize_name(need.name)} - found
    return sorted(found)


def licence(name: str) -> str:
    """What the package says about its licence, in whichever field; else the first line of its licence file."""
    about = metadata(name)
    stated = [about.get("License-Expression"), about.get("License")]
    stated += [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    told = " / ".join(line.splitlines()[0] for line in stated if line)
    if told:
        return told
    files = [file for file in distribution(name).files or [] if "LICENSE" in file.name.upper()]
    return files[0].read_text().splitlines()[0] if files else "not stated"


def test_every_dependency_has_its_row(repo_dir: Path) -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ", (repo_dir / "docs/dependencies.md").read_text(), re.MULTILINE)
    explained = sorted(row for row in rows if row != "package")
    assert explained == sorted(name for names in declared(repo_dir).values() for name in names)


def test_every_dependency_is_pinned(repo_dir: Path) -> None:
    pins = re.findall(r"^([A-Za-z0-9._-]+)==\S+", (repo_dir / "constraints.txt").read_text(), re.MULTILINE)
    wanted = {name for names in declared(repo_dir).values() for name in names} | set(run_time_tree(repo_dir))
    assert wanted - {canonicalize_name(pin) for pin in pins} == set()


def test_run_time_licences_are_permissive(repo_dir: Path, subtests: pytest.Subtests) -> None:
    names = run_time_tree(repo_dir)
    assert {"openai", "pydantic-core", "aiofastnet"} <= set(names)
    for name in names:
        with subtests.test(name):
            stated = licence(name)
            if name in SHARED_LIBRARIES:
                assert stated == SHARED_LIBRARIES[name]
                continue
            assert any(word in stated for word in PERMISSIVE), stated
            assert not BINDING.search(stated), stated
