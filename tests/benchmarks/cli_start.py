"""How long `rig --help` takes, beside a Python that only imports typer. Prints seconds and their ratio; judges nothing.

Run as `python tests/benchmarks/cli_start.py`. The two are measured in turn, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
COMMANDS = {
    "rig --help": [str(Path(sys.executable).parent / "rig"), "--help"],
    "python -c 'import typer'": [sys.executable, "-c", "import typer"],
}


def seconds(command: list[str]) -> float:
    """Wall seconds of one start of a command, its output thrown away."""
    start_s = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start_s


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            taken[name].append(seconds(command))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        print(f"{name:26} median {medians[name]:.3f} s  fastest {min(times):.3f} s  of {ROUNDS}")
    help_s, typer_s = medians.values()
    print(f"ratio of the medians: {help_s / typer_s:.2f}")


if __name__ == "__main__":
    main()
