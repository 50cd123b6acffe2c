"""The brain: a real process that decodes each utterance once and refuses what it must not take."""

from __future__ import annotations

import json
import struct
import threading
import time
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute

from rig.agents import brain_wire
from rig.agents.acoustic_words import TAGS
from rig.agents.brain import BusyError, Memory, handle
from rig.agents.brain_client import BrainClient, BrainError
from rig.agents.brain_wire import Impression
from rig.agents.children import ChildError, brain, child


def test_it_hears_words_and_the_same_words_again(running_brain: BrainClient, caller_pcm: bytes) -> None:
    async def ask() -> list[Impression]:
        return [await running_brain.hear(caller_pcm, 24_000) for _ in range(2)]

    first, second = anyio.run(ask)
    assert first == second
    assert first.words.startswith("one moment")
    assert first.words.endswith("for you")
    assert set(first.confidence) == set(TAGS)
    assert all(0 <= sure <= 1 for sure in first.confidence.values())
    assert not first.tags & {"keypad", "siren", "second_voice", "whispered", "loud"}


def test_silence_has_no_words(running_brain: BrainClient) -> None:
    assert anyio.run(running_brain.hear, b"", 24_000) == Impression()
    assert anyio.run(running_brain.hear, bytes(48_000), 24_000) == Impression()


@pytest.mark.parametrize(
    ("pcm_bytes", "rate_hz", "message"),
    [
        (2, 4000, "rate_hz"),
        (3, 24_000, "16-bit"),
        (2 * 8000 * 121, 8000, "longer than 120 s"),
    ],
)
def test_bad_requests_are_refused(running_brain: BrainClient, pcm_bytes: int, rate_hz: int, message: str) -> None:
    with pytest.raises(BrainError, match=message):
        anyio.run(running_brain.hear, bytes(pcm_bytes), rate_hz)


def test_a_wrong_token_is_refused_before_any_audio(running_brain: BrainClient) -> None:
    with pytest.raises(BrainError, match="wrong token"):
        anyio.run(BrainClient(running_brain.port, "guessed").hear, b"", 24_000)


@pytest.mark.parametrize("request_bytes", [struct.pack("!II", 1 << 30, 0), struct.pack("!II", 4, 0) + b"nope", b"\x00"])
def test_bytes_that_are_no_request_harm_nobody(
    running_brain: BrainClient, request_bytes: bytes, caller_pcm: bytes
) -> None:
    async def send() -> bytes:
        received = b""
        async with await anyio.connect_tcp("127.0.0.1", running_brain.port) as stream:
            await stream.send(request_bytes)
            await stream.send_eof()
            with anyio.fail_after(10):
                try:
                    while True:
                        received += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return received

    answer = anyio.run(send)
    if len(request_bytes) > 4:
        assert "error" in json.loads(answer[4:])
    assert anyio.run(running_brain.hear, caller_pcm, 24_000).words


def test_an_utterance_is_decoded_once_for_all_who_ask() -> None:
    calls: list[bytes] = []
    go = threading.Event()

    def listen(pcm: bytes, rate_hz: int) -> Impression:
        calls.append(pcm)
        assert go.wait(10)
        return Impression(f"{len(pcm)} at {rate_hz}")

    async def ask() -> list[str]:
        memory = Memory(listen)
        words: list[str] = []

        async def one(pcm: bytes) -> None:
            words.append((await memory.impression(pcm, 8000)).words)

        async with anyio.create_task_group() as tasks:
            for pcm in (b"aa", b"aa", b"bbbb", b"aa"):
                tasks.start_soon(one, pcm)
            await anyio.wait_all_tasks_blocked()
            go.set()
        await one(b"aa")
        assert memory.decoded == 2
        return words

    words = anyio.run(ask)
    assert sorted(words) == ["2 at 8000"] * 4 + ["4 at 8000"]
    assert len(calls) == 2


def test_a_failed_decode_is_tried_again_and_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [RuntimeError("no model"), Impression("fine")]

    def listen(pcm: bytes, rate_hz: int) -> Impression:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def ask() -> str:
        memory = Memory(listen)
        with pytest.raises(RuntimeError, match="no model"):
            await memory.impression(b"aa", 8000)
        words = (await memory.impression(b"aa", 8000)).words
        monkeypatch.setattr("rig.agents.brain.MAX_WAITING", 0)
        with pytest.raises(BusyError):
            await memory.impression(b"bb", 8000)
        return words

    assert anyio.run(ask) == "fine"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.agents.brain.MAX_REMEMBERED", 2)

    async def ask() -> int:
        memory = Memory(lambda pcm, rate_hz: Impression(pcm.decode()))
        for pcm in (b"aa", b"bb", b"cc", b"cc", b"bb", b"aa"):
            assert (await memory.impression(pcm, 8000)).words == pcm.decode()
        return memory.decoded

    assert anyio.run(ask) == 4


def test_a_lexicon_adds_words_and_a_bad_one_is_named(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("# names\nzorblax Z AO R B L AE K S\n")
    bad.write_text("zorblax Q Q\n")

    async def start(lexicon: Path) -> None:
        async with brain(tmp_path / "brain.log", lexicon):
            pass

    anyio.run(start, good)
    with pytest.raises(ChildError, match=r"bad\.txt:1: zorblax"):
        anyio.run(start, bad)


def test_a_child_without_its_token_says_so(tmp_path: Path) -> None:
    async def start() -> None:
        async with child("rig.agents.brain", [], {}, tmp_path / "log"):
            pass

    with pytest.raises(ChildError, match=brain_wire.TOKEN_ENV):
        anyio.run(start)


def test_the_brain_ends_with_its_parent(tmp_path: Path) -> None:
    async def start() -> BrainClient:
        async with brain(tmp_path / "log") as client:
            return client

    client = anyio.run(start)
    started = time.monotonic()
    with pytest.raises(BrainError, match="cannot be asked"):
        anyio.run(client.hear, b"", 24_000)
    assert time.monotonic() >= started


def test_an_utterance_that_breaks_the_hearing_breaks_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    def listen(pcm: bytes, rate_hz: int) -> Impression:
        if pcm == b"aa":
            raise FileNotFoundError("limits.yaml")
        return Impression("fine")

    async def ask() -> str:
        memory = Memory(listen)
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        client = BrainClient(listener.extra(SocketAttribute.local_port), "token")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, lambda stream: handle(stream, memory, "token"))
            with pytest.raises(BrainError, match=r"FileNotFoundError while hearing: limits\.yaml"):
                await client.hear(b"aa", 8000)
            words = (await client.hear(b"bbbb", 8000)).words
            tasks.cancel_scope.cancel()
        await listener.aclose()
        return words

    assert anyio.run(ask) == "fine"
    assert "could not be heard" in caplog.text
