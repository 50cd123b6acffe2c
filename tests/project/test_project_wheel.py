"""The wheel holds every tracked file of the packages, with the configs beside them, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

PACKAGES = ("captures", "transports", "adapters", "turn_control", "rig")
PLUGIN = "rig_pytest.py"


def test_wheel_holds_code_and_data(repo_dir: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=repo_dir, capture_output=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    (built,) = tmp_path.glob("*.whl")
    with ZipFile(built) as wheel:
        inside = set(wheel.namelist())
    listed = subprocess.run(
        ["git", "ls-files", "-z", *PACKAGES, PLUGIN, "configs"],
        cwd=repo_dir,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {
        f"rig/{path}" if path.startswith("configs/") else path
        for path in listed.stdout.split("\0")
        if path and (repo_dir / path).is_file()
    }
    assert wanted - inside == set()
    assert {"rig/configs/demo.yaml", "rig/prompts/probe.txt", "rig/bank/demo/bank.yaml"} <= inside
    assert {path.split("/")[0] for path in inside if ".dist-info/" not in path} == {*PACKAGES, PLUGIN}
