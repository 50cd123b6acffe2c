"""`rig timing`: figures of two-channel recordings made elsewhere."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rig.cli.report_command import report_console
from rig.report.layout import ABSENT, Table, number, table
from rig.report.terminal import print_table
from rig.timing.measures import SMALLEST_N_P90, CallTiming, ChannelsError, measure
from rig.timing.recording import Side, read_recording
from rig.timing.turns import SLOW_S
from rig.timing.words import read_words


class TimingError(ValueError):
    """What was asked for cannot be done; one line."""


def print_timing(
    files: Sequence[Path],
    caller: Side,
    transcript: Path | None,
    csv_path: Path | None,
    picture: Path | None,
    *,
    as_json: bool,
) -> int:
    """Measure each file and print; the exit code: 2 when a file could not be measured, which is then named.

    Raises:
        TimingError: options that do not fit together, or a file that cannot be written.
        InputError: the transcript cannot be read.
    """
    import sys

    if len(files) > 1 and (transcript or picture):
        raise TimingError("--transcript and --picture are for one recording; give one FILE")
    words = None if transcript is None else read_words(transcript)
    measured: dict[str, CallTiming] = {}
    failed = False
    for path in files:
        try:
            recording = read_recording(path, caller)
            found = measure(recording, words)
        except ChannelsError as error:
            print(f"rig: {path}: {error}", file=sys.stderr)
            failed = True
            continue
        except ValueError as error:
            print(f"rig: {error}", file=sys.stderr)
            failed = True
            continue
        measured[str(path)] = found
        if picture is not None:
            _draw(recording, found, picture)
    if csv_path is not None:
        _write_csv(csv_path, measured)
    if as_json:
        print(json.dumps({"format": 1, "recordings": {name: _plain(found) for name, found in measured.items()}}))
    elif measured:
        console = report_console()
        short = {Path(name).name for name in measured}
        for made in _tables(
            {Path(n).name: t for n, t in measured.items()} if len(short) == len(measured) else measured
        ):
            print_table(made, console)
    return 2 if failed else 0


def _draw(recording: Any, found: CallTiming, path: Path) -> None:
    try:
        from rig.timing.picture import draw

        draw(recording, found, path)
    except ImportError:
        raise TimingError("--picture needs matplotlib: pip install 'voice-agent-rig[report]'") from None
    except (OSError, ValueError) as error:
        raise TimingError(f"{path}: picture cannot be written ({error})") from None


def _plain(found: CallTiming) -> dict[str, Any]:
    flat = asdict(found) | {"talk_ratio": found.talk_ratio, "interruption_rate": found.interruption_rate}
    flat["each"] = [
        {
            "caller_end_s": reply.caller.end_s,
            "agent_start_s": reply.agent.start_s,
            "latency_s": reply.latency_s,
            "interrupts": reply.interrupts,
        }
        for reply in found.each
    ]
    return flat


def _write_csv(path: Path, measured: dict[str, CallTiming]) -> None:
    """One row per reply."""
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(
                ("file", "caller_start_s", "caller_end_s", "agent_start_s", "agent_end_s", "latency_s", "interrupts")
            )
            for name, found in measured.items():
                for reply in found.each:
                    times = (
                        reply.caller.start_s, reply.caller.end_s, reply.agent.start_s, reply.agent.end_s,
                        reply.latency_s,
                    )  # fmt: skip
                    rows.writerow((name, *(f"{value:.3f}" for value in times), int(reply.interrupts)))
    except OSError as error:
        raise TimingError(f"{path}: cannot be written ({error.strerror or error})") from None


def _share(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.0f} %"


def _tables(measured: dict[str, CallTiming]) -> list[Table]:
    latency = table(
        "Replies",
        ("recording", "replies", "un-\nanswered", "p50 s", "p90 s", f"over\n{SLOW_S:g} s", "inter-\nruptions",
         "first\nword s", "fillers"),
        [
            (
                name,
                str(found.replies),
                str(found.unanswered),
                number(found.latency_p50_s),
                "n too small" if found.replies < SMALLEST_N_P90 else number(found.latency_p90_s),
                _share(found.slow_share),
                f"{found.interruptions} ({_share(found.interruption_rate)})",
                number(found.first_word_p50_s),
                _share(found.filler_share),
            )
            for name, found in measured.items()
        ],
        "From the end of the caller's utterance to the start of the agent's; negative inside it. Interruption: begun "
        "inside the caller's speech. First word: median to the first that is no filler; needs --transcript. "
        f"Speech by {next(iter(measured.values())).method}.",
    )  # fmt: skip
    taking = table(
        "Taking the turn",
        ("recording", "caller\nsilent s", "points", "taken", "rate", "agent spoke\nalready"),
        [
            (
                name,
                number(rate.threshold_s, 1),
                str(rate.points),
                str(rate.taken),
                _share(rate.taken / rate.points if rate.points else None),
                str(rate.agent_spoke),
            )
            for name, found in measured.items()
            for rate in found.take_rates
        ],
        "Points: ends of the caller's speech followed by so much of the caller's silence; taken: the agent began "
        "within it. Where the agent was speaking already, the point is counted apart.",
    )
    voices = table(
        "Voices",
        ("recording", "side", "speech s", "utter-\nances", "pauses", "pause\np50 s", "F0 Hz", "level dBFS"),
        [
            (
                name,
                side,
                number(voice.speech_s, 1),
                str(voice.utterances),
                str(voice.pauses),
                number(voice.pause_p50_s),
                _range(voice.sound.f0_hz),
                _range(voice.sound.level_dbfs),
            )
            for name, found in measured.items()
            for side, voice in (("caller", found.caller), ("agent", found.agent))
        ],
        "Ranges: 5th to 95th percentile. Pauses: silences of one side up to 2 s.",
    )
    whole = table(
        "Call",
        ("recording", "length s", "talk\nratio", "both\nspeak s", "dead\nair s", "stretches"),
        [
            (
                name,
                number(found.duration_s, 1),
                number(found.talk_ratio),
                number(found.overlap_s),
                number(found.dead_air_s, 1),
                str(found.dead_air_stretches),
            )
            for name, found in measured.items()
        ],
        "Talk ratio: the agent's seconds of speech over the caller's. Dead air: both silent for more than 2 s.",
    )
    return [latency, taking, voices, whole]


def _range(found: tuple[float, float] | None) -> str:
    return ABSENT if found is None else f"{number(found[0], 0)} … {number(found[1], 0)}"
