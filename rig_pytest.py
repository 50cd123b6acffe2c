"""pytest plugin: tests of a voice agent that assert on what it called, answered and how fast.

Imports the standard library and pytest alone, and drives the `rig` command; nothing of the rig is imported into the
tests' process. So this one file can also be copied into a project whose environment does not hold the rig
(`pytest -p rig_pytest`). docs/ci.md shows how it is used.

    @pytest.mark.rig(config="agent.yaml", items=["own-*"], conditions=["audio"])
    def test_acts(rig_result):              # once per cell
        assert rig_result.credit >= 0.5

One run per config, target and session: all that the collected tests want is measured together, at the first test that
asks; workers of pytest-xdist share it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_LINES_SHOWN = 20
_TEXT_SHOWN = 300
_MARKER = "rig(config, target, items, conditions): what `rig` measures for this test; what is left out is the ini's"
_KEYS = ("config", "target", "items", "conditions")


class NotMeasured(Exception):  # noqa: N818 - reads as what happened
    """What a test asks for was not measured: the cell ended in an error, the value is void or does not apply.

    Raised rather than answered, so that an absence of measurement is never taken for a result.
    """


@dataclass(frozen=True)
class Probe:
    """The answer to the forced-choice question of what can be heard."""

    answer: str | None
    """The option that the agent named; None where it named none, or several."""
    expected: str
    right: bool


@dataclass(frozen=True, repr=False)
class Result:
    """What became of one cell. Every property raises NotMeasured where nothing was measured."""

    row: dict[str, Any]
    """As `rig cells --json` has it."""
    run: Path
    """The run folder."""

    @property
    def target(self) -> str:
        return str(self.row["target"])

    @property
    def item(self) -> str:
        return str(self.row["item"])

    @property
    def variant(self) -> str | None:
        """None on a text twin, which belongs to the item."""
        found: str | None = self.row["variant"]
        return found

    @property
    def condition(self) -> str:
        """`audio`, `text_twin` or `probe`."""
        return str(self.row["condition"])

    @property
    def ending(self) -> str:
        """`called`, `declined`, `no_answer`, `unfinished`, or one of the three errors."""
        return str(self.row["ending"])

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every tool call in order: `name`, `arguments` (None where unreadable), `complete`."""
        self._measured()
        return list(self.row["calls"])

    @property
    def heard(self) -> str | None:
        """The caller's words as the agent says it heard them; None where it does not say."""
        found: str | None = self.row["heard"]
        return found

    @property
    def said(self) -> str:
        """The reply as text, or the agent's own transcript of it."""
        self._measured()
        return str(self.row["said"])

    def called(self, tool: str, /, **arguments: object) -> bool:
        """Whether the first call is `tool` with these arguments; others are free."""
        first = self.calls[0] if self.calls else None
        if first is None or first["name"] != tool:
            return False
        given = first["arguments"] or {}
        return all(name in given and _same(given[name], value) for name, value in arguments.items())

    @property
    def credit(self) -> float:
        """What the call is worth against the item's gold, 0 to 1. Of a text twin: see `credit_as`."""
        if self.variant is None:
            variants = ", ".join(self.row["scores"])
            raise NotMeasured(f"{self}: a text twin is worth something to each variant: credit_as(one of {variants})")
        return self.credit_as(self.variant)

    def credit_as(self, variant: str) -> float:
        """The credit against the gold of one variant."""
        self._measured()
        score = self.row["scores"].get(variant)
        if score is None or score["credit"] is None:
            raise NotMeasured(f"{self}: no credit as {variant!r}; there is: {', '.join(self.row['scores']) or 'none'}")
        return float(score["credit"])

    @property
    def probe(self) -> Probe:
        """The probe's answer, on cells of that condition."""
        self._measured()
        found = self.row["probe"]
        if found is None or found["right"] is None:
            why = found["not_applicable"] if found else f"the condition is {self.condition}"
            raise NotMeasured(f"{self}: no probe: {why}")
        return Probe(found["answer"], found["expected"], found["right"])

    def latency(self, name: str) -> float:
        """Seconds, e.g. `commit_to_tool_call`; void values are refused with their reason."""
        self._measured()
        found = self.row["latency"].get(name)
        if found is None:
            there = ", ".join(self.row["latency"]) or "none"
            raise NotMeasured(f"{self}: no latency {name!r} in this cell; there is: {there}")
        if found["void"]:
            raise NotMeasured(f"{self}: {name} is void: {'; '.join(found['void'])}")
        return float(found["seconds"])

    def _measured(self) -> None:
        if self.ending.endswith("_error"):
            error = self.row["error"] or {"code": self.ending, "message": self.row["ending_detail"]}
            message = _printable(f"{error['code']}: {error['message']}")
            raise NotMeasured(f"{self.place}: {self.ending}: {message} (run folder {self.run})")

    @property
    def place(self) -> str:
        """`demo-museum-01/young_visitor audio`."""
        return _place(self.row)

    def __repr__(self) -> str:
        return _printable(f"<{self.place}: {_calls(self.row)}>")

    def told(self) -> str:
        """Several lines for people: what was said, heard, called, what was expected, times, and where it is kept."""
        row = self.row
        lines = [f"{self.target} {self.place}", f"the caller says: {_short(row['transcript'])}"]
        if row["heard"] is not None:
            lines.append(f"heard as: {_short(row['heard'])}")
        if row["heard_tags"]:
            lines.append(f"heard besides: {', '.join(row['heard_tags'])}")
        lines.append(f"the agent: {_calls(row)}")
        if row["said"]:
            lines.append(f"it says: {_short(row['said'])}")
        for variant, score in row["scores"].items():
            credit = "not measured" if score["credit"] is None else format(score["credit"], "g")
            lines.append(f"expected on {variant}: {_expected(score['expected'])}; credit {credit}")
            lines += [f"  {_short(reason)}" for reason in score["reasons"]]
        if row["probe"]:
            lines.append(f"probe: answered {row['probe']['answer']!r}, expected {row['probe']['expected']!r}")
        for name, one in row["latency"].items():
            void = f" (void: {'; '.join(one['void'])})" if one["void"] else ""
            lines.append(f"{name}: {one['seconds']:.3f} s{void}")
        return "\n".join([*lines, f"run folder: {self.run}"])


