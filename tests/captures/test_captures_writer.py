"""The writer: what is durable when, what a kill or a full disk leaves, and that nothing written holds a key."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from captures.capture import Capture, Ending, ErrorInfo, ObservedCall, ReplyAudio
from captures.cassette import read_cassette
from captures.frames import Direction, LoggedFrame
from captures.lock import FolderLockedError
from captures.run_folder import DamagedRunError, RunFolder
from captures.scrub import MASK, Scrubber
from captures.writer import AttemptRecord, CaptureWriter, WriterError

MakeCapture = Callable[..., Capture]
NO_SECRETS = Scrubber([])
FRAMES = (
    LoggedFrame(1, Direction.SENT, b'{"audio":"' + base64.b64encode(bytes(960)) + b'"}', False),
    LoggedFrame(2, Direction.RECEIVED, b'{"type":"done"}', False),
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {})


def write_all(folder: RunFolder, records: list[AttemptRecord], scrubber: Scrubber = NO_SECRETS) -> list[str]:
    """Write `records`; the notes of mending."""

    async def main() -> list[str]:
        async with CaptureWriter(folder, scrubber) as writer:
            for record in records:
                await writer.put(record)
            return writer.notes

    return asyncio.run(main())


def test_an_attempt_and_all_it_names(
    folder: RunFolder, make_capture: MakeCapture, make_reply: Callable[[int], ReplyAudio]
) -> None:
    pcm = (np.arange(2400) * 13 % 2000).astype("<i2").tobytes()
    write_all(folder, [AttemptRecord(make_capture("a" * 64, reply_audio=make_reply(24_000)), FRAMES, pcm + b"\1")])
    (capture,) = folder.read_captures()
    assert capture.cassette is not None
    meta, frames = read_cassette(folder.path / capture.cassette)
    assert tuple(frames) == FRAMES
    assert (meta["dialect"], meta["wire_version"], meta["parser_version"]) == ("rig_socket", 1, 2)
    assert capture.reply_audio is not None
    assert capture.reply_audio.file is not None
    samples, rate_hz = soundfile.read(folder.path / capture.reply_audio.file, dtype="int16")
    assert (samples.astype("<i2").tobytes(), rate_hz) == (pcm, 24_000)
    assert not list(folder.path.rglob("*.tmp"))


def test_an_attempt_without_frames_or_reply_names_no_files(folder: RunFolder, make_capture: MakeCapture) -> None:
    write_all(folder, [AttemptRecord(make_capture(ending=Ending.INPUT_ERROR))])
    (capture,) = folder.read_captures()
    assert (capture.cassette, capture.reply_audio) == (None, None)
    assert list(folder.wire_path.iterdir()) == []


def test_on_written_comes_on_the_loop_after_the_line_is_on_disk(folder: RunFolder, make_capture: MakeCapture) -> None:
    seen: list[tuple[str, int, bool]] = []

    def note(capture: Capture) -> None:
        lines = len(folder.read_captures())
        seen.append((capture.identity, lines, threading.current_thread() is threading.main_thread()))

    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS, queue_limit=1, on_written=note) as writer:
            for number in range(5):
                await writer.put(AttemptRecord(make_capture(str(number)), FRAMES))

    asyncio.run(main())
    assert [identity for identity, _, _ in seen] == ["0", "1", "2", "3", "4"]
    assert all(lines > number and on_loop for number, (_, lines, on_loop) in enumerate(seen))


def test_a_full_queue_waits_without_blocking_the_loop(
    folder: RunFolder, make_capture: MakeCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    write = CaptureWriter._write
    monkeypatch.setattr(CaptureWriter, "_write", lambda self, record: go_on.wait(30) and write(self, record))

    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS, queue_limit=2) as writer:
            await writer.put(AttemptRecord(make_capture("0")))
            await writer.put(AttemptRecord(make_capture("1")))
            third = asyncio.ensure_future(writer.put(AttemptRecord(make_capture("2"))))
            for _ in range(10):
                await asyncio.sleep(0)  # the loop runs on while the third waits
            assert not third.done()
            go_on.set()
            await third

    asyncio.run(main())
    assert len(folder.read_captures()) == 3


def test_the_same_attempt_again_never_overwrites_files(folder: RunFolder, make_capture: MakeCapture) -> None:
    write_all(folder, [AttemptRecord(make_capture("same"), FRAMES)])
    write_all(folder, [AttemptRecord(make_capture("same"), FRAMES[:1])])
    first, second = folder.read_captures()
    assert first.cassette != second.cassette
    assert first.cassette is not None
    assert len(read_cassette(folder.path / first.cassette)[1]) == 2


def test_b25_resuming_after_a_torn_line(folder: RunFolder, make_capture: MakeCapture) -> None:
    write_all(folder, [AttemptRecord(make_capture(name), FRAMES) for name in ("i01", "i02", "i03")])
    with folder.captures_path.open("ab") as file:
        file.write(b'{"identity":"i04","sco')
    left = [name for name in ("i01", "i02", "i03", "i04", "i05", "i06") if name not in folder.finished()]
    (note,) = write_all(folder, [AttemptRecord(make_capture(name), FRAMES) for name in left])
    assert "line 4" in note
    assert [capture.identity for capture in folder.read_captures()] == ["i01", "i02", "i03", "i04", "i05", "i06"]
    assert len(folder.captures_path.read_bytes().splitlines()) == 6


def test_b25_damage_stops_before_anything_is_written(folder: RunFolder, make_capture: MakeCapture) -> None:
    folder.captures_path.write_bytes(b"damaged\n")
    with pytest.raises(DamagedRunError, match="line 1"):
        write_all(folder, [AttemptRecord(make_capture())])
    assert folder.captures_path.read_bytes() == b"damaged\n"
    with folder.lock():
        pass  # the lock was given back


def test_two_writers_on_one_folder(folder: RunFolder, make_capture: MakeCapture) -> None:
    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS):
            with pytest.raises(FolderLockedError):
                async with CaptureWriter(folder, NO_SECRETS):
                    pass

    asyncio.run(main())


def test_a_failure_reaches_the_next_put_and_the_end(folder: RunFolder, make_capture: MakeCapture) -> None:
    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS, queue_limit=1) as writer:
            await writer.put(AttemptRecord(make_capture("0")))
            folder.wire_path.rmdir()
            folder.wire_path.write_text("a file where a folder was")
            await writer.put(AttemptRecord(make_capture("1"), FRAMES))
            with pytest.raises(WriterError, match=r"item-1 on agent could not be written \(.*wire"):
                await writer.put(AttemptRecord(make_capture("2")))
            with pytest.raises(WriterError, match="item-1"):
                await writer.close()

    with pytest.raises(WriterError, match="item-1"):
        asyncio.run(main())
    assert [capture.identity for capture in folder.read_captures()] == ["0"]


def test_a_failure_does_not_hide_the_error_that_ended_the_run(folder: RunFolder, make_capture: MakeCapture) -> None:
    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS) as writer:
            folder.wire_path.rmdir()
            await writer.put(AttemptRecord(make_capture("1"), FRAMES))
            raise LookupError("the run's own")

    with pytest.raises(LookupError):
        asyncio.run(main())


def test_a_closed_writer_takes_nothing(folder: RunFolder, make_capture: MakeCapture) -> None:
    async def main() -> None:
        async with CaptureWriter(folder, NO_SECRETS) as writer:
            await writer.close()
            with pytest.raises(WriterError, match="closed"):
                await writer.put(AttemptRecord(make_capture()))

    asyncio.run(main())


def test_awkward_arguments_survive(folder: RunFolder, make_capture: MakeCapture) -> None:
    text = '{"n":123456789012345678901234567890,"f":1e999,"s":"\\ud800","deep":' + "[" * 200 + "]" * 200 + "}"
    call = ObservedCall(call_id="c", name="t", arguments_json=text, arguments=json.loads(text), output_index=0)
    write_all(folder, [AttemptRecord(make_capture(calls=(call,), ending=Ending.CALLED))])
    assert folder.read_captures()[0].calls == (call,)


def test_b26_no_key_in_the_run_folder(
    folder: RunFolder, make_capture: MakeCapture, key: str, leaks: Callable[[bytes], list[str]]
) -> None:
    call = ObservedCall(
        call_id="c",
        name="look_up",
        arguments_json=json.dumps({"q": key, "url": "https://shop/?token=abc"}),
        arguments={"q": key, "url": "https://shop/?token=abc"},
        output_index=0,
    )
    capture = make_capture(
        error=ErrorInfo(kind="refused", code="401", message=f"GET /v1?token=other1 Bearer {key}"),
        warnings=(base64.b64encode(f"u:{key}".encode()).decode(),),
        close_reason=f"bad key {key[:10]}",
        reply_text=f"you said {key}",
        echoed={"api_key": key},
        usage={key: 1},
        calls=(call,),
        host="api.example.com",
    )
    frames = (LoggedFrame(1, Direction.RECEIVED, json.dumps({"error": f"key {key}"}).encode(), False),)
    write_all(folder, [AttemptRecord(capture, frames)], Scrubber([key]))
    assert leaks(b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())) == []
    (read,) = folder.read_captures()
    assert read.cassette is not None
    assert leaks(read_cassette(folder.path / read.cassette)[1][0].payload) == []
    assert read.error is not None
    assert read.error.message == f"GET /v1?token={MASK} Bearer {MASK}"
    assert read.calls[0].arguments == {"q": MASK, "url": "https://shop/?token=abc"}
    assert (read.identity, read.host, read.marks) == (capture.identity, capture.host, capture.marks)


_CHILD = """
import asyncio, resource, sys
from pathlib import Path
from captures.capture import Capture
from captures.frames import Direction, LoggedFrame
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from captures.writer import AttemptRecord, CaptureWriter, WriterError

