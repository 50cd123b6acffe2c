"""`rig device`: which sound devices there are, and how late what is played on one is heard on another."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import anyio

from rig.cli.report_command import report_console
from rig.devices.measure import OPENINGS, measured
from rig.devices.record import save
from rig.report.layout import table
from rig.report.terminal import print_table
from transports.device import devices


def list_devices(*, as_json: bool) -> int:
    """Print all devices; the exit code.

    Raises:
        TransportError: PyAudio is not installed.
    """
    found = devices()
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return 0
    rows = [(str(one.number), one.name, str(one.inputs), str(one.outputs), str(one.rate_hz)) for one in found]
    note = "Channels in and out as PortAudio counts them." if found else "There is no sound device."
    print_table(table("Devices", ("number", "name", "inputs", "outputs", "rate, Hz"), rows, note), report_console())
    return 0


def measure_latency(output: str, loop_input: str, rate_hz: int, chirps: int, *, keep: bool, as_json: bool) -> int:
    """Measure, print and keep the delay of a pair; the exit code.

    Raises:
        TransportError: a device is not there, busy, or has no such rate.
        DelayError: the chirps were not heard.
    """

    def told(number: int) -> None:
        print(f"\rchirp {number}/{chirps}", end="" if number < chirps else "\n", file=sys.stderr, flush=True)

    found = anyio.run(measured, output, loop_input, rate_hz, chirps, told)
    if as_json:
        print(found.model_dump_json(indent=2))
    else:
        print(
            f"{output} heard on {loop_input} at {rate_hz} Hz: {found.median_s * 1000:.1f} ms "
            f"± {found.uncertainty_s * 1000:.1f} (half the range of {found.found} chirps in {OPENINGS} openings)"
        )
        if found.drift_ppm is not None:
            print(f"the input's clock runs {found.drift_ppm:+.0f} parts per million against ours")
    if keep:
        path = save(found)
        print(f"rig: kept in {path}; runs on these devices take it off from now on", file=sys.stderr)
    return 0