@dataclass(frozen=True, repr=False)
class Agent:
    """All that a test's marker or ini asks of one target."""

    target: str
    results: tuple[Result, ...]
    run: Path

    def result(self, item: str, variant: str | None = None, condition: str = "audio", repeat: int = 0) -> Result:
        """One cell; LookupError where it was not asked for."""
        for one in self.results:
            key = (one.item, one.variant, one.condition, one.row["repeat"])
            if key == (item, variant, condition, repeat):
                return one
        there = ", ".join(one.place for one in self.results[:_LINES_SHOWN])
        raise LookupError(f"no cell {item}/{variant} {condition}; there are: {there}")

    @property
    def credit(self) -> float:
        """Mean credit of the audio cells; NotMeasured where there is none, or one ended in an error."""
        earned = [one.credit for one in self.results if one.condition == "audio"]
        if not earned:
            raise NotMeasured(f"{self.target}: no audio cell was asked for")
        return math.fsum(earned) / len(earned)

    def latency(self, name: str, percentile: int = 50) -> float:
        """Nearest-rank percentile in seconds over audio cells that have it and are not void.

        NotMeasured where there are too few for it: 1 for p50, 10 for p90, 20 for p95, 100 for p99.
        """
        if not 1 <= percentile <= 99:
            raise ValueError(f"percentile {percentile}: between 1 and 99")
        all_of_it = [one.row["latency"][name] for one in self.results if name in one.row["latency"]]
        values = sorted(one["seconds"] for one in all_of_it if not one["void"])
        needed = 1 if percentile <= 50 else math.ceil(100 / (100 - percentile))
        if len(values) < needed:
            void = len(all_of_it) - len(values)
            raise NotMeasured(
                f"{self.target}: p{percentile} of {name} needs {needed} valid values; "
                f"there are {len(values)}, and {void} void"
            )
        return float(values[math.ceil(percentile / 100 * len(values)) - 1])

    def __repr__(self) -> str:
        return f"<{self.target}: {len(self.results)} cells in {self.run}>"

    def told(self) -> str:
        """Several lines for people: cells that earned less than 1, or were not measured."""
        lines = []
        for one in self.results:
            credits = [score["credit"] for score in one.row["scores"].values()]
            if one.ending.endswith("_error") or (one.condition == "audio" and credits != [1.0]):
                lines.append(f"{one!r}" + "".join(f", credit {value}" for value in credits))
        more = [f"and {len(lines) - _LINES_SHOWN} more"] if len(lines) > _LINES_SHOWN else []
        head = f"{self.target}: {len(self.results)} cells; those on audio with less than full credit: {len(lines)}"
        return "\n".join([head, *lines[:_LINES_SHOWN], *more, f"run folder: {self.run}"])


