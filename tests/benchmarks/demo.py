"""The demo as a user runs it: wall time, peak memory of its process tree, void latencies. Prints, judges nothing.

python tests/benchmarks/demo.py [--quick]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

_SAMPLE_S = 0.25


def tree_bytes(root: psutil.Process) -> tuple[int, int]:
    """Resident bytes of a process and its descendants: summed, and with shared pages counted once (0 if unknown)."""
    resident = proportional = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            resident += process.memory_info().rss
            proportional += getattr(process.memory_full_info(), "pss", 0)
        except psutil.Error:
            continue  # ended meanwhile
    return resident, proportional


def main() -> None:
    """Run the demo once and print figures."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        command = [sys.executable, "-m", "rig", "demo", "--json", "--out", str(Path(folder) / "run"), *sys.argv[1:]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
            root = psutil.Process(demo.pid)
            peak = peak_shared = 0
            while demo.poll() is None and root.is_running():
                resident, proportional = tree_bytes(root)
                peak, peak_shared = max(peak, resident), max(peak_shared, proportional)
                time.sleep(_SAMPLE_S)
            assert demo.stdout is not None
            report = json.loads(demo.stdout.read())
        wall_s = time.monotonic() - started
    voids = {
        name: sum(found["void"] for found in target["latency"].values() if found)
        for name, target in report["targets"].items()
    }
    print(f"wall time                     {wall_s:.1f} s")
    print(
        f"peak memory, process tree     {peak / 1e6:.0f} MB resident, {peak_shared / 1e6:.0f} MB with shared pages once"
    )
    print(f"void latencies                {voids}")
    for name, target in report["targets"].items():
        print(f"pacing {name:<25} {target['pacing']}")


if __name__ == "__main__":
    main()
