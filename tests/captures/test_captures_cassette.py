"""Cassettes give back every frame byte for byte, keep audio raw in the blob, and hold no key."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from captures.cassette import CassetteError, Known, read_cassette, write_cassette
from captures.frames import Direction, LoggedFrame
from captures.scrub import MASK, Scrubber

NO_SECRETS = Scrubber([])

_base64_runs = st.binary(min_size=150, max_size=600).map(base64.b64encode)
_text = st.one_of(st.text(max_size=60).map(str.encode), _base64_runs, st.sampled_from([b'"', b"=", b"\\/", b"A" * 300]))
_payloads = st.one_of(
    st.binary(max_size=600),
    st.lists(_text, max_size=6).map(b"".join),
    st.lists(_text, max_size=6).map(lambda pieces: b'{"audio":"' + b"".join(pieces) + b'"}'),
)
_frames = st.lists(
    st.builds(
        LoggedFrame,
        t_ns=st.integers(0, 2**62),
        direction=st.sampled_from(Direction),
        payload=_payloads,
        binary=st.booleans(),
    ),
    max_size=6,
)


def _unpacked(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().decompress(path.read_bytes())


def _sent(payload: bytes, binary: bool = False) -> LoggedFrame:
    return LoggedFrame(1_000, Direction.SENT, payload, binary)


@settings(max_examples=150, deadline=None)
@given(frames=_frames)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, frames: list[LoggedFrame]) -> None:
    folder = tmp_path_factory.mktemp("cassette")
    meta = {"dialect": "openai_realtime", "wire_version": 3}
    write_cassette(folder / "a.zst", folder / "a.blob", frames, meta=meta, scrubber=NO_SECRETS)
    assert read_cassette(folder / "a.zst") == (meta, frames)
    assert sorted(path.name for path in folder.iterdir()) == ["a.blob", "a.zst"]


def test_audio_lies_raw_in_the_blob(tmp_path: Path) -> None:
    pcm = [bytes([k, k + 1]) * 480 for k in range(3)]
    frames = [
        _sent(b'{"audio":"' + base64.b64encode(pcm[0]) + b'"}'),
        _sent(pcm[1], binary=True),
        _sent(b'{"url":"data:audio/wav;base64,' + base64.b64encode(pcm[2]) + b'"}', binary=True),
    ]
    write_cassette(tmp_path / "a", tmp_path / "b", frames, meta={}, scrubber=NO_SECRETS)
    assert _unpacked(tmp_path / "b") == b"".join(pcm)
    lines = [json.loads(line) for line in _unpacked(tmp_path / "a").splitlines()]
    assert lines[0]["format"] == 1
    assert lines[1]["parts"] == ['{"audio":"', [0, 960, "base64"], '"}']
    assert lines[2]["parts"] == [[960, 960]]
    assert lines[3]["parts"] == ['{"url":"data:audio/wav;base64,', [1920, 960, "base64"], '"}']


def test_b26_no_key_in_cassette_or_blob(tmp_path: Path, key: str, leaks: Callable[[bytes], list[str]]) -> None:
    clean = _sent(b'{"audio":"' + base64.b64encode(bytes(range(256)) * 4) + b'"}')
    frames = [
        clean,
        _sent(json.dumps({"headers": {"Authorization": f"Bearer {key}"}}).encode()),
        _sent(f"GET /v1?key={key}".encode()),
        _sent(b'{"audio":"' + base64.b64encode(bytes(301) + key.encode() + bytes(300)) + b'"}'),
        _sent(bytes([200]) * 100 + key.encode(), binary=True),
    ]
    write_cassette(tmp_path / "a", tmp_path / "b", frames, meta={"note": key}, scrubber=Scrubber([key]))
    assert leaks(_unpacked(tmp_path / "a") + _unpacked(tmp_path / "b")) == []
    meta, read = read_cassette(tmp_path / "a")
    assert leaks(b" ".join(frame.payload for frame in read)) == []
    assert meta == {"note": MASK}
    assert read[0] == clean
    assert json.loads(read[1].payload) == {"headers": {"Authorization": f"Bearer {MASK}"}}


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    "around",
    [
        '{"token":"%s","audio":"',  # a template may put it beside every piece of sound
        "\x0a\x3f setup %s ",  # or into a control message in a binary frame
    ],
)
def test_b26_a_key_in_what_we_send_alone_is_found(
    tmp_path: Path, key: str, leaks: Callable[[bytes], list[str]], around: str, binary: bool
) -> None:
    sound = base64.b64encode(bytes(range(256)) * 4) + b'"}'
    clean, held = (_sent((around % word).encode() + sound, binary) for word in ("word", key))
    known = Known()
    for name, frames in (("a", [clean]), ("b", [clean, held]), ("c", [held, held])):
        path, blob = tmp_path / name, tmp_path / f"{name}.blob"
        write_cassette(path, blob, frames, meta={}, scrubber=Scrubber([key]), known=known)
        assert leaks(_unpacked(path) + _unpacked(blob)) == []
        read = read_cassette(path)[1]
        assert [MASK.encode() in frame.payload for frame in read] == [frame is held for frame in frames]
        assert [frame for frame in read if MASK.encode() not in frame.payload] == [
            one for one in frames if one is clean
        ]


def test_the_digest_is_over_both_files_as_they_lie(tmp_path: Path) -> None:
    path, blob = tmp_path / "a", tmp_path / "b"
    digest = write_cassette(path, blob, [_sent(b"x" * 1000, True)], meta={}, scrubber=NO_SECRETS)
    assert digest == hashlib.sha256(path.read_bytes() + blob.read_bytes()).hexdigest()


def test_pieces_that_are_known_are_stored_like_new_ones(tmp_path: Path) -> None:
    pieces = [json.dumps({"n": n % 3, "audio": base64.b64encode(bytes([n % 7]) * 300).decode()}) for n in range(50)]
    frames = [_sent(piece.encode(), n % 2 == 0) for n, piece in enumerate(pieces)]
    known = Known()
    for name in ("a", "b"):
        write_cassette(tmp_path / name, tmp_path / "blob", frames, meta={}, scrubber=NO_SECRETS, known=known)
        assert read_cassette(tmp_path / name)[1] == frames
    assert _unpacked(tmp_path / "a") == _unpacked(tmp_path / "b")


def test_short_secret_leaves_audio_alone(tmp_path: Path) -> None:
    frames = [_sent(b'{"token":"pw1","audio":"' + b"/pw1" * 100 + b'"}')]
    write_cassette(tmp_path / "a", tmp_path / "b", frames, meta={}, scrubber=Scrubber(["pw1"]))
    payload = read_cassette(tmp_path / "a")[1][0].payload
    assert payload == b'{"token":"[secret]","audio":"' + b"/pw1" * 100 + b'"}'


def _damage(folder: Path, what: str) -> None:
    cassette, blob = folder / "a.zst", folder / "a.blob"
    packer = zstandard.ZstdCompressor()
    lines = _unpacked(cassette).splitlines(keepends=True)
    match what:
        case "cut":
            cassette.write_bytes(cassette.read_bytes()[:-9])
        case "not packed":
            cassette.write_bytes(b"hello")
        case "lost line":
            cassette.write_bytes(packer.compress(b"".join(lines[:-1])))
        case "newer":
            cassette.write_bytes(packer.compress(lines[0].replace(b'"format": 1', b'"format": 99')))
        case "outside":
            cassette.write_bytes(packer.compress(b"".join(lines).replace(b"[0,1000]", b"[9,1000]")))
        case "short blob":
            blob.write_bytes(packer.compress(b"xy"))
        case "bad frame":
            cassette.write_bytes(packer.compress(lines[0] + b'{"t_ns":1}\n'))


@pytest.mark.parametrize("what", ["cut", "not packed", "lost line", "newer", "outside", "short blob", "bad frame"])
def test_damage_names_the_file(tmp_path: Path, what: str) -> None:
    write_cassette(tmp_path / "a.zst", tmp_path / "a.blob", [_sent(b"x" * 1000, True)], meta={}, scrubber=NO_SECRETS)
    _damage(tmp_path, what)
    with pytest.raises(CassetteError, match=r"a\.(zst|blob)"):
        read_cassette(tmp_path / "a.zst")