@dataclass(frozen=True)
class Selection:
    """What a test asks for; what is empty is the config's own choice."""

    config: Path
    target: str | None = None
    items: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """As options of `rig run`."""
        pairs = [("--item", one) for one in self.items] + [("--condition", one) for one in self.conditions]
        pairs += [("--target", self.target)] if self.target else []
        return [word for pair in pairs for word in pair]


Cell = dict[str, Any]
"""One planned cell: `item`, `variant`, `condition`, `repeat`."""


@dataclass
class Rig:
    """The `rig` command in one session of pytest, and what it measured."""

    command: list[str]
    root: Path
    base: Path
    """Run folders lie in here."""
    session: str
    """Names this session among others in the same folder."""
    shared: bool
    """Whether other processes (of pytest-xdist) work beside this one."""
    wanted: dict[tuple[Path, str], set[tuple[str, str]]] = field(default_factory=dict)
    """Config and target → items and conditions that the collected tests ask for."""
    _plans: dict[Selection, tuple[str, list[Cell]]] = field(default_factory=dict)
    _results: dict[tuple[Path, str], tuple[Result, ...]] = field(default_factory=dict)

    def plan(self, selection: Selection) -> tuple[str, list[Cell]]:
        """Target and cells of a selection, without calling any agent. Raises UsageError."""
        if selection not in self._plans:
            command = ["run", str(selection.config), *selection.options, "--dry-run", "--json"]
            planned = self._once(f"plan-{_digest(*command)}", lambda: self._planned(command))["planned"]
            if len(planned) != 1:
                raise pytest.UsageError(f"{selection.config} has several targets: name one of {', '.join(planned)}")
            ((target, cells),) = planned.items()
            self._plans[selection] = target, cells
        return self._plans[selection]

    def want(self, selection: Selection, cells: Sequence[Cell]) -> None:
        """Note cells that a collected test asks for."""
        target, _ = self.plan(selection)
        noted = self.wanted.setdefault((selection.config, target), set())
        noted |= {(cell["item"], cell["condition"]) for cell in cells}

    def results(self, selection: Selection, cells: Sequence[Cell]) -> tuple[Result, ...]:
        """The results of `cells`, measured now if no process of this session has done so."""
        target, _ = self.plan(selection)
        key = selection.config, target
        if key not in self._results:
            if key not in self.wanted:
                self.want(selection, cells)
            folder = self.folder(*key)
            found = self._once(f"{folder.name}.cells", lambda: self._measured(*key, folder))
            if "failed" in found:
                raise NotMeasured(found["failed"])
            self._results[key] = tuple(Result(row, folder) for row in found["cells"])
        by_key = {_key(one.row): one for one in self._results[key]}
        lacking = [cell for cell in cells if _key(cell) not in by_key]
        if lacking:
            raise NotMeasured(f"{_place(lacking[0])}: not measured; see {self.folder(*key) / 'logs'}")
        return tuple(by_key[_key(cell)] for cell in cells)

    def folder(self, config: Path, target: str) -> Path:
        """Run folder of a config's target."""
        return self.base / f"{config.stem}-{target}-{_digest(str(config))}"

    def _once(self, name: str, work: Any) -> dict[str, Any]:
        """What `work` gives, done by one process of the session and read by the others."""
        if not self.shared:
            made: dict[str, Any] = work()
            return made
        self.base.mkdir(parents=True, exist_ok=True)
        path = self.base / f".{name}-{self.session}.json"
        with _locked(path.with_suffix(".lock")):
            if not path.exists():
                temporary = path.with_suffix(".tmp")
                temporary.write_text(json.dumps(work()), encoding="utf-8")
                temporary.replace(path)
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found

    def _planned(self, command: list[str]) -> dict[str, Any]:
        done = self._rig(command)
        if done.returncode:
            raise pytest.UsageError(_said(done))
        planned: dict[str, Any] = json.loads(done.stdout)
        return planned

    def _measured(self, config: Path, target: str, folder: Path) -> dict[str, Any]:
        """Run what is wanted, then read the cells. One command per group of conditions that want the same items."""
        by_condition: dict[str, set[str]] = {}
        for item, condition in self.wanted[config, target]:
            by_condition.setdefault(condition, set()).add(item)
        groups: dict[frozenset[str], list[str]] = {}
        for condition, items in sorted(by_condition.items()):
            groups.setdefault(frozenset(items), []).append(condition)
        folder.parent.mkdir(parents=True, exist_ok=True)
        said = ""
        for group, conditions in groups.items():
            options = Selection(config, target, tuple(sorted(group)), tuple(conditions)).options
            done = self._rig(["run", str(config), *options, "--out", str(folder), "--json"])
            if done.returncode:
                said = _said(done)
        read = self._rig(["cells", str(folder), "--target", target, "--json"])
        if read.returncode:
            return {"failed": said or _said(read)}
        cells: dict[str, Any] = json.loads(read.stdout)
        return cells

    def _rig(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments], cwd=self.root, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )


