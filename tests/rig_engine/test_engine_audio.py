"""What a server hears and says, sample by sample, through the whole engine (bug cases B06, B15 to B19)."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

import numpy as np
import pytest

from captures.capture import Capture, Ending, Mark


def extensible(rate_hz: int, bits: int, tag: int) -> bytes:
    """Format chunk of 40 bytes, mono; the sub-format's first two bytes are the format tag."""
    block = bits // 8
    head = struct.pack("<HHIIHHHHI", 0xFFFE, 1, rate_hz, rate_hz * block, block, bits, 22, bits, 4)
    return head + struct.pack("<H", tag) + bytes.fromhex("000000001000800000aa00389b71")


def heard(connection: Any) -> Any:
    return np.frombuffer(connection.audio, "<i2")


def clip(rig: Any, banks: Any, data: bytes, **more: Any) -> None:
    """The bank's one clip."""
    banks.write_bank(rig.folder / "bank", {"clear": data}, **more)


class TestB06WhenAudioStarts:
    SAMPLES = 24_000

    @pytest.fixture(autouse=True)
    def bank(self, rig: Any, banks: Any) -> None:
        samples = banks.tone(1.0)
        samples[0] = 1234
        self.sent = samples
        clip(rig, banks, banks.wav(samples))

    @pytest.mark.parametrize("greets", [False, True], ids=["only session.updated", "session.created first"])
    def test_after_the_settings_are_confirmed(self, rig: Any, serve: Any, ga: Any, greets: bool) -> None:
        greeting = [("send", {"type": "session.created", "session": {"id": "sess_1", "type": "realtime"}})]
        script = [
            *(greeting if greets else []),
            ("expect", "session.update"),
            ("wait", 0.3),
            ("confirm",),
            ("expect", "input_audio_buffer.commit"),
            ("expect", "response.create"),
            *ga.called(),
        ]
        server = serve(script)
        capture = rig.run(rig.config(server.ws_url)).only
        (connection,) = server.connections
        assert capture.ending is Ending.CALLED
        assert connection.deviations == []
        samples = heard(connection)
        assert len(samples) == self.SAMPLES
        assert samples[0] == 1234
        assert np.array_equal(samples, self.sent)
        confirmed_ns = connection.sent_ns[1 if greets else 0]
        first_ns, last_ns = connection.pieces[0][0], connection.pieces[-1][0]
        assert first_ns > confirmed_ns
        # No burst makes up for the wait: the last piece leaves 0.98 s after the first, never early.
        assert last_ns - first_ns > 0.9e9
        assert capture.marks[Mark.COMMIT] >= capture.marks[Mark.CALLER_AUDIO_END]
        assert capture.marks[Mark.CALLER_AUDIO_END] - capture.marks[Mark.FIRST_CHUNK] == pytest.approx(1e9, abs=2e7)

    def test_never_ready(self, rig: Any, serve: Any) -> None:
        server = serve([("silent",)])
        done = rig.run(rig.config(server.ws_url, limits={"setup_s": 0.3, "attempts": 2}))
        assert [(c.attempt, c.ending, c.finished) for c in done.captures] == [
            (1, Ending.INFRASTRUCTURE_ERROR, False),
            (2, Ending.INFRASTRUCTURE_ERROR, False),
        ]
        error = done.captures[0].error
        assert error.kind == "not_ready"
        assert "within 0.3 s" in error.message
        assert f"127.0.0.1:{server.port}" in error.message
        for connection in server.connections:
            assert connection.types == ["session.update"]
            assert connection.audio == b""
            assert connection.closed
        assert done.report()["targets"]["agent"]["credit"]["neutral"] is None

    def test_rig_socket_at_16_khz(self, rig: Any, serve: Any, banks: Any) -> None:
        samples = banks.tone(0.5, 16_000)
        samples[0] = 1234
        banks.write_bank(rig.folder / "at16", {"clear": banks.wav(samples, 16_000)})
        server = serve(
            [
                ("expect", "session.setup"),
                ("wait", 0.2),
                ("send", {"type": "session.ready", "version": 1}),
                ("expect", "turn.commit"),
                ("send", {"type": "tool.call", "call_id": "c", "name": "cancel_order", "arguments": "{}"}),
                ("send", {"type": "turn.end"}),
            ]
        )
        target = {"adapter": "rig_socket", "settings": {"input_rate_hz": 16000}}
        capture = rig.run(rig.config(server.ws_url, bank="at16", target=target)).only
        (connection,) = server.connections
        assert np.array_equal(heard(connection), samples)
        assert capture.calls[0].name == "cancel_order"
        assert {len(piece) for _, piece in connection.pieces} == {640}


