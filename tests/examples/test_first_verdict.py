"""The newcomer's walk-through, run as it stands on its page: from a running agent to a verdict."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = "docs/first-verdict.md"


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_page_leads_to_a_verdict(repo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (repo_dir / PAGE).read_text()
    (config,) = blocks(page, "yaml")
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    assert len(lines) == 9
    (tmp_path / "my-agent.yaml").write_text(config)
    for name in ("examples", "configs"):
        (tmp_path / name).symlink_to(repo_dir / name)
    # The interpreter of the tests stands for the one that a newcomer has activated.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    started = time.monotonic()
    printed: dict[str, str] = {}
    agent: subprocess.Popen[str] | None = None
    try:
        for line in lines:
            command, _, comment = line.partition("#")
            words = shlex.split(command)
            if words[-1] == "&":
                agent = subprocess.Popen(words[:-1], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
                assert agent.stdout is not None
                assert "listening" in agent.stdout.readline()
                continue
            done = subprocess.run(
                words, cwd=tmp_path, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
            expected = int(comment.split()[-1]) if "exit code" in comment else 0
            assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"
            key = " ".join(words[:2])
            printed[key] = printed.get(key, "") + done.stdout + done.stderr
    finally:
        if agent is not None:
            agent.terminate()
            agent.communicate(timeout=10)
    assert "31 passed, 0 failed" in printed["rig conformance"]
    assert "rig smoke passed" in printed["rig smoke"]
    assert re.search(r"my-agent +[−+]\d\.\d\d", printed["rig report"].split("Hearing beyond the words")[1])
    assert "demo-clinic-01" in printed["rig cells"]
    assert "fail" in printed["rig check"].lower()
    assert (tmp_path / "first.html").stat().st_size > 100_000
    assert (tmp_path / "rig.xml").is_file()
    with capsys.disabled():
        print(f"\nfrom a running agent to a verdict: {time.monotonic() - started:.0f} s of commands")