_RIG = pytest.StashKey[Rig]()
_SEEN = pytest.StashKey["list[Result | Agent]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rig", "voice agents")
    group.addoption("--rig-command", metavar="COMMAND", help="How to start the rig; default: rig_command, or rig.")
    group.addoption(
        "--rig-run", metavar="FOLDER", help="Keep runs here and measure only what they lack; default: a new one."
    )
    parser.addini("rig_command", "how to start the rig, e.g. /opt/rig/bin/rig", default="rig")
    parser.addini("rig_config", "config file (YAML) of the rig, from the root folder")
    parser.addini("rig_target", "target of the config; not needed where it has one")
    parser.addini("rig_items", "ids or globs of items; default: the config's", type="args")
    parser.addini("rig_conditions", "audio, text_twin, probe; default: the config's", type="args")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    given: dict[str, str] | None = getattr(config, "workerinput", None)
    command = shlex.split(config.getoption("rig_command") or config.getini("rig_command"))
    base = config.getoption("rig_run")
    session = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    config.stash[_RIG] = Rig(
        command=command,
        root=config.rootpath,
        base=Path(given["rig_base"]) if given else _under(config, base or f"runs/pytest/{session}"),
        session=given["rig_session"] if given else session,
        shared=given is not None,
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: tells a worker where the session's runs are."""
    rig = node.config.stash[_RIG]
    node.workerinput["rig_base"], node.workerinput["rig_session"] = str(rig.base), rig.session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "rig_result" not in metafunc.fixturenames:
        return
    try:
        selection = _selection(metafunc.config, metafunc.definition)
        _, cells = metafunc.config.stash[_RIG].plan(selection)
    except pytest.UsageError as error:
        raise pytest.Collector.CollectError(str(error)) from None  # shown without our own lines
    ids = [_place(cell).replace(" ", "-") + (f"-{cell['repeat']}" if cell["repeat"] else "") for cell in cells]
    metafunc.parametrize("rig_result", [(selection, cell) for cell in cells], ids=ids, indirect=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What the tests that are left ask for is measured together."""
    rig = config.stash[_RIG]
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "rig_result" in parameters:
            selection, cell = parameters["rig_result"]
            rig.want(selection, [cell])
        elif "rig_agent" in getattr(item, "fixturenames", ()):
            selection = _selection(config, item)
            rig.want(selection, rig.plan(selection)[1])


@pytest.fixture
def rig_result(request: pytest.FixtureRequest) -> Result:
    """One cell; the test runs once for each that its marker, or the ini, asks for."""
    selection, cell = request.param
    (found,) = request.config.stash[_RIG].results(selection, [cell])
    request.node.stash.setdefault(_SEEN, []).append(found)
    return found


@pytest.fixture
def rig_agent(request: pytest.FixtureRequest) -> Agent:
    """All cells that the test's marker, or the ini, asks for."""
    rig, selection = request.config.stash[_RIG], _selection(request.config, request.node)
    target, cells = rig.plan(selection)
    found = Agent(target, rig.results(selection, cells), rig.folder(selection.config, target))
    request.node.stash.setdefault(_SEEN, []).append(found)
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what was heard and called, and where it is kept."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        report.sections += [("rig", _printable(one.told())) for one in item.stash.get(_SEEN, [])]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    folders = sorted(path.parent for path in config.stash[_RIG].base.glob("*/run.json"))
    for folder in folders:
        terminalreporter.write_line(f"rig: run folder {folder} (rig report {folder} --full)")


def _selection(config: pytest.Config, node: Any) -> Selection:
    """The words of the test's markers, the nearest first, else the ini's. Raises UsageError."""
    given: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("rig"))):
        if marker.args or not set(marker.kwargs) <= set(_KEYS):
            raise pytest.UsageError(f"{node.nodeid}: the marker rig takes {', '.join(f'{key}=' for key in _KEYS)}")
        given |= marker.kwargs
    path = given.get("config") or config.getini("rig_config")
    if not path:
        raise pytest.UsageError(f"{node.nodeid}: no config: @pytest.mark.rig(config=...), or rig_config in the ini")
    rig = config.stash[_RIG]
    if not rig.command or shutil.which(rig.command[0]) is None:
        raise pytest.UsageError(
            f"rig_command: {' '.join(rig.command)!r} is not there: pipx install voice-agent-rig, or set rig_command"
        )
    return Selection(
        config=_under(config, path),
        target=given.get("target") or config.getini("rig_target") or None,
        items=_words(given.get("items") or config.getini("rig_items")),
        conditions=_words(given.get("conditions") or config.getini("rig_conditions")),
    )


