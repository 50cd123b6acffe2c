"""`rig timing` on calls put together from real clips, whose times are therefore known."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from rig.audio.reader import InputError, read_clip
from rig.bank.loader import load_bank
from rig.timing.measures import ChannelsError, measure
from rig.timing.recording import read_recording
from rig.timing.words import Word

RATE_HZ = 24_000
FIRST_S, REPLY_S, SECOND_S, LATE_S = 0.5, 0.8, 8.0, 1.7
Call = tuple[Path, float, float]


@pytest.fixture(scope="session")
def call(tmp_path_factory: pytest.TempPathFactory, repo_dir: Path) -> Call:
    """A call of two caller turns, answered 0.8 s and 1.7 s after their ends; the path and both ends of speech."""
    bank = load_bank("demo")
    item = bank.items[0]
    entry = bank.clip(item, item.variants[0])
    assert entry is not None
    assert entry.speech_end_s is not None
    path = bank.clip_path(entry)
    assert path is not None
    asked, said = read_clip(path), read_clip(repo_dir / "rig/agents/stock/acting.flac")
    quiet_s = float(np.flatnonzero(np.abs(said.samples.astype(int)) > 200)[0]) / said.rate_hz
    both = np.zeros((20 * RATE_HZ, 2), np.int16)
    ends = [start_s + entry.speech_end_s for start_s in (FIRST_S, SECOND_S)]
    for start_s in (FIRST_S, SECOND_S):
        at = round(start_s * RATE_HZ)
        both[at : at + len(asked.samples), 0] = asked.samples
    for end_s, latency_s in zip(ends, (REPLY_S, LATE_S), strict=True):
        at = round((end_s + latency_s - quiet_s) * RATE_HZ)
        both[at : at + len(said.samples), 1] = said.samples
    made = tmp_path_factory.mktemp("call") / "call.flac"
    soundfile.write(made, both, RATE_HZ)
    return made, ends[0], ends[1]


def _rig(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "rig", "timing", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_latencies_of_a_known_call(call: Call) -> None:
    found = measure(read_recording(call[0]))
    assert [reply.latency_s for reply in found.each] == pytest.approx([REPLY_S, LATE_S], abs=0.1)
    assert found.replies == 2
    assert found.unanswered == 0
    assert found.latency_p90_s is None  # two replies are too few
    assert found.slow_share == 0.5
    assert found.interruptions == 0
    assert found.filler_share is None
    assert found.caller.sound.f0_hz is not None
    assert 60 < found.caller.sound.f0_hz[0] < found.caller.sound.f0_hz[1] < 450


def test_the_command_prints_json_csv_and_a_picture(call: Call, tmp_path: Path) -> None:
    words = [
        {"side": "agent", "word": "one", "start_s": call[1] + 0.9, "end_s": call[1] + 1.0},
        {"side": "caller", "word": "release", "start_s": 1.0, "end_s": 1.4},
    ]
    (tmp_path / "words.json").write_text(json.dumps(words))
    done = _rig(
        str(call[0]), "--json", "--csv", str(tmp_path / "replies.csv"), "--picture", str(tmp_path / "call.svg"),
        "--transcript", str(tmp_path / "words.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["recordings"].values()
    assert found["replies"] == 2
    assert found["first_word_p50_s"] == pytest.approx(0.9, abs=0.1)
    assert found["filler_share"] == 0.0
    assert [round(row["threshold_s"], 1) for row in found["take_rates"]] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    rows = list(csv.DictReader((tmp_path / "replies.csv").read_text().splitlines()))
    assert [float(row["latency_s"]) for row in rows] == pytest.approx([REPLY_S, LATE_S], abs=0.1)
    assert "<svg" in (tmp_path / "call.svg").read_text()
    table = _rig(str(call[0]))
    assert "Taking the turn" in table.stdout
    assert "n too small" in table.stdout


def test_the_other_channel_is_the_callers_when_told_so(call: Call) -> None:
    found = measure(read_recording(call[0], caller="right"))
    assert found.caller.utterances == measure(read_recording(call[0])).agent.utterances


def test_swapped_channels_are_named_where_a_transcript_tells(call: Call) -> None:
    words = [
        Word(side="caller", word="release", start_s=1.0, end_s=1.4),
        Word(side="agent", word="moment", start_s=call[1] + 1.0, end_s=call[1] + 1.2),
    ]
    assert measure(read_recording(call[0]), words).first_word_p50_s is not None
    with pytest.raises(ChannelsError, match="look swapped"):
        measure(read_recording(call[0], caller="right"), words)


def _write(path: Path, samples: Any, rate_hz: int = RATE_HZ) -> None:
    soundfile.write(path, samples, rate_hz, format="WAV", subtype="PCM_16")


_NOISE = np.random.default_rng(1).normal(0, 3000, (RATE_HZ * 3, 2)).astype(np.int16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: _write(path, _NOISE[:, 0]), "recording has one channel; two are needed"),
        (lambda path: _write(path, np.concatenate([_NOISE, _NOISE], axis=1)), "recording has 4 channels"),
        (lambda path: _write(path, _NOISE * np.array([1, 0], np.int16)), "the right channel is silent"),
        (lambda path: _write(path, _NOISE[:, [0, 0]]), "both channels hold the same sound"),
        (lambda path: _write(path, _NOISE[:0]), "recording holds no samples"),
        (lambda path: path.write_bytes(b"RIFF"), "unreadable audio"),
        (lambda path: None, "recording cannot be read"),
    ],
)
def test_what_is_no_recording_of_a_call_is_named(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    make(path)
    with pytest.raises(InputError, match=message):
        read_recording(path)


def test_noise_alone_is_nobody(tmp_path: Path) -> None:
    _write(tmp_path / "noise.wav", _NOISE)
    done = _rig(str(tmp_path / "noise.wav"))
    assert done.returncode == 2
    assert "nobody speaks on the caller's channel" in done.stderr
    assert done.stdout == ""


def test_a_bad_file_does_not_stop_the_others(call: Call, tmp_path: Path) -> None:
    _write(tmp_path / "mono.wav", _NOISE[:, 0])
    done = _rig(str(tmp_path / "mono.wav"), str(call[0]), "--json")
    assert done.returncode == 2
    assert list(json.loads(done.stdout)["recordings"]) == [str(call[0])]
    assert "one channel" in done.stderr


@pytest.mark.parametrize("content", ["{", "[1]", '[{"side": "nobody", "word": "x", "start_s": 0, "end_s": 1}]'])
def test_an_unreadable_transcript_is_named(call: Call, tmp_path: Path, content: str) -> None:
    (tmp_path / "words.json").write_text(content)
    done = _rig(str(call[0]), "--transcript", str(tmp_path / "words.json"))
    assert done.returncode == 2
    assert "transcript" in done.stderr
    assert "Traceback" not in done.stderr
