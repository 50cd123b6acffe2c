"""`rig bank render`: the one command that may load the recogniser, which never runs beside a paced stream."""

from __future__ import annotations

import json
from collections.abc import Set
from importlib.util import find_spec

from rich.console import Console

from rig.bank.loader import load_bank
from rig.bank.rendering.errors import RenderError
from rig.cli.failures import printable

NEEDED = ("av", "jiwer", "pyworld", "samplerate")
"""What rendering imports beyond a plain installation."""


def render(bank: str, only: Set[str], *, force: bool, processes: int | None, as_json: bool) -> int:
    """Render what changed; 1 if a clip failed (it is not shipped), 130 if interrupted, else 0."""
    loaded = load_bank(bank)
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise RenderError(f"rendering needs {', '.join(missing)}: install the extra, voice-agent-rig[render]")
    from rig.bank.rendering.bank_render import render_bank
    from rig.bank.rendering.voices import SynthesisError

    console = Console(stderr=True, soft_wrap=True)
    try:
        done = render_bank(loaded, only, force=force, console=console, processes=processes)
    except KeyboardInterrupt:
        console.print("interrupted: what was rendered is kept; run again to go on")
        return 130
    except (ValueError, SynthesisError) as error:
        raise RenderError(str(error)) from error
    if as_json:
        print(
            json.dumps(
                {
                    "rendered": [f"{e.item_id}/{e.variant_id}" + ("#2" if e.turn == 2 else "") for e in done.rendered],
                    "unchanged": done.unchanged,
                    "added_by_hand": done.added,
                    "withheld": done.withheld,
                    "failures": done.failures,
                    "seconds": round(done.seconds, 1),
                    "bytes": done.size_bytes,
                },
                indent=2,
            )
        )
    else:
        print(
            printable(
                f"{loaded.name}: {len(done.rendered)} rendered, {done.unchanged} unchanged, {done.added} added, "
                f"{len(done.withheld)} withheld, {len(done.failures)} failed; {done.seconds:.0f} s of rendered clips, "
                f"{done.size_bytes / 1e6:.1f} MB"
            )
        )
    return 1 if done.failures else 0