def _words(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _under(config: pytest.Config, path: str | Path) -> Path:
    return (config.rootpath / path).resolve()


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def _key(cell: dict[str, Any]) -> tuple[object, ...]:
    return cell["item"], cell["variant"], cell["condition"], cell["repeat"]


def _place(cell: dict[str, Any]) -> str:
    variant = f"/{cell['variant']}" if cell["variant"] else ""
    return f"{cell['item']}{variant} {cell['condition']}"


def _calls(row: dict[str, Any]) -> str:
    """`called sign_up({"seats": 2})`, or how it ended."""
    made = [
        f"{call['name']}({'unreadable' if call['arguments'] is None else _short(call['arguments'])})"
        for call in row["calls"]
    ]
    error = f": {row['error']['message']}" if row["error"] else ""
    return f"called {', then '.join(made)}" if made else f"{row['ending']}{error}"


def _expected(expected: dict[str, Any]) -> str:
    return "no call" if expected["tool"] is None else f"{expected['tool']}({_short(expected['arguments'])})"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _TEXT_SHOWN else text[:_TEXT_SHOWN] + "…"


def _printable(text: str) -> str:
    """What an agent said must not be acted on by a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _same(given: object, value: object) -> bool:
    """Equality of JSON values: True is not 1."""
    return given == value and isinstance(given, bool) == isinstance(value, bool)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """The last lines of a command that failed."""
    lines = (done.stderr or done.stdout).strip().splitlines()[-_LINES_SHOWN:]
    return _printable("\n".join(lines)) or f"rig ended with {done.returncode} and said nothing"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the system lets go of it when a process dies."""
    import fcntl  # not on Windows, where the rest still works without pytest-xdist

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
