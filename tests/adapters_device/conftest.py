"""Two virtual cables: null sinks of a PulseAudio of the tests' own, seen by PortAudio through ALSA's plug-in."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SINKS = ("to_agent", "from_agent")


@pytest.fixture(scope="session")
def cables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment in which `to_agent`, `from_agent` and their monitors are devices."""
    folder = tmp_path_factory.mktemp("pulse")
    server = f"unix:{folder}/socket"
    (folder / "default.pa").write_text(
        f"load-module module-native-protocol-unix socket={folder}/socket auth-anonymous=1\n"
        + "".join(f"load-module module-null-sink sink_name={sink} rate=48000 channels=1\n" for sink in SINKS)
    )
    devices = (
        {"default": SINKS[0]}
        | {sink: sink for sink in SINKS}
        | {f"{sink}_monitor": f"{sink}.monitor" for sink in SINKS}
    )
    (folder / "asound.conf").write_text(
        "".join(f'pcm.{name} {{ type pulse server "{server}" device {device} }}\n' for name, device in devices.items())
    )
    own = os.environ | {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    command = ["pulseaudio", "-n", "-F", str(folder / "default.pa"), "--daemonize=no", "--use-pid-file=no"]
    # Blocks in shared memory end PulseAudio 16.1 by an assertion now and then (its issue 824).
    command.append("--disable-shm=yes")
    with (folder / "log").open("wb") as log:
        pulse = subprocess.Popen([*command, "--exit-idle-time=-1"], env=own, stdout=log, stderr=log)
        listeners: list[subprocess.Popen[bytes]] = []
        try:
            _wait_for(server, pulse, folder / "log")
            # A null sink runs two seconds late until somebody listens who wants less.
            listeners = [
                subprocess.Popen(
                    ["parec", "-s", server, "--latency-msec=10", "-d", f"{sink}.monitor"],
                    env=own, stdout=subprocess.DEVNULL, stderr=log,
                )
                for sink in SINKS
            ]  # fmt: skip
            yield {"ALSA_CONFIG_PATH": str(folder / "asound.conf"), "XDG_STATE_HOME": str(folder / "state")}
        finally:
            for process in (*listeners, pulse):
                process.terminate()
                process.wait(10)


def _wait_for(server: str, pulse: subprocess.Popen[bytes], log: Path) -> None:
    """Until PulseAudio answers."""
    until = time.monotonic() + 20
    while subprocess.run(["pactl", "-s", server, "info"], capture_output=True).returncode != 0:
        assert pulse.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < until, log.read_text(errors="replace")
        time.sleep(0.05)
