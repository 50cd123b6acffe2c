"""Timelines: laid out from pieces whose times are given, proven by tones, and made from a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from adapters.dialect import TargetSettings
from adapters.registry import dialect
from captures.capture import Mark
from captures.events import AudioDelta, TimedEvent
from captures.frames import Direction, LoggedFrame
from captures.playback import play
from rig.audio.reader import Clip
from rig.replay.self_check import self_check
from rig.replay.source import ReplayError
from rig.replay.timeline import sent_pieces, timeline

MS = 1_000_000
RATE_HZ = 1000
"""A sample a millisecond."""


def _ramp(samples: int, first: int = 1) -> Clip:
    return Clip(np.arange(first, first + samples, dtype=np.int16), RATE_HZ)


def _delta(at_ms: int, samples: int) -> TimedEvent:
    pcm = np.full(samples, 7, np.int16).tobytes()
    return TimedEvent(at_ms * MS, AudioDelta(pcm=pcm, rate_hz=RATE_HZ))


def test_the_agent_lies_where_it_was_heard_and_marks_are_samples() -> None:
    sent = [(100 + 20 * k) * MS for k in range(5)]
    made = timeline(sent, _ramp(100), 20, [_delta(230, 30), _delta(240, 30)], {Mark.COMMIT: 200 * MS})
    assert made.origin_ns == 100 * MS
    assert made.marks == {Mark.COMMIT: 100}
    assert made.samples[:100, 0].tolist() == list(range(1, 101))
    # The second piece comes while the first is heard, and follows it without a gap.
    assert np.flatnonzero(made.samples[:, 1]).tolist() == list(range(130, 190))


def test_pieces_that_left_late_by_less_than_a_piece_are_where_they_were_due() -> None:
    made = timeline([0, 39 * MS, 41 * MS], _ramp(60), 20, [], {})
    assert made.samples[:, 0].tolist() == list(range(1, 61))


def test_a_piece_later_than_that_leaves_a_gap() -> None:
    made = timeline([0, 70 * MS, 75 * MS], _ramp(60), 20, [], {})
    silence = np.flatnonzero(made.samples[:, 0] == 0)
    assert silence.tolist() == list(range(20, 50))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 100)), min_size=1, max_size=12))
def test_right_is_what_the_playback_model_hears(pieces: list[tuple[int, int]]) -> None:
    at, events = 0, []
    for wait, samples in pieces:
        at += wait
        events.append(_delta(at, samples))
    made = timeline([0], _ramp(20), 20, events, {})
    heard = play([(event.t_ns, event.event.pcm) for event in events if isinstance(event.event, AudioDelta)], RATE_HZ)
    assert heard.start_ns is not None
    assert heard.end_ns is not None
    sounding = np.flatnonzero(made.samples[:, 1])
    assert sounding[0] == heard.start_ns // MS
    assert sounding[-1] + 1 == heard.end_ns // MS
    silent_s = (sounding[-1] + 1 - sounding[0] - len(sounding)) / RATE_HZ
    assert heard.gaps_s == pytest.approx(silent_s)
    assert (heard.gaps > 0) == (silent_s > 0)


def test_another_clip_than_was_sent_is_refused() -> None:
    client = dialect("openai_realtime").client(TargetSettings(model="m"))
    sent, other = (client.encode_clip(_ramp(960, first).pcm, 24_000, 20) for first in (1, 2))
    log = [LoggedFrame(k, Direction.SENT, frame.payload, False) for k, frame in enumerate(sent.frames)]
    assert sent_pieces(log, sent) == list(range(len(sent.frames)))
    assert sent_pieces(log[:1], sent) == [0]  # the call ended early
    with pytest.raises(ReplayError, match="not the one that was sent"):
        sent_pieces(log, other)


def test_tones_lie_within_a_millisecond_of_their_marks(tmp_path: Path) -> None:
    found, _ = anyio.run(self_check, tmp_path)
    assert found.within, found


CONFIG = """
version: 1
bank: demo
items: [demo-emergency-01]
conditions: [audio]
targets:
  - {name: live, adapter: gemini_live, model: gemini-2.5-flash-native-audio, embedded_agent: local-acoustic}
  - {name: whole, adapter: chat_audio, model: m, embedded_agent: local-acoustic}
"""


def test_calls_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)

    def rig(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "rig", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    assert rig("run", "config.yaml", "--out", "run").returncode == 0
    done = rig("timeline", "run", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["nothing_streamed"] == len(told["written"]) >= 2
    for row in told["written"]:
        samples, rate_hz = soundfile.read(tmp_path / "run" / "timelines" / row["file"], dtype="int16", always_2d=True)
        assert (rate_hz, samples.shape[1]) == (row["rate_hz"], 2)
        end = row["marks_samples"]["caller_speech_end"]
        # The caller is heard up to the end of speech, to within the 10 ms that the mark's own detector has.
        assert np.abs(samples[end - rate_hz // 20 : end, 0]).max() > 50
        if "first_audible" in row["marks_samples"]:
            onset = row["marks_samples"]["first_audible"]
            assert np.abs(samples[onset : onset + rate_hz // 10, 1]).max() > 100
    assert json.loads((tmp_path / "run" / "timelines" / "x.json").with_name(
        told["written"][0]["file"].replace(".flac", ".json")).read_text()) == told["written"][0]  # fmt: skip
    none = rig("timeline", "run", "--cell", "nothing/*")
    assert none.returncode == 2
    assert "no call of '*' at 'nothing/*'" in none.stderr