class TestClipsAsRecorded:
    """What other recorders write is played as it sounds (B15, B16) or named before any connection."""

    def played(self, rig: Any, serve: Any, ga: Any) -> tuple[Any, Capture]:
        server = serve([*ga.COMMITTED, *ga.called()])
        capture = rig.run(rig.config(server.ws_url)).only
        assert capture.ending is Ending.CALLED
        return heard(server.connections[0]), capture

    @pytest.mark.parametrize("kind", ["pcm", "float"])
    def test_b15_extensible(self, rig: Any, serve: Any, ga: Any, banks: Any, kind: str) -> None:
        repeats = 2_400
        if kind == "pcm":
            values = [0, 8388607, -8388608, 4194304, -4194304]
            data = b"".join(struct.pack("<i", value)[:3] for value in values for _ in range(repeats))
            bits = 24
        else:
            floats = [0.0, 1.0, -1.0, 0.5, -0.5]
            data = b"".join(struct.pack("<f", value) for value in floats for _ in range(repeats))
            bits = 32
        clip(rig, banks, banks.wav_with(extensible(24_000, bits, 1 if kind == "pcm" else 3), data))
        samples, capture = self.played(rig, serve, ga)
        steps = samples.reshape(5, repeats)
        assert np.abs(steps - np.array([[0], [32767], [-32768], [16384], [-16384]])).max() <= 1
        assert any("16-bit" in note for note in capture.warnings)

    def test_b15_at_48_khz(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        tone = banks.tone(0.3, 48_000).astype("<i4") << 8
        data = b"".join(struct.pack("<i", int(value))[:3] for value in tone)
        clip(rig, banks, banks.wav_with(extensible(48_000, 24, 1), data))
        samples, _ = self.played(rig, serve, ga)
        assert len(samples) == 7_200
        assert np.abs(samples[500:-500] - banks.tone(0.3)[500:-500].astype(int)).max() < 100

    @pytest.mark.parametrize("variant", ["no length", "zero length", "half there", "list after"])
    def test_b16_written_to_a_pipe(self, rig: Any, serve: Any, ga: Any, banks: Any, variant: str) -> None:
        tone = banks.tone(0.3)
        data, extra = tone.tobytes(), b"LIST" + struct.pack("<I", 8) + b"INFOabcd"
        sizes = {"no length": 0xFFFFFFFF, "zero length": 0, "half there": 2 * len(data), "list after": len(data)}
        size = sizes[variant]
        riff = size if variant in ("no length", "zero length") else len(data) + 60
        head = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 24_000, 48_000, 2, 16)
        body = head + (extra if variant != "list after" else b"") + b"data" + struct.pack("<I", size) + data
        body += extra if variant == "list after" else b""
        clip(rig, banks, b"RIFF" + struct.pack("<I", riff) + b"WAVE" + body)
        samples, capture = self.played(rig, serve, ga)
        assert np.array_equal(samples, tone)
        noted = " ".join(capture.warnings)
        if variant in ("no length", "zero length"):
            assert "length" in noted
        elif variant == "half there":
            assert "missing" in noted
        else:
            assert noted == ""

    def test_44_1_khz_stereo(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        mono = banks.tone(0.3, 44_100)
        clip(rig, banks, banks.wav(np.stack([mono, mono], axis=1), 44_100, channels=2))
        samples, capture = self.played(rig, serve, ga)
        assert len(samples) == 7_200
        assert np.abs(samples[500:-500] - banks.tone(0.3)[500:-500].astype(int)).max() < 100
        assert any("2 channels" in note for note in capture.warnings)

    def test_60_ms_are_padded_to_what_a_commit_needs(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        clip(rig, banks, banks.wav(banks.tone(0.06)), speech_end_s=0.06)
        samples, capture = self.played(rig, serve, ga)
        assert len(samples) >= 2_400
        assert not samples[1_440:].any()
        assert capture.pacing.padded_s == pytest.approx(0.04)
        played_ns = capture.marks[Mark.CALLER_AUDIO_END] - capture.marks[Mark.FIRST_CHUNK]
        assert played_ns == pytest.approx(60e6, abs=20e6)


class TestB17HalfSamples:
    @pytest.mark.parametrize("rate_hz", [24_000, 44_100])
    def test_pieces_of_15_ms_hold_whole_samples(self, rig: Any, serve: Any, ga: Any, banks: Any, rate_hz: int) -> None:
        clip(rig, banks, banks.wav(banks.tone(1.0, rate_hz), rate_hz))
        server = serve([*ga.COMMITTED, *ga.called()])
        rig.run(rig.config(server.ws_url, chunk_ms=15))
        (connection,) = server.connections
        assert len(connection.audio) == 48_000
        assert {len(piece) for _, piece in connection.pieces[:-1]} == {720}
        assert all(len(piece) % 2 == 0 for _, piece in connection.pieces)
        assert connection.pieces[-1][0] - connection.pieces[0][0] > 0.9e9

    @pytest.mark.parametrize(("sizes", "stray"), [((4_063, 1_697, 240), 0), ((4_063, 1_697, 241), 1)])
    def test_replies_cut_anywhere(
        self, rig: Any, serve: Any, ga: Any, banks: Any, sizes: tuple[int, ...], stray: int
    ) -> None:
        clip(rig, banks, banks.wav(banks.tone(0.3)))
        reply = banks.tone(0.125).tobytes() + b"\x7f" * stray
        pieces, start = [], 0
        for size in sizes:
            pieces.append(reply[start : start + size])
            start += size
        server = serve([*ga.COMMITTED, *ga.spoken(pieces)])
        done = rig.run(rig.config(server.ws_url))
        capture = done.only
        assert (capture.ending, capture.reply_transcript) == (Ending.DECLINED, "Certainly.")
        assert capture.reply_audio.stray_bytes == stray
        assert capture.reply_audio.received_s == pytest.approx(0.125)
        import soundfile

        samples, rate_hz = soundfile.read(done.folder.path / capture.reply_audio.file, dtype="int16")
        assert rate_hz == 24_000
        assert np.array_equal(samples, banks.tone(0.125))


class TestB18ABlockedLoop:
    def test_its_latency_is_void_and_its_score_counts(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        clip(rig, banks, banks.wav(banks.tone(1.0)))
        loops: list[asyncio.AbstractEventLoop] = []

        def block() -> None:
            loops[0].call_soon_threadsafe(time.sleep, 0.3)

        script = [
            *ga.READY,
            ("expect", "audio", 4_800),
            ("call", block),
            ("expect", "input_audio_buffer.commit"),
            ("expect", "response.create"),
            *ga.called(),
        ]
        server = serve(script)
        done = rig.run(rig.config(server.ws_url), before=lambda: loops.append(asyncio.get_running_loop()))
        capture, (connection,) = done.only, server.connections
        assert capture.pacing.lateness_max_ns > 250e6
        assert capture.marks[Mark.COMMIT] >= capture.marks[Mark.CALLER_AUDIO_END]
        assert np.array_equal(heard(connection), banks.tone(1.0))  # none dropped, repeated or reordered
        found = done.report()["targets"]["agent"]
        assert found["credit"]["neutral"] == found["credit"]["neutral"] | {"mean": 1, "n": 1}
        latency = found["latency"]["commit_to_tool_call"]
        assert (latency["n"], latency["void"]) == (0, 1)
        assert [latency[name] for name in ("p50", "p90", "p95", "p99")] == [None] * 4


class TestB19LeadingSilence:
    def reply(self, banks: Any, variant: str) -> Any:
        lead, tone = np.zeros(9_600, "<i2"), banks.tone(0.6, level=20_000)
        if variant == "hiss":
            lead = np.random.default_rng(1).normal(0, 10, 9_600).astype("<i2")  # about -70 dBFS
        elif variant == "click":
            lead[1_200] = 30_000
        elif variant == "silence":
            tone = np.zeros_like(tone)
        return np.concatenate([lead, tone])

    @pytest.mark.parametrize("variant", ["zeros", "hiss", "click", "silence"])
    def test_two_figures(self, rig: Any, serve: Any, ga: Any, banks: Any, variant: str) -> None:
        clip(rig, banks, banks.wav(banks.tone(0.3)))
        server = serve([*ga.COMMITTED, ("wait", 0.2), *ga.spoken([self.reply(banks, variant).tobytes()])])
        done = rig.run(rig.config(server.ws_url))
        marks, audio = done.only.marks, done.only.reply_audio
        first_ns = marks[Mark.FIRST_AUDIO]
        # Nothing came before the server sent it; how long our stamp took after that is no matter of this test.
        assert first_ns >= server.connections[0].sent_ns[3]
        assert first_ns - marks[Mark.COMMIT] > 190e6
        found = done.report()["targets"]["agent"]["latency"]
        if variant == "silence":
            assert Mark.FIRST_AUDIBLE not in marks
            assert audio.leading_silence_s is None
            assert found["speech_end_to_first_audible"] is None or found["speech_end_to_first_audible"]["n"] == 0
            return
        assert audio.leading_silence_s == pytest.approx(0.4, abs=0.02)
        assert (marks[Mark.FIRST_AUDIBLE] - first_ns) / 1e9 == pytest.approx(0.4, abs=0.02)