path, limit, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
folder = RunFolder.open(path)
done = folder.finished()

async def main():
    on_written = lambda capture: print(capture.identity, flush=True)
    async with CaptureWriter(folder, Scrubber([]), 4, on_written) as writer:
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        for number in range(int(sys.argv[4])):
            if f"cell-{number}" in done:
                continue
            capture = Capture(identity=f"cell-{number}", target="t", item_id="i", variant_id="v", condition="audio",
                finished=True, started_ns=1, adapter="x", wire_version=1, parser_version=1, ending="declined")
            frames = [LoggedFrame(1, Direction.SENT, __import__("os").urandom(size), True)]
            await writer.put(AttemptRecord(capture, frames))

try:
    asyncio.run(main())
except WriterError as error:
    print(error)
    sys.exit(2)
"""


def _child(folder: RunFolder, limit: int, size: int, count: int) -> subprocess.Popen[bytes]:
    arguments = [str(folder.path), str(limit), str(size), str(count)]
    return subprocess.Popen([sys.executable, "-c", _CHILD, *arguments], stdout=subprocess.PIPE)


def test_killed_while_writing_then_resumed(folder: RunFolder) -> None:
    said: list[str] = []
    with _child(folder, 0, 20_000, 100_000) as child:
        assert child.stdout is not None
        for line in child.stdout:
            said.append(line.decode().strip())
            if len(said) == 20:
                child.send_signal(signal.SIGKILL)
                break
    captures = {capture.identity: capture for capture in folder.read_captures()}
    assert set(said) <= set(captures), "what was reported as written is on disk"
    count = len(captures) + 3
    with _child(folder, 0, 20_000, count) as child:
        again = child.communicate()[0].decode().split()
    assert child.returncode == 0
    assert not set(again) & set(captures), "nothing finished runs again"
    captures = {capture.identity: capture for capture in folder.read_captures()}
    assert sorted(captures) == sorted(f"cell-{number}" for number in range(count))
    for capture in captures.values():
        assert capture.cassette is not None
        assert len(read_cassette(folder.path / capture.cassette)[1][0].payload) == 20_000
    assert not list(folder.path.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("limit", "size", "written"), [(10_000, 50_000, 0), (3_000, 100, 3)], ids=["cassette", "captures-line"]
)
def test_full_disk_stops_the_run_and_leaves_whole_lines(folder: RunFolder, limit: int, size: int, written: int) -> None:
    with _child(folder, limit, size, 50) as child:
        output = child.communicate()[0].decode()
    assert child.returncode == 2
    assert "could not be written" in output.splitlines()[-1]
    assert "File too large" in output.splitlines()[-1]
    content = folder.captures_path.read_bytes()
    assert content == b"" or content.endswith(b"\n")
    assert len(folder.read_captures()) == len(content.splitlines()) >= written
    with _child(folder, 0, size, 50) as child:
        child.communicate()
    assert len(folder.finished()) == 50


def test_a_folder_that_cannot_be_written(folder: RunFolder) -> None:
    folder.captures_path.mkdir()
    folder_error: Any = None
    try:
        write_all(folder, [])
    except WriterError as error:
        folder_error = error
    assert "cannot be written" in str(folder_error)
