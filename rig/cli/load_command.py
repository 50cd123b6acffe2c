"""`rig load`: more and more calls at once against one target."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio

from rig.cli.report_command import report_console
from rig.cli.run_command import has_uvloop
from rig.cli.secrets_seen import remember
from rig.config import ConfigError, load_config
from rig.engine.prepare import prepare
from rig.load.figures import LoadLevel, Spread
from rig.load.ramp import Bounds, check, load
from rig.report.layout import ABSENT, Table, number, table
from rig.report.terminal import print_table

MAX_CONCURRENCY = 2000


def run_load(
    config_path: Path,
    name: str | None,
    ramp: str,
    bounds: Bounds,
    picture: Path | None,
    *,
    as_json: bool,
) -> int:
    """Run the ramp and print its levels; the exit code: 1 when a bound ended it.

    Raises:
        ConfigError: the config, the ramp or the target cannot be used.
    """
    levels = _levels(ramp)
    resolved = load_config(config_path)
    remember(resolved.secrets)
    prepared = prepare(resolved)
    names = [target.name for target in prepared.targets]
    if name is None and len(names) > 1:
        raise ConfigError(str(config_path), [f"which target? give --target, one of {', '.join(names)}"])
    target = next((one for one in prepared.targets if one.name == (name or names[0])), None)
    if target is None:
        raise ConfigError(str(config_path), [f"no target {name!r}; there are {', '.join(names)}"])
    check(prepared, target)

    def told(level: LoadLevel) -> None:
        state = "; the harness is saturated" if level.own.saturated else ""
        print(
            f"{level.concurrency} at once: {level.calls} calls in {level.seconds:.0f} s, "
            f"{100 * level.error_share:.0f} % failed{state}",
            file=sys.stderr,
            flush=True,
        )

    with tempfile.TemporaryDirectory() as logs:
        found = anyio.run(
            load, prepared, target, levels, bounds, told, Path(logs), backend_options={"use_uvloop": has_uvloop()}
        )
    if picture is not None:
        from rig.load.picture import draw

        draw(found, target.name, picture)
    if as_json:
        rows = [level.model_dump(mode="json") | {"saturated": level.own.saturated} for level in found]
        print(json.dumps({"format": 1, "target": target.name, "levels": rows}))
    else:
        for made in _tables(found, target.name):
            print_table(made, report_console())
    stopped = found[-1].stopped
    if stopped is not None:
        print(f"rig: ended at {found[-1].concurrency} at once: {stopped}", file=sys.stderr)
        return 1
    return 0


def seconds_of(text: str) -> float:
    """`90`, `90s` or `1.5m` in seconds, 1 to 3600. Raises ConfigError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m") else (text, "s")
    try:
        seconds = float(number) * (60 if unit == "m" else 1)
    except ValueError:
        raise ConfigError("--hold", [f"{text!r}: give it as in 60s or 2m"]) from None
    if not 1 <= seconds <= 3600:
        raise ConfigError("--hold", [f"{text!r}: must lie between 1s and 60m"])
    return seconds


def _levels(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError("--ramp", [f"{text!r}: give whole numbers, as in 1,10,50"]) from None
    if not all(1 <= level <= MAX_CONCURRENCY for level in levels):
        raise ConfigError("--ramp", [f"{text!r}: each number must lie between 1 and {MAX_CONCURRENCY}"])
    return levels


def _tables(found: Sequence[LoadLevel], target: str) -> list[Table]:
    names = sorted({name for level in found for name in level.latency})
    theirs = table(
        f"Load on {target}: the target",
        ("at once", "calls", "failed", "errors", *(f"{name.replace('_', ' ')}\np50 / p95 s" for name in names)),
        [
            (
                str(level.concurrency),
                str(level.calls),
                f"{100 * level.error_share:.0f} %",
                ", ".join(f"{code} {n}" for code, n in sorted(level.errors.items())) or ABSENT,
                *(_spread(level.latency.get(name)) for name in names),
            )
            for level in found
        ],
        "Calls that were void for latency, by our own lateness, are in no percentile. A percentile that needs more "
        "values is absent (p95: 20).",
    )
    ours = table(
        "The harness itself",
        ("at once", "chunks\np99 ms", "void", "loop lag\nmax ms", "CPU", "unsent\naudio", "saturated"),
        [
            (
                str(level.concurrency),
                number(level.own.chunk_p99_ms),
                f"{100 * level.own.void_share:.0f} %",
                number(level.own.loop_lag_ms, 1),
                f"{100 * level.own.cpu_share:.0f} %",
                str(level.own.backlogged),
                "yes" if level.own.saturated else "no",
            )
            for level in found
        ],
        "Saturated: over 85 % of a core, or over 5 % of calls void. Figures of the target at such a level are ours.",
    )
    return [theirs, ours]


def _spread(found: Spread | None) -> str:
    return ABSENT if found is None else f"{number(found.p50, 3)} / {number(found.p95, 3)}"
