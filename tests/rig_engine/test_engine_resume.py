"""A run that was cut off goes on where it was (bug case B25), whatever the cut left of its last line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from captures.run_folder import DamagedRunError, RunFolderError

ITEMS = [f"i{number:02}" for number in range(1, 7)]


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(
        tmp_path / "bank", {"clear": banks.wav(banks.tone(0.1))}, items=tuple(banks.BOOKING | {"id": i} for i in ITEMS)
    )


def answers(ga: Any) -> list[Any]:
    """Six answers, right but for the fifth."""
    right, wrong = [*ga.COMMITTED, *ga.called()], [*ga.COMMITTED, *ga.called("cancel_order", {})]
    return [right] * 4 + [wrong, right]


def summary(done: Any) -> Any:
    """What a report says of the agent, without the times of this particular run."""
    found = done.report()["targets"]["agent"]
    return {name: found[name] for name in ("credit", "endings", "both_right", "attempts", "retried")}


class TestB25:
    @pytest.fixture
    def server(self, serve: Any, ga: Any) -> Any:
        return serve(*answers(ga))

    @pytest.fixture
    def whole(self, rig: Any, server: Any) -> Any:
        """An uninterrupted run."""
        return rig.run(rig.config(server.ws_url), out="whole")

    def cut(self, rig: Any, whole: Any, keep: int, tail: bytes) -> Path:
        """A run folder whose captures are the first `keep` lines of `whole`, then `tail`."""
        first = whole.folder.captures_path.read_bytes().splitlines(keepends=True)[:keep]
        folder = rig.folder / "cut"
        folder.mkdir()
        (folder / "run.json").write_bytes((whole.folder.path / "run.json").read_bytes())
        (folder / "captures.jsonl").write_bytes(b"".join(first) + tail)
        return folder

    def resume(self, rig: Any, server: Any, ga: Any, keep: int) -> Any:
        """Resume `cut` on the same server, which has the answers after the first `keep`."""
        server.play(*answers(ga)[keep:], [])
        return rig.run(rig.config(server.ws_url), out="cut")

    @pytest.mark.parametrize(
        ("keep", "tail", "asked", "said"),
        [
            (3, b'{"item":"i04","sco', ["i04", "i05", "i06"], "line 4: torn line of 18 bytes"),
            (0, b"", ITEMS, None),
            (0, b'{"item', ITEMS, "line 1: torn line"),
            (6, b"", [], None),
        ],
        ids=["torn last line", "empty file", "torn first line", "nothing left"],
    )
    def test_the_rest_runs_once(
        self, rig: Any, whole: Any, server: Any, ga: Any, keep: int, tail: bytes, asked: list[str], said: str | None
    ) -> None:
        folder = self.cut(rig, whole, keep, tail)
        done = self.resume(rig, server, ga, keep)
        assert len(server.connections) == len(asked)
        assert [capture.item_id for capture in done.watch.captures] == asked
        lines = (folder / "captures.jsonl").read_bytes().splitlines()
        assert [json.loads(line)["item_id"] for line in lines] == ITEMS
        assert done.result.already_finished == keep
        if said is None:
            assert done.result.notes == ()
        else:
            (note,) = done.result.notes
            assert str(folder / "captures.jsonl") in note
            assert said in note
            assert (folder / "captures.torn-1.txt").read_bytes() == tail
        assert summary(done) == summary(whole)

    def test_a_whole_last_line_without_newline(self, rig: Any, whole: Any, server: Any, ga: Any) -> None:
        folder = self.cut(rig, whole, 3, b"")
        path = folder / "captures.jsonl"
        path.write_bytes(path.read_bytes()[:-1])
        done = self.resume(rig, server, ga, 3)
        assert len(server.connections) == 3
        assert [json.loads(line)["item_id"] for line in path.read_bytes().splitlines()] == ITEMS
        assert "newline" in done.result.notes[0]
        assert summary(done) == summary(whole)

    def test_damage_in_the_middle_stops_before_connecting(self, rig: Any, whole: Any, server: Any, ga: Any) -> None:
        folder = self.cut(rig, whole, 3, b"")
        path = folder / "captures.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        content = lines[0] + lines[1][:40] + b"\n" + lines[2]
        path.write_bytes(content)
        server.play(*answers(ga))
        with pytest.raises(DamagedRunError, match=r"captures\.jsonl, line 2: damaged") as caught:
            rig.run(rig.config(server.ws_url), out="cut")
        assert "\n" not in str(caught.value)
        assert server.connections == []
        assert path.read_bytes() == content

    def test_failed_attempts_are_numbered_on(self, rig: Any, serve: Any, ga: Any) -> None:
        busy = ("refuse", 503, "")
        server = serve([busy], [busy], [*ga.COMMITTED, *ga.called()])
        config = rig.config(server.ws_url, items=["i01"], limits={"attempts": 2})
        assert not rig.run(config).result.complete
        done = rig.run(config)
        assert [(c.attempt, c.finished) for c in done.captures] == [(1, False), (2, False), (3, True)]
        assert done.result.complete

    def test_another_config_asks_its_own_cells(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([*ga.COMMITTED, *ga.called()])
        rig.run(rig.config(server.ws_url, items=["i01"]))
        done = rig.run(rig.config(server.ws_url, items=["i01", "i02"], target={"model": "other"}))
        assert (done.result.already_finished, done.result.foreign) == (0, 1)
        assert len(server.connections) == 3

    def test_repeats_are_cells_of_their_own(self, rig: Any, serve: Any, ga: Any) -> None:
        server = serve([*ga.COMMITTED, *ga.called()])
        config = rig.config(server.ws_url, items=["i01"])
        rig.run(config)
        done = rig.run(config | {"repeats": 3})
        assert done.result.already_finished == 1
        assert sorted(c.repeat for c in done.captures) == [0, 1, 2]


class TestFolders:
    def test_not_a_run_folder(self, rig: Any) -> None:
        (rig.folder / "mine").mkdir()
        (rig.folder / "mine" / "thesis.txt").write_text("x")
        with pytest.raises(RunFolderError, match="not empty and not a run folder"):
            rig.run(rig.config("ws://127.0.0.1:1/"), out="mine")
        assert [path.name for path in (rig.folder / "mine").iterdir()] == ["thesis.txt"]

    def test_a_file(self, rig: Any) -> None:
        (rig.folder / "mine").write_text("x")
        with pytest.raises(RunFolderError, match="mine"):
            rig.run(rig.config("ws://127.0.0.1:1/"), out="mine")
        assert (rig.folder / "mine").read_text() == "x"

    def test_below_a_file(self, rig: Any) -> None:
        (rig.folder / "mine").write_text("x")
        with pytest.raises(RunFolderError, match="mine"):
            rig.run(rig.config("ws://127.0.0.1:1/"), out="mine/run")
