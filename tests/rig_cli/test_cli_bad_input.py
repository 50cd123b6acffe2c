"""What cannot be done is told in one line that names the place, ends with code 2, and shows no traceback."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from captures.lock import folder_lock
from rig.cli.failures import explained
from rig.config import ConfigError, load_config


@pytest.fixture
def bank(tmp_path: Path, banks: Any) -> Path:
    made: Path = banks.write_bank(tmp_path / "bank", {"clear": banks.wav(banks.tone(0.1))})
    return made


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"ws://127.0.0.1:{free.getsockname()[1]}/v1/realtime"


class TestRun:
    """`rig run`, before and at the connection."""

    def test_a_config_that_is_not_there(self, cli: Any) -> None:
        assert "none.yaml: cannot be read: No such file" in cli.one_line("run", "none.yaml")

    def test_a_bank_that_is_not_there(self, cli: Any, realtime: Any) -> None:
        done = cli("run", cli.config(targets=[realtime(nobody())]))
        assert done.returncode == 2
        assert all(line.startswith("rig: ") for line in done.stderr.splitlines())
        assert "bank: no such folder" in done.stderr

    def test_an_unknown_key(self, cli: Any, realtime: Any) -> None:
        line = cli.one_line("run", cli.config(concurency=3, targets=[realtime(nobody())]))
        assert line.endswith("config.yaml: concurency: unknown key; did you mean `concurrency`?")

    def test_an_escape_in_a_file_reaches_no_terminal(self, cli: Any) -> None:
        # In this process: without a terminal the escapes would be taken out for that reason alone.
        (cli.folder / "c.yaml").write_text('version: 1\nbank: demo\n"\\e[2J\\e]0;x\\a": 1\n')
        with pytest.raises(ConfigError) as caught:
            load_config(cli.folder / "c.yaml", {})
        assert "\x1b" in str(caught.value)
        lines = explained(caught.value)
        assert lines
        assert all(line.isprintable() for line in lines)

    def test_a_missing_key_variable(self, cli: Any, realtime: Any) -> None:
        line = cli.one_line("run", cli.config(targets=[realtime(nobody(), api_key_env="NO_SUCH_KEY")]))
        assert line.endswith("targets[0] (agent): environment variable NO_SUCH_KEY is not set; export its value")

    @pytest.mark.usefixtures("bank")
    def test_nothing_listens(self, cli: Any, realtime: Any) -> None:
        url = nobody()
        done = cli("run", cli.config(targets=[realtime(url)]), "--out", "run")
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert f"rig: agent: 1 cells not measured: refused: nothing listens at {url}" in done.stderr
        assert "rig: run again with --out run to resume" in done.stderr
        again = cli("report", "run", "--json")
        target = json.loads(again.stdout)["targets"]["agent"]
        assert target["endings"]["infrastructure_error"] == 1
        assert target["credit"]["cue_bearing"] is None

    @pytest.mark.usefixtures("bank")
    def test_an_out_folder_that_is_something_else(self, cli: Any, realtime: Any) -> None:
        config = cli.config(targets=[realtime(nobody())])
        mine = cli.folder / "mine"
        mine.mkdir()
        (mine / "thesis.txt").write_text("years of work")
        line = cli.one_line("run", config, "--out", mine)
        assert line == f"rig: {mine}: is not empty and not a run folder; choose another --out"
        assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
        line = cli.one_line("run", config, "--out", mine / "thesis.txt")
        assert "cannot be used as a run folder" in line


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, cli_in: Any, banks: Any, serving: Any, ga: Any) -> Path:
    """A folder with a config, its bank and its finished run."""
    folder: Path = tmp_path_factory.mktemp("finished")
    banks.write_bank(folder / "bank", {"clear": banks.wav(banks.tone(0.1))})
    with cli_in(folder) as cli, serving([*ga.COMMITTED, *ga.called()]) as server:
        target = {"name": "agent", "adapter": "openai_realtime", "model": "m", "base_url": server.ws_url}
        done = cli("run", cli.config(targets=[target]), "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder


class TestRunFolder:
    """A folder with a run in it that cannot be gone on with. Each test has a copy of one finished run."""

    @pytest.fixture(autouse=True)
    def copied(self, cli: Any, finished: Path) -> None:
        shutil.copytree(finished, cli.folder, dirs_exist_ok=True)

    def test_another_rig_writes_it(self, cli: Any) -> None:
        with folder_lock(cli.folder / "run" / ".lock"):
            done = cli("run", "config.yaml", "--out", "run")
            assert done.returncode == 2
            assert done.stderr.splitlines()[-1].startswith("rig: run: another rig writes this run (process ")
            assert "Traceback" not in done.stderr
            assert cli("report", "run").returncode == 0, "reading needs no lock"

    @pytest.mark.parametrize("command", [("run", "config.yaml", "--out", "run"), ("report", "run")])
    def test_damage_is_named_by_file_and_line(self, cli: Any, command: tuple[str, ...]) -> None:
        captures = cli.folder / "run" / "captures.jsonl"
        line = captures.read_bytes()
        damaged = line + line[:50] + b"\n" + line
        captures.write_bytes(damaged)
        assert cli.one_line(*command).startswith("rig: run/captures.jsonl, line 2: damaged (")
        assert captures.read_bytes() == damaged

    def test_run_json_that_is_none(self, cli: Any) -> None:
        (cli.folder / "run" / "run.json").write_text("{")
        line = cli.one_line("run", "config.yaml", "--out", "run")
        assert line.startswith("rig: run/run.json: not readable as JSON")


class TestOtherCommands:
    def test_report_of_no_run(self, cli: Any) -> None:
        assert cli.one_line("report", "nowhere") == "rig: nowhere: no run here (run.json is missing)"

    @pytest.mark.parametrize("command", [("report", "run"), ("compare", "a", "b"), ("leaderboard", "a"), ("floors",)])
    def test_two_formats_at_once(self, cli: Any, command: tuple[str, ...]) -> None:
        for formats in (("--json", "--markdown"), ("--markdown", "--json")):
            done = cli(*command, *formats)
            assert (done.returncode, done.stdout) == (2, "")
            assert "--json and --markdown are two formats; give one of them" in done.stderr

    def test_a_report_of_what_is_no_folder(self, cli: Any) -> None:
        assert cli.one_line("report", "/dev/null") == "rig: /dev/null: no run here (run.json is missing)"

    def test_import_into_what_is_no_folder(self, cli: Any, banks: Any) -> None:
        bank = banks.write_bank(cli.folder / "bank")
        record = {"item": "booking", "variant": "clear", "cond": "audio", "calls": [], "text": ""}
        (cli.folder / "records.jsonl").write_text(json.dumps(record) + "\n")
        for out in ("records.jsonl", "records.jsonl/run"):
            line = cli.one_line("import", "records.jsonl", "--bank", bank, "--name", "x", "--out", out)
            assert line.startswith(f"rig: {out}: cannot be made a run folder (")

    def test_import_of_what_is_no_record(self, cli: Any) -> None:
        (cli.folder / "records.jsonl").write_text('{"item": "booking"}\n[1]\nnot json\n')
        done = cli("import", "records.jsonl", "--bank", "demo", "--name", "x", "--out", "run")
        assert done.returncode == 2
        lines = done.stderr.splitlines()
        assert all(line.startswith("rig: ") for line in lines)
        assert "rig: records.jsonl, line 1: variant: Field required" in lines
        assert any(line.startswith("rig: records.jsonl, line 2: ") for line in lines)
        assert lines[-1].startswith("rig: records.jsonl, line 3: not JSON (")
        assert not (cli.folder / "run").exists()

    def test_import_of_nothing(self, cli: Any, bank: Path) -> None:
        line = cli.one_line("import", "none.jsonl", "--bank", bank, "--name", "x", "--out", "run")
        assert "none.jsonl" in line

    def test_import_for_a_role_that_is_none(self, cli: Any, bank: Path) -> None:
        (cli.folder / "r.jsonl").write_text("{}\n")
        line = cli.one_line("import", "r.jsonl", "--bank", bank, "--name", "x", "--role", "king", "--out", "run")
        assert "king" in line

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("klingon",), "no dialect 'klingon' to emulate; there are openai_realtime, "),
            (("rig-socket", "--fault", "gremlins"), "gremlins"),
        ],
    )
    def test_what_cannot_be_emulated(self, cli: Any, arguments: tuple[str, ...], said: str) -> None:
        assert said in cli.one_line("emulate", *arguments, "--port", 0)

    def test_a_port_that_is_taken(self, cli: Any) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            line = cli.one_line("emulate", "rig-socket", "--port", taken.getsockname()[1])
        assert "cannot listen on 127.0.0.1:" in line
        assert line.endswith("try another --port")

    def test_lint_of_no_bank(self, cli: Any) -> None:
        done = cli("bank", "lint", "nowhere")
        assert done.returncode == 2
        assert all(line.startswith("rig: ") for line in done.stderr.splitlines())
        assert "nowhere: no such folder" in done.stderr

    def test_lint_of_a_bank_with_an_error_ends_with_1(self, cli: Any, banks: Any) -> None:
        """A check that failed, told apart from what could not be done."""
        bank = banks.write_bank(cli.folder / "bank", items=(banks.BOOKING | {"transcript": "Hello."},))
        done = cli("bank", "lint", bank, "--json")
        assert done.returncode == 1, done.stderr
        assert any(problem["level"] == "error" for problem in json.loads(done.stdout)["problems"])

    def test_lint_goes_on_past_a_broken_file(self, cli: Any, banks: Any) -> None:
        bank = banks.write_bank(cli.folder / "bank", items=(banks.BOOKING | {"transcript": "Hello."},))
        (bank / "broken.yaml").write_text("id: [")
        done = cli("bank", "lint", bank)
        assert done.returncode == 1, done.stderr
        assert "error: broken.yaml: " in done.stdout
        assert done.stdout.count("error: ") > 1
        assert done.stdout.splitlines()[-1].endswith("not checked together with the others: broken.yaml")
