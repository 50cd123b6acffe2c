"""Reading clips: B15 (24-bit extensible), B16 (headers from a pipe), and every file that must be refused by name."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig.audio import reader
from rig.audio.reader import InputError, read_clip

WriteWav = Callable[..., Path]

GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
PCM_GUID = b"\x01\x00" + GUID_TAIL
FLOAT_GUID = b"\x03\x00" + GUID_TAIL
RAMP = np.arange(-12_000, 12_000, dtype="<i2")


def test_b15_24_bit_extensible_keeps_full_scale(write_wav: WriteWav) -> None:
    values = (0, 8388607, -8388608, 4194304, -4194304)
    data = b"".join(value.to_bytes(3, "little", signed=True) for value in values)
    clip = read_clip(write_wav(data, rate_hz=48_000, bits=24, sub_format=PCM_GUID))
    assert clip.rate_hz == 48_000
    assert len(clip.samples) == 5
    assert np.abs(clip.samples.astype(int) - [0, 32767, -32768, 16384, -16384]).max() <= 1


def test_b15_float_sub_format_is_read_as_float(write_wav: WriteWav) -> None:
    data = np.array([0.0, 1.0, -1.0, 0.5, -0.5], dtype="<f4").tobytes()
    clip = read_clip(write_wav(data, rate_hz=48_000, bits=32, sub_format=FLOAT_GUID))
    assert clip.samples.tolist() == [0, 32767, -32768, 16384, -16384]


@pytest.mark.parametrize(
    ("sub_format", "shown"),
    [
        (b"\x02\x00" + GUID_TAIL, "sub-format 2 "),
        (bytes.fromhex("bdb2a30f5d4a4f0f9c0e3b1d2c4f5a6b"), "sub-format 0fa3b2bd-4a5d-0f4f-9c0e-3b1d2c4f5a6b "),
    ],
)
def test_b15_other_sub_formats_are_named(write_wav: WriteWav, sub_format: bytes, shown: str) -> None:
    path = write_wav(bytes(12), bits=24, sub_format=sub_format)
    with pytest.raises(InputError) as caught:
        read_clip(path)
    assert shown in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0])
def test_b16_unknown_length_reads_to_the_end(write_wav: WriteWav, size: int) -> None:
    clip = read_clip(write_wav(RAMP.tobytes(), riff_size=size, data_size=size, list_before=True))
    assert clip.samples.tolist() == RAMP.tolist()
    assert clip.duration_s == 1.5
    assert any("length unknown" in note for note in clip.notes)


def test_b16_missing_half_is_named(write_wav: WriteWav) -> None:
    clip = read_clip(write_wav(RAMP.tobytes(), data_size=96_000))
    assert len(clip.samples) == 24_000
    assert "cut short: header states 96000 bytes of samples, 48000 (50 %) are missing" in clip.notes


def test_b16_chunks_after_the_samples_are_not_played(write_wav: WriteWav) -> None:
    clip = read_clip(write_wav(RAMP.tobytes(), list_after=True))
    assert clip.samples.tolist() == RAMP.tolist()
    assert clip.notes == ()


@pytest.mark.parametrize("list_before", [False, True])
def test_b16_no_data_chunk_is_an_input_error(write_wav: WriteWav, list_before: bool) -> None:
    path = write_wav(None, list_before=list_before)
    with pytest.raises(InputError, match="no data chunk") as caught:
        read_clip(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_half_a_sample_at_the_end_is_left_out(write_wav: WriteWav) -> None:
    clip = read_clip(write_wav(RAMP.tobytes() + b"\x07", riff_size=0, data_size=0))
    assert clip.samples.tolist() == RAMP.tolist()
    assert any("stray" in note for note in clip.notes)


def test_stereo_is_averaged_with_a_note(write_wav: WriteWav) -> None:
    frames = np.array([[100, 300], [-32768, -32768], [32767, 32767], [5, -5]], dtype="<i2")
    clip = read_clip(write_wav(frames.tobytes(), rate_hz=44_100, channels=2))
    assert clip.samples.tolist() == [200, -32768, 32767, 0]
    assert clip.rate_hz == 44_100
    assert "2 channels averaged to one" in clip.notes


def test_telephone_wav_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ulaw.wav"
    soundfile.write(path, np.array([0, 1000, -1000], dtype=np.int16), 8_000, subtype="ULAW")
    clip = read_clip(path)
    assert np.abs(clip.samples.astype(int) - [0, 1000, -1000]).max() <= 32
    assert clip.notes == ("ULAW read as 16-bit",)


def test_flac_is_read_exactly_and_checked_against_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "clip.flac"
    soundfile.write(path, RAMP, 24_000)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    clip = read_clip(path, sha256=digest)
    assert clip.samples.tolist() == RAMP.tolist()
    assert clip.pcm == RAMP.tobytes()
    assert clip.pcm_sha256 == hashlib.sha256(RAMP.tobytes()).hexdigest()
    with pytest.raises(InputError, match="SHA-256 differs"):
        read_clip(path, sha256="0" * 64)


def test_flac_from_a_pipe_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clip.flac"
    soundfile.write(path, RAMP, 24_000)
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    path.write_bytes(data)
    with pytest.raises(InputError, match="states no length"):
        read_clip(path)


def test_float_beyond_full_scale_is_clipped_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "loud.wav"
    soundfile.write(path, np.array([0.25, 1.5, -2.0]), 16_000, subtype="FLOAT")
    clip = read_clip(path)
    assert clip.samples.tolist() == [8192, 32767, -32768]
    assert "2 samples beyond full scale clipped" in clip.notes


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_infinity_are_refused(write_wav: WriteWav, bad: float) -> None:
    path = write_wav(struct.pack("<3f", 0.0, bad, 0.1), bits=32, tag=3)
    with pytest.raises(InputError, match="NaN or infinite"):
        read_clip(path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty file"),
        (b"this is not audio", "Format not recognised"),
        (b"RIFF\x00\x00\x00\x00WAVE", "no data chunk"),
        (b"RIFF\x10\x00\x00\x00WAVEdata\x04\x00\x00\x00abcd", "unreadable audio"),
    ],
)
def test_files_that_hold_no_audio_are_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_clip(path)
    assert str(path) in str(caught.value)


def test_no_samples_wrong_rate_and_absence_are_named(write_wav: WriteWav, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no samples"):
        read_clip(write_wav(b""))
    with pytest.raises(InputError, match="sample rate 2000 Hz"):
        read_clip(write_wav(RAMP.tobytes(), rate_hz=2_000))
    with pytest.raises(InputError, match="No such file"):
        read_clip(tmp_path / "absent.wav")


def test_length_and_size_are_bounded(write_wav: WriteWav, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_wav(RAMP.tobytes())
    with monkeypatch.context() as patch:
        patch.setattr(reader, "MAX_DURATION_S", 1.0)
        with pytest.raises(InputError, match="longer than 1 s"):
            read_clip(path)
    with monkeypatch.context() as patch:
        patch.setattr(reader, "MAX_BYTES", 1000)
        with pytest.raises(InputError, match="larger than"):
            read_clip(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255)), max_size=8), cut=st.integers(0, 300))
def test_damaged_headers_give_a_clip_or_an_input_error(
    write_wav: WriteWav, edits: list[tuple[int, int]], cut: int
) -> None:
    path = write_wav(RAMP[:100].tobytes(), list_before=True)
    data = bytearray(path.read_bytes())
    for position, value in edits:
        data[position % len(data)] = value
    path.write_bytes(data[: len(data) - cut] if cut else data)
    try:
        clip = read_clip(path)
    except InputError as error:
        message = str(error)
    else:
        message = str(path)
        assert clip.samples.dtype == np.int16
        assert clip.samples.ndim == 1
        assert len(clip.samples) > 0
    assert str(path) in message
    assert "\n" not in message
