"""The pacing benchmark runs and prints its figures; what they are is for a reader to judge."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_prints_its_figures(repo_dir: Path):
    small = "--duplex-sessions 2 --long-chunk-sessions 0 --short-sessions 2 --memory-sessions 2 --naive-sessions 2"
    small += " --seconds 0.4 --turn-seconds 0.4 --reply-seconds 0.1 --rounds 1"
    ran = subprocess.run(
        [
            sys.executable,
            str(repo_dir / "tests" / "benchmarks" / "pacing.py"),
            *small.split(),
            "--naive-seconds",
            "0.4",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    figures = re.findall(r"lateness p50 \d+\.\d+  p99 \d+\.\d+ .* ms over (\d+) chunks", ran.stdout)
    assert int(figures[0]) >= 40  # trailing silence may add some
    assert figures[1] == "40"
    assert ran.stdout.count("endings called") == 2
    assert re.search(r"memory: 2 calls .* \d+\.\d+ MB each", ran.stdout)
    assert "naive sleep per chunk: late by" in ran.stdout
