"""B25 (resuming from a torn results file) and the lock, at the level of the run folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from captures.capture import Capture
from captures.lock import FolderLockedError
from captures.run_folder import DamagedRunError, RunFolder, RunFolderError, new_run_id
from captures.scrub import MASK, Scrubber

MakeCapture = Callable[..., Capture]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {"version": 1})


def _lines(make_capture: MakeCapture, *names: str) -> list[bytes]:
    return [make_capture(name).model_dump_json().encode() for name in names]


def _identities(folder: RunFolder) -> list[str]:
    return [capture.identity for capture in folder.read_captures()]


def test_layout_and_run_json(tmp_path: Path, key: str) -> None:
    RunFolder.create(tmp_path / "r", {"version": 1, "url": f"ws://h/?t={key}"}, Scrubber([key]))
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["logs", "replies", "run.json", "wire"]
    assert RunFolder.open(tmp_path / "r").run_json == {"version": 1, "url": f"ws://h/?t={MASK}"}
    with pytest.raises(RunFolderError, match="holds a run already"):
        RunFolder.create(tmp_path / "r", {})


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"run\.json is missing"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(RunFolderError, match="not readable as JSON"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(RunFolderError, match="not a JSON object"):
        RunFolder.open(tmp_path)


def test_b25_torn_last_line_is_set_aside_and_said(folder: RunFolder, make_capture: MakeCapture) -> None:
    whole = b"".join(line + b"\n" for line in _lines(make_capture, "i01", "i02", "i03"))
    folder.captures_path.write_bytes(whole + b'{"identity":"i04","sco')
    assert _identities(folder) == ["i01", "i02", "i03"]
    assert folder.captures_path.read_bytes() != whole, "reading changes nothing"
    (note,) = folder.mend()
    assert "captures.jsonl, line 4: torn line of 22 bytes moved to captures.torn-1.txt" in note
    assert folder.captures_path.read_bytes() == whole
    assert (folder.path / "captures.torn-1.txt").read_bytes() == b'{"identity":"i04","sco'
    assert folder.mend() == []


def test_b25_second_torn_line_keeps_the_first(folder: RunFolder) -> None:
    for number in (1, 2):
        folder.captures_path.write_bytes(b'{"torn %d' % number)
        folder.mend()
    assert (folder.path / "captures.torn-1.txt").read_bytes() == b'{"torn 1'
    assert (folder.path / "captures.torn-2.txt").read_bytes() == b'{"torn 2'


def test_b25_every_place_of_tearing(folder: RunFolder, make_capture: MakeCapture) -> None:
    first, second = (line + b"\n" for line in _lines(make_capture, "i01", "i02"))
    for cut in range(len(second) + 1):
        folder.captures_path.write_bytes(first + second[:cut])
        whole = cut >= len(second) - 1
        assert _identities(folder) == (["i01", "i02"] if whole else ["i01"])
        folder.mend()
        assert folder.captures_path.read_bytes() == (first + second if whole else first)


def test_b25_b_missing_newline_is_added(folder: RunFolder, make_capture: MakeCapture) -> None:
    content = b"\n".join(_lines(make_capture, "i01", "i02", "i03"))
    folder.captures_path.write_bytes(content)
    assert _identities(folder) == ["i01", "i02", "i03"]
    (note,) = folder.mend()
    assert "captures.jsonl, line 3: missing newline added" in note
    assert folder.captures_path.read_bytes() == content + b"\n"


@pytest.mark.parametrize("bad", [b'{"identity":"i0', b"{}", b"", b"\0\0\0", b"[1]", b'{"x":' * 5000])
def test_b25_c_damage_in_the_middle_stops_and_overwrites_nothing(
    folder: RunFolder, make_capture: MakeCapture, bad: bytes
) -> None:
    first, third = _lines(make_capture, "i01", "i03")
    content = first + b"\n" + bad + b"\n" + third + b'\n{"torn'
    folder.captures_path.write_bytes(content)
    for attempt in (folder.read_captures, folder.finished, folder.mend):
        with pytest.raises(DamagedRunError, match=r"captures\.jsonl, line 2: "):
            attempt()
    assert folder.captures_path.read_bytes() == content
    assert not list(folder.path.glob("*torn*"))


def test_damage_names_the_field(folder: RunFolder, make_capture: MakeCapture) -> None:
    line = make_capture("i01").model_dump_json().replace('"declined"', '"danced"')
    folder.captures_path.write_text(line + "\n")
    with pytest.raises(DamagedRunError, match=r"line 1: not a capture \(ending: "):
        folder.read_captures()


def test_newer_format_is_said(folder: RunFolder, make_capture: MakeCapture) -> None:
    folder.captures_path.write_text(make_capture("i01").model_dump_json().replace('"format":1', '"format":9') + "\n")
    with pytest.raises(DamagedRunError, match="format 9 of a newer version"):
        folder.read_captures()


def test_b25_d_empty_or_missing_file(folder: RunFolder) -> None:
    assert folder.read_captures() == []
    folder.captures_path.touch()
    assert folder.read_captures() == []
    assert folder.mend() == []
    assert folder.finished() == {}


def test_cells_and_attempts(folder: RunFolder, make_capture: MakeCapture) -> None:
    captures = [
        make_capture("a", attempt=1, finished=False),
        make_capture("b", attempt=1),
        make_capture("a", attempt=2, reply_text="first"),
        make_capture("a", attempt=3, reply_text="second"),
        make_capture("c", finished=False),
    ]
    folder.captures_path.write_text("".join(capture.model_dump_json() + "\n" for capture in captures))
    assert folder.finished().keys() == {"a", "b"}
    assert folder.finished()["a"].reply_text == "first"
    assert [capture.attempt for capture in folder.attempts("a")] == [1, 2, 3]
    assert folder.read_captures() == captures


def test_leftovers_of_a_killed_run_are_deleted(folder: RunFolder) -> None:
    (folder.wire_path / "x.jsonl.zst.tmp").write_bytes(b"half")
    (folder.wire_path / "y.jsonl.zst").write_bytes(b"whole")
    folder.mend()
    assert [path.name for path in folder.wire_path.iterdir()] == ["y.jsonl.zst"]


_HOLDER = """
import sys
from pathlib import Path
from captures.run_folder import RunFolder
with RunFolder.open(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_rig_is_refused_and_told_who_holds_the_folder(folder: RunFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(FolderLockedError, match=f"process {holder.pid} on "), folder.lock():
            pass
        holder.kill()
        holder.wait()
        with folder.lock():
            pass  # the lock died with its holder


def test_where_no_locks_exist_a_file_stands_in(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("captures.lock._try_lock", lambda handle: None)
    refused = pytest.raises(FolderLockedError, match=r"if it is no longer alive, delete .*\.lock\.exclusive")
    with folder.lock(), refused, folder.lock():
        pass
    with folder.lock():
        pass


def test_run_ids_sort_by_time() -> None:
    early = new_run_id(datetime(2026, 11, 30, 23, 15, 0))
    assert early.startswith("20261130-231500-")
    assert len(early) == 20
    assert early < new_run_id(datetime(2026, 11, 30, 23, 15, 1))


def test_a_path_that_cannot_be_a_run_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("x")
    for make in (
        lambda: RunFolder.create(file, {}),
        lambda: RunFolder.create(file / "run", {}),
        lambda: RunFolder.open(file),
    ):
        with pytest.raises(RunFolderError, match="mine"):
            make()
    assert file.read_text() == "x"
