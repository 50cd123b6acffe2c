"""Whatever goes wrong on the way ends in the right ending, says so in one line, and is never scored."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from captures.capture import Ending
from rig.bank.loader import BankError
from rig.config import ConfigError


@pytest.fixture
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank")


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def credit(done: Any) -> Any:
    return done.report()["targets"]["agent"]["credit"]["neutral"]


@pytest.mark.usefixtures("bank")
class TestAgents:
    @pytest.mark.parametrize("status", [401, 403])
    def test_a_refused_key_stops_the_target_at_once(self, rig: Any, serve: Any, banks: Any, status: int) -> None:
        banks.write_bank(rig.folder / "two", items=(banks.BOOKING, banks.BOOKING | {"id": "second"}))
        server = serve([("refuse", status, "no")])
        done = rig.run(rig.config(server.ws_url, bank="two"))
        assert len(server.connections) == 1
        assert done.only.ending is Ending.CONFIGURATION_ERROR
        assert f"key was refused by 127.0.0.1:{server.port}" in done.watch.stopped["agent"].message
        assert done.result.outcomes["agent"].unfinished == 2
        assert credit(done) is None

    def test_a_busy_server_is_tried_again(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([("refuse", 503, "busy")], [*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url))
        assert [c.ending for c in done.captures] == [Ending.INFRASTRUCTURE_ERROR, Ending.CALLED]
        assert "503" in done.captures[0].error.code
        assert credit(done)["mean"] == 1

    def test_nothing_listens(self, rig: Any) -> None:
        port = unused_port()
        done = rig.run(rig.config(f"ws://127.0.0.1:{port}/", limits={"attempts": 2}))
        assert [c.ending for c in done.captures] == [Ending.INFRASTRUCTURE_ERROR] * 2
        assert done.captures[0].error.code == "refused"
        assert f"nothing listens at ws://127.0.0.1:{port}/" in done.captures[0].error.message
        assert credit(done) is None

    def test_never_answers(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([*ga.COMMITTED, ("silent",)])
        done = rig.run(rig.config(server.ws_url, limits={"turn_s": 0.3}))
        assert [(c.ending, c.finished) for c in done.captures] == [
            (Ending.NO_ANSWER, False),
            (Ending.NO_ANSWER, True),
        ]
        assert len(server.connections) == 2
        assert credit(done)["mean"] == 0
        found = done.report()["targets"]["agent"]
        assert (found["endings"]["no_answer"], found["endings"]["declined"]) == (1, 0)
        assert found["latency"]["commit_to_tool_call"] is None
        assert done.result.complete

    def test_answers_when_asked_once_more(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([*ga.COMMITTED, ("silent",)], [*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url, limits={"turn_s": 0.3}))
        assert [(c.ending, c.finished) for c in done.captures] == [(Ending.NO_ANSWER, False), (Ending.CALLED, True)]
        assert credit(done)["mean"] == 1
        assert done.report()["targets"]["agent"]["endings"]["no_answer"] == 0

    @pytest.mark.parametrize("when", ["during the caller's audio", "after the commit", "within the answer"])
    @pytest.mark.parametrize("how", [("drop",), ("close", 1011, "server error"), ("close", 1000, "")])
    def test_closed_mid_turn(self, rig: Any, serve: Any, ga: Any, when: str, how: Any) -> None:
        until = {
            "during the caller's audio": [*ga.READY, ("expect", "audio", 2_400)],
            "after the commit": ga.COMMITTED,
            "within the answer": [*ga.COMMITTED, ("send", ga.created()), ("send", ga.audio(bytes(960)))],
        }
        server = serve([*until[when], how], [*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url))
        first, second = done.captures
        assert (first.ending, first.finished) == (Ending.INFRASTRUCTURE_ERROR, False)
        assert (second.ending, second.attempt) == (Ending.CALLED, 2)
        if how[0] == "close":
            assert first.close_code == how[1]
            assert first.close_reason == how[2]
        assert credit(done)["n"] == 1

    def test_a_whole_answer_then_a_close_is_an_answer(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([*ga.COMMITTED, *ga.called(), ("close", 1011, "bye")])
        assert rig.run(rig.config(server.ws_url)).only.ending is Ending.CALLED

    def test_settings_refused(self, rig: Any, serve: Any) -> None:
        error = {
            "type": "invalid_request_error",
            "code": "string_above_max_length",
            "message": "Invalid 'session.tools[3].description': maximum length 1024, got 2473.",
            "param": "session.tools[3].description",
        }
        server = serve([("expect", "session.update"), ("send", {"type": "error", "error": error}), ("silent",)])
        done = rig.run(rig.config(server.ws_url))
        assert done.only.ending is Ending.CONFIGURATION_ERROR
        assert done.only.error.where == "session.tools[3].description"
        assert "1024" in done.only.error.message
        assert "2473" in done.only.error.message
        assert server.connections[0].audio == b""
        assert not done.result.complete

    def test_quota_stops_the_target(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        banks.write_bank(rig.folder / "two", items=(banks.BOOKING, banks.BOOKING | {"id": "second"}))
        details = {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota."}}
        server = serve([*ga.COMMITTED, ("send", ga.created()), ("send", ga.done("failed", (), details))])
        done = rig.run(rig.config(server.ws_url, bank="two"))
        assert len(server.connections) == 1
        assert (done.only.ending, done.only.error.kind) == (Ending.INFRASTRUCTURE_ERROR, "quota")
        assert done.watch.stopped["agent"].code == "insufficient_quota"

    def test_one_bad_target_leaves_the_good_one_alone(self, rig: Any, serve: Any, ga: Any) -> None:
        good, bad = serve([*ga.COMMITTED, *ga.called()]), serve([("refuse", 401, "")])
        config = rig.config(good.ws_url)
        config["targets"].append(config["targets"][0] | {"name": "bad", "base_url": bad.ws_url})
        done = rig.run(config)
        assert {c.target: c.ending for c in done.captures} == {
            "agent": Ending.CALLED,
            "bad": Ending.CONFIGURATION_ERROR,
        }
        assert not done.result.complete
        assert done.result.outcomes["agent"].unfinished == 0
        assert done.report()["targets"]["bad"]["credit"]["neutral"] is None

    def test_garbage_is_kept_and_ends_nothing(self, rig: Any, serve: Any, ga: Any) -> None:
        junk = [("send", b"\x00\xff"), ("send", {"no": "type"}), ("send", {"type": "something.new", "x": [1]})]
        server = serve([*ga.READY, *junk, *ga.COMMITTED[2:], *junk, *ga.called()])
        assert rig.run(rig.config(server.ws_url)).only.ending is Ending.CALLED


@pytest.mark.usefixtures("bank")
class TestFileMode:
    ANSWER: ClassVar[Any] = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "book_table", "arguments": '{"party":4,"time":"19:30"}'},
                        }
                    ],
                },
            }
        ],
    }

    def config(self, rig: Any, server: Any, **changes: Any) -> Any:
        return rig.config(server.http_url, target={"adapter": "chat_audio"}, **changes)

    def test_the_clip_is_posted_once(self, rig: Any, serve: Any, banks: Any) -> None:
        server = serve([("reply", self.ANSWER)])
        done = rig.run(self.config(rig, server))
        (connection,) = server.connections
        assert connection.path == "/v1/chat/completions"
        ((_, body),) = connection.received
        assert [tool["function"]["name"] for tool in body["tools"]].count("book_table") == 1
        assert done.only.calls[0].arguments == {"party": 4, "time": "19:30"}
        assert credit(done)["mean"] == 1
        latency = done.report()["targets"]["agent"]["latency"]
        assert latency["request_to_tool_call"]["n"] == 1
        assert latency["commit_to_tool_call"] is None

    @pytest.mark.parametrize("first", [("refuse", 429, "{}"), ("refuse", 500, "oops"), ("drop",)])
    def test_a_failed_request_is_sent_again(self, rig: Any, serve: Any, first: Any) -> None:
        server = serve([first], [("reply", self.ANSWER)])
        done = rig.run(self.config(rig, server))
        assert [c.ending for c in done.captures] == [Ending.INFRASTRUCTURE_ERROR, Ending.CALLED]
        assert len(server.connections) == 2

    def test_a_refused_key(self, rig: Any, serve: Any) -> None:
        server = serve([("refuse", 401, '{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}')])
        done = rig.run(self.config(rig, server))
        assert done.only.ending is Ending.CONFIGURATION_ERROR
        assert len(server.connections) == 1

    def test_never_answers(self, rig: Any, serve: Any) -> None:
        server = serve([("wait", 1.0), ("reply", self.ANSWER)])
        done = rig.run(self.config(rig, server, limits={"turn_s": 0.3}))
        assert [c.ending for c in done.captures] == [Ending.NO_ANSWER] * 2


NAN = struct.pack("<HHIIHH", 3, 1, 24_000, 96_000, 4, 32)
ADPCM = struct.pack("<HHIIHH", 2, 1, 24_000, 24_000, 1, 4)


class TestBadClips:
    """Named before any connection; their cells are input errors, the others are run."""

    CASES: ClassVar[Any] = {
        "empty": (b"", "empty"),
        "no samples": ("wav", "no samples"),
        "unreadable": (b"this is no audio at all", "unreadable"),
        "nan": ("nan", "NaN"),
        "no data chunk": (b"RIFF\x04\x00\x00\x00WAVE", "data"),
        "unknown sub-format": ("sub-format", "sub-format"),
        "3 hours at 200 kHz": ("rate", "rate"),
    }

    def data(self, banks: Any, given: Any) -> bytes:
        if given == "wav":
            return bytes(banks.wav([]))
        if given == "nan":
            return bytes(banks.wav_with(NAN, np.array([0.1, np.nan, 0.2], "<f4").tobytes()))
        if given == "rate":
            return bytes(banks.wav(banks.tone(0.1), 200_000))
        if given == "sub-format":
            head = struct.pack("<HHIIHHHHI", 0xFFFE, 1, 24_000, 48_000, 2, 16, 22, 16, 4)
            return bytes(banks.wav_with(head + bytes(range(16)), bytes(480)))
        return bytes(given)

    @pytest.mark.parametrize("case", CASES)
    def test_named_and_left_out(self, rig: Any, serve: Any, ga: Any, banks: Any, case: str) -> None:
        given, word = self.CASES[case]
        bad = self.data(banks, given)
        root = banks.write_bank(rig.folder / "bank", {"clear": banks.wav(banks.tone(0.2)), "noisy": bad})
        server = serve([*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url))
        (line,) = done.prepared.input_errors
        assert word.lower() in line.lower()
        assert "\n" not in line
        assert any(path.stem[:12] in line for path in (root / "audio").iterdir())
        assert len(server.connections) == 1
        assert {c.variant_id: c.ending for c in done.captures} == {
            "clear": Ending.CALLED,
            "noisy": Ending.INPUT_ERROR,
        }
        found = done.report()
        assert found["targets"]["agent"]["credit"]["cue_bearing"] is None
        assert found["targets"]["agent"]["endings"]["input_error"] == 1
        assert any(word.lower() in text.lower() for text in found["not_run"])
        assert not done.result.complete

    def test_a_clip_that_changed(self, rig: Any, serve: Any, ga: Any, banks: Any) -> None:
        root = banks.write_bank(rig.folder / "bank")
        (path,) = (root / "audio").glob("*.wav")
        path.write_bytes(path.read_bytes() + b"\x00\x00")
        server = serve([*ga.COMMITTED, *ga.called()])
        done = rig.run(rig.config(server.ws_url))
        assert "SHA-256" in done.prepared.input_errors[0]
        assert server.connections == []

    def test_a_clip_that_is_gone(self, rig: Any, banks: Any) -> None:
        root = banks.write_bank(rig.folder / "bank")
        (path,) = (root / "audio").glob("*.wav")
        path.unlink()
        done = rig.run(rig.config("ws://127.0.0.1:1/"))
        assert "booking/clear" in done.prepared.input_errors[0]
        assert done.only.ending is Ending.INPUT_ERROR

    def test_a_speech_end_after_the_end(self, rig: Any, banks: Any) -> None:
        banks.write_bank(rig.folder / "bank", speech_end_s=9.0)
        done = rig.run(rig.config("ws://127.0.0.1:1/"))
        assert "speech_end_s 9" in done.prepared.input_errors[0]
        assert done.only.ending is Ending.INPUT_ERROR

    def test_a_clip_longer_than_any_request(self, rig: Any, banks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("adapters.chat_audio.wire.MAX_REQUEST_BYTES", 5_000)
        banks.write_bank(rig.folder / "bank")
        done = rig.run(rig.config("http://127.0.0.1:1/v1", target={"adapter": "chat_audio"}))
        assert done.only.ending is Ending.INPUT_ERROR
        assert "limit of 5,000" in done.only.error.message


@pytest.mark.usefixtures("bank")
class TestBadConfigs:
    """What needs bank or dialect to be seen; before any connection."""

    def refused(self, rig: Any, **changes: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            rig.run(rig.config("ws://127.0.0.1:1/", **changes))
        return caught.value.problems

    def test_unsupported_turn_mode(self, rig: Any) -> None:
        (line,) = self.refused(rig, target={"adapter": "rig_socket"}, turn_control={"mode": "semantic_vad"})
        assert "targets[0] (agent)" in line
        assert "semantic_vad" in line
        assert "manual, server_vad" in line

    def test_unknown_turn_parameter(self, rig: Any) -> None:
        (line,) = self.refused(rig, turn_control={"mode": "server_vad", "parameters": {"silence": 5}})
        assert "targets[0] (agent)" in line
        assert "silence" in line

    def test_unknown_setting(self, rig: Any) -> None:
        (line,) = self.refused(rig, target={"settings": {"voise": "marin"}})
        assert "settings.voise" in line
        assert "voice" in line

    def test_glob_without_match(self, rig: Any) -> None:
        (line,) = self.refused(rig, items=["booking", "nothing-*"])
        assert "'nothing-*' matches no item" in line

    def test_all_at_once(self, rig: Any) -> None:
        lines = self.refused(rig, items=["nothing-*"], target={"settings": {"voise": "x"}})
        assert len(lines) == 2

    def test_no_such_bank(self, rig: Any) -> None:
        with pytest.raises(BankError, match="no such folder"):
            rig.run(rig.config("ws://127.0.0.1:1/", bank="nowhere"))
