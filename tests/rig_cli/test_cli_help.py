"""Every command explains itself, and the pages name only commands and options that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from rig.cli.main import app

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = ["README.md", *sorted(str(path.relative_to(_ROOT)) for path in (_ROOT / "docs").glob("*.md"))]
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


@cache
def commands() -> dict[str, Any]:
    """Every command by its words, e.g. `bank lint`."""
    root: Any = typer.main.get_command(app)
    found = {"": root}
    for name, command in root.commands.items():
        found[name] = command
        found |= {f"{name} {inner}": deeper for inner, deeper in getattr(command, "commands", {}).items()}
    return found


def named_in(page: str) -> list[str]:
    """Every `rig …` that a page shows: lines of its console blocks, and what stands between backticks."""
    text = (_ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:console|bash|sh)\n(.*?)```", text, re.DOTALL)
    lines = [line.removeprefix("$ ").split("#")[0].strip() for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [line for line in (*lines, *spans) if re.match(r"rig( |$)", line)]


def command_of(line: str) -> str:
    """Its words, as far as they are a command's."""
    words = re.split(r"\s+", line)[1:]
    known = [" ".join(words[:count]) for count in (2, 1, 0) if " ".join(words[:count]) in commands()]
    return known[0]


@pytest.mark.parametrize("words", list(commands()))
def test_help_ends_well_and_lists_every_option(cli: Any, words: str) -> None:
    done = cli(*words.split(), "--help", COLUMNS="200")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lstrip().startswith("Usage: ")
    for parameter in commands()[words].params:
        for option in getattr(parameter, "opts", []):
            if option.startswith("--"):
                assert option in done.stdout


def test_version(cli: Any) -> None:
    done = cli("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("page", _PAGES)
def test_a_page_names_only_what_exists(page: str) -> None:
    for line in named_in(page):
        words = command_of(line)
        rest = re.split(r"\s+", line)[1 + len(words.split()) :]
        assert words or not rest or rest[0].startswith("-"), f"{page}: {line}: no such command"
        options = {option for parameter in commands()[words].params for option in getattr(parameter, "opts", [])}
        unknown = set(_OPTION.findall(" ".join(rest))) - options - {"--help", "-h"}
        assert not unknown, f"{page}: {line}: no option {', '.join(sorted(unknown))}"


def test_the_readme_names_every_command() -> None:
    shown = {command_of(line) for line in named_in("README.md")}
    assert {words for words, command in commands().items() if words and not hasattr(command, "commands")} <= shown


@pytest.mark.parametrize("arguments", [("frobnicate",), ("run",), ("run", "--bogus"), ("run", "c.yaml", "extra")])
def test_a_mistyped_command_is_told_and_not_traced(cli: Any, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Usage: " in done.stderr
