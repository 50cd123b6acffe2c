"""Cassettes shown, cut short, and played to a live client; and the format as it once was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from websockets.sync.client import connect

from captures.cassette import CassetteError, read_cassette, write_cassette
from captures.frames import Direction, LoggedFrame
from captures.scrub import Scrubber
from rig.cassettes.script import UnservedError, is_audio, script_of
from rig.cassettes.trimming import trimmed

TARGETS = {
    "openai_realtime": {"model": "m"},
    "rig_socket": {},
    "gemini_live": {"model": "gemini-2.5-flash-native-audio-preview-12-2025"},
    "openai_chat": {"model": "m"},
}
LATE_S = 0.25
"""How much later or earlier an answer may come than it did, on a busy machine."""


def rig(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def captures(run: Path) -> list[dict[str, Any]]:
    lines = (run / "captures.jsonl").read_text().splitlines()
    return [capture for line in lines if (capture := json.loads(line))["finished"]]


def write(folder: Path, targets: list[dict[str, Any]]) -> None:
    config = {
        "version": 1, "bank": "demo", "items": ["demo-betting-01"], "conditions": ["audio"], "preflight": False,
        "second_turn": False, "targets": targets,
    }  # fmt: skip
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One item on every target, against emulators."""
    folder = tmp_path_factory.mktemp("recorded")
    write(
        folder,
        [{"name": name, "adapter": name, "embedded_agent": "local-acoustic", **more} for name, more in TARGETS.items()],
    )
    done = rig(folder, "run", "config.yaml", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder / "run"


def cassette_of(run: Path, target: str) -> tuple[Path, dict[str, Any]]:
    """A call with a tool, and its capture."""
    capture = next(one for one in captures(run) if one["target"] == target and one["calls"])
    return run / capture["cassette"], capture


@contextmanager
def serving(path: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "rig", "cassette", "serve", str(path), "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1], process
        finally:
            process.terminate()


def run_against(address: str, target: str, before: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`rig run` of the item against a served cassette: the capture of the variant that `before` is of."""
    entry = {"name": target, "adapter": target, "base_url": address, "api_key_env": "KEY"}
    write(folder, [entry | TARGETS[target]])
    done = subprocess.run(
        [sys.executable, "-m", "rig", "run", "config.yaml", "--out", "run"],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "KEY": "some-test-key-1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next(one for one in captures(folder / "run") if one["variant_id"] == before["variant_id"])


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_served_cassette_gives_an_equal_capture(recorded: Path, tmp_path: Path, target: str) -> None:
    path, before = cassette_of(recorded, target)
    with serving(path) as (address, _):
        after = run_against(address, target, before, tmp_path)
    for name in ("ending", "reply_text", "reply_transcript", "usage"):
        assert after[name] == before[name], name
    named = [[(call["name"], call["arguments"]) for call in one["calls"]] for one in (before, after)]
    assert named[0] == named[1]
    took = [(one["marks"]["first_call_complete"] - one["marks"]["commit"]) / 1e9 for one in (before, after)]
    print(f"{target}: commit to call {took[0]:.3f} s recorded, {took[1]:.3f} s served")
    assert abs(took[0] - took[1]) < LATE_S


def test_a_client_that_does_something_else_is_told(recorded: Path, tmp_path: Path) -> None:
    path, _ = cassette_of(recorded, "openai_realtime")
    with serving(path, "--repeat", "1", "--speed", "20") as (address, process):
        with connect(address) as client:
            client.send('{"type":"session.setup"}')
            client.send('{"type":"turn.start"}')
            client.recv()
        assert process.stderr is not None
        assert process.wait(30) == 0
        told = process.stderr.read()
    assert "step 1: session.setup, where the recorded client sent session.update\n" in told
    assert "step 2: turn.start, where the recorded client sent audio\n" in told
    assert "session over:" in told


def test_what_a_session_waits_for_is_said(tmp_path: Path) -> None:
    path = tmp_path / "short.jsonl.zst"
    frames = [sent(0, b'{"type":"setup"}'), got(1, b'{"type":"ready"}'), sent(2, b'{"type":"commit"}'), got(3, b"{}")]
    meta = {"dialect": "rig_socket"}
    write_cassette(path, tmp_path / "short.blob.zst", frames, meta=meta, scrubber=Scrubber(()))
    with serving(path, "--repeat", "1") as (address, process), connect(address) as client:
        assert process.stderr is not None
        client.send('{"type":"setup"}')
        assert client.recv() == '{"type":"ready"}'
        assert process.stderr.readline().startswith("client at /")
        assert process.stderr.readline() == "waits for step 2: commit\n"
        client.send('{"type":"commit"}')
        assert client.recv() == "{}"
        client.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == "session over: 2 of 2 messages sent\n"


def test_a_trimmed_cassette_is_small_and_still_serves(recorded: Path, tmp_path: Path) -> None:
    path, before = cassette_of(recorded, "openai_realtime")
    short = tmp_path / "short.jsonl.zst"
    done = rig(tmp_path, "cassette", "trim", str(path), "--out", str(short), "--audio-s", "0.5")
    assert done.returncode == 0, done.stderr
    blob = tmp_path / "short.blob.zst"
    assert (
        short.stat().st_size + blob.stat().st_size
        < (path.stat().st_size + path.with_name(path.name.replace("jsonl", "blob")).stat().st_size) / 2
    )
    meta, frames = read_cassette(short)
    _, all_frames = read_cassette(path)
    assert meta["trimmed"]["dropped_sent"] > 0
    kept = [frame for frame in all_frames if not is_audio(frame.payload, frame.binary)]
    assert [frame for frame in frames if not is_audio(frame.payload, frame.binary)] == kept
    script = script_of(meta, frames)
    assert script.steps == script_of(*read_cassette(path)).steps
    with serving(short) as (address, _):
        again = run_against(address, "openai_realtime", before, tmp_path)
    assert [call["arguments"] for call in again["calls"]] == [call["arguments"] for call in before["calls"]]
    shown = rig(tmp_path, "cassette", "show", str(short), "--json")
    assert len(json.loads(shown.stdout)["frames"]) == len(frames)
    assert "response.function_call_arguments.done" in rig(tmp_path, "cassette", "show", str(short)).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "none.jsonl.zst"], "cannot be read"),
        (["trim", "bad.jsonl.zst", "--out", "x.jsonl.zst"], "damaged"),
        (["trim", "bad.jsonl.zst", "--out", "bad.jsonl.zst"], "choose another --out"),
        (["trim", "bad.jsonl.zst", "--out", "x.json"], "name it like short.jsonl.zst"),
        (["serve", "bad.jsonl.zst"], "damaged"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: list[str], told: str) -> None:
    (tmp_path / "bad.jsonl.zst").write_bytes(b"no cassette")
    done = rig(tmp_path, "cassette", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def sent(t_ns: int, payload: bytes, *, binary: bool = False) -> LoggedFrame:
    return LoggedFrame(t_ns, Direction.SENT, payload, binary)


def got(t_ns: int, payload: bytes, *, binary: bool = False) -> LoggedFrame:
    return LoggedFrame(t_ns, Direction.RECEIVED, payload, binary)


def test_steps_are_messages_and_starts_of_audio() -> None:
    frames = [
        sent(0, b'{"type":"setup"}'),
        got(5, b'{"type":"ready"}'),
        *(sent(10 + n, bytes([n, 1, 2, 3]), binary=True) for n in range(5)),
        got(13, b'{"type":"heard"}'),
        sent(20, b'{"type":"commit"}'),
        got(27, b'{"type":"end"}'),
    ]
    script = script_of({"dialect": "rig_socket"}, frames)
    assert script.steps == ("setup", "audio", "commit")
    assert [(line.step, line.after_ns) for line in script.lines] == [(1, 5), (2, 3), (3, 7)]


@pytest.mark.parametrize("dialect", ["twilio_media", "device", "python_agent", "nova_sonic"])
def test_what_no_client_could_be_answered_with_is_refused(dialect: str) -> None:
    with pytest.raises(UnservedError, match=dialect):
        script_of({"dialect": dialect}, [got(0, b"{}")])


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3_000_000_000)), max_size=60), st.floats(0, 3))
def test_trimming_keeps_every_message_and_the_order(kinds: list[tuple[bool, bool, int]], audio_s: float) -> None:
    frames = []
    for number, (is_sent, audio, t_ns) in enumerate(sorted(kinds, key=lambda one: one[2])):
        payload = bytes([1, number % 250]) * 200 if audio else json.dumps({"type": f"m{number}"}).encode()
        frames.append((sent if is_sent else got)(t_ns, payload, binary=audio))
    left = trimmed(frames, audio_s)
    assert [one for one in left.frames if not one.binary] == [one for one in frames if not one.binary]
    assert [one for one in frames if one in left.frames] == list(left.frames)
    assert len(left.frames) + left.dropped_sent + left.dropped_received == len(frames)


# --- the format

FORMAT_1 = (
    '{"format": 1, "frames": 4, "blob": "format-1.blob.zst", "blob_bytes": 10, "meta": {"dialect": "rig_socket"}}\n'
    '{"t_ns":1000,"direction":"sent","binary":false,"parts":["{\\"type\\":\\"session.setup\\"}"]}\n'
    '{"t_ns":2000,"direction":"sent","binary":true,"parts":[[0,4]]}\n'
    '{"t_ns":3000,"direction":"received","binary":false,"parts":["{\\"audio\\":\\"",[4,6,"base64"],"\\"}"]}\n'
    '{"t_ns":4000,"direction":"received","binary":false,"parts":["\\u00fc"]}\n'
)
BLOB_1 = b"\x01\x00\x02\x00\xff\xfe\xfd\xfc\xfb\xfa"


def test_a_cassette_of_format_1_is_read_for_good(tmp_path: Path) -> None:
    pack = zstandard.ZstdCompressor(level=3, write_checksum=True).compress
    (tmp_path / "format-1.jsonl.zst").write_bytes(pack(FORMAT_1.encode()))
    (tmp_path / "format-1.blob.zst").write_bytes(pack(BLOB_1))
    meta, frames = read_cassette(tmp_path / "format-1.jsonl.zst")
    assert meta == {"dialect": "rig_socket"}
    assert frames == [
        sent(1000, b'{"type":"session.setup"}'),
        sent(2000, b"\x01\x00\x02\x00", binary=True),
        got(3000, b'{"audio":"//79/Pv6"}'),
        got(4000, "ü".encode()),
    ]


def test_a_cassette_of_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.zst"
    path.write_bytes(zstandard.compress(b'{"format": 2, "frames": 0}\n'))
    with pytest.raises(CassetteError, match=r"c\.jsonl\.zst: cassette format 2; this version reads 1"):
        read_cassette(path)


def test_what_is_written_today_is_format_1(tmp_path: Path) -> None:
    path, blob = tmp_path / "c.jsonl.zst", tmp_path / "c.blob.zst"
    write_cassette(path, blob, [sent(1, b"\x01\x02", binary=True)], meta={"dialect": "x"}, scrubber=Scrubber(()))
    header, line = zstandard.decompress(path.read_bytes()).decode().splitlines()
    assert json.loads(header) == {
        "format": 1, "frames": 1, "blob": "c.blob.zst", "blob_bytes": 2, "meta": {"dialect": "x"},
    }  # fmt: skip
    assert json.loads(line) == {"t_ns": 1, "direction": "sent", "binary": True, "parts": [[0, 2]]}
