"""A table of the user's own calls becomes a bank: recorded or spoken, checked by row, run, and scored."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.bank.from_csv import read_items
from rig.bank.lint import lint
from rig.bank.loader import load_bank
from rig.bank.models import Bank
from rig.bank.own_tools import BankImportError, read_tools

SAID = {"prefix": "calls", "scenario": "A line.", "voice": "flite:slt"}
LONGEST_S = 120.0


def _table(folder: Path, *rows: str, header: str = "utterance,tool,arguments,wav,id,variant,emotion") -> Path:
    path = folder / "calls.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def _rig(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rig", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S)


def _problems(path: Path, tools: list[dict[str, Any]] | None = None) -> tuple[str, ...]:
    with pytest.raises(BankImportError) as raised:
        read_items(path, tools, **SAID)
    return raised.value.problems


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """Two clips of the demo bank as a user's own recordings: one at 48 kHz, in stereo; one FLAC as it is."""
    bank = load_bank("demo")
    item = bank.item("demo-museum-01")
    paths = [bank.clip_path(entry) for variant in item.variants if (entry := bank.clip(item, variant))]
    samples, rate_hz = soundfile.read(paths[0])
    doubled = np.repeat(samples, 2)
    soundfile.write(tmp_path / "calm.wav", np.stack((doubled, doubled), axis=1), rate_hz * 2, subtype="PCM_24")
    (tmp_path / "child.flac").write_bytes(Path(str(paths[1])).read_bytes())
    return tmp_path


def test_recordings_become_a_bank_that_passes_the_lint_and_runs(recordings: Path) -> None:
    words = "Please sign me up for the robot club in June. My name is Jordan."
    _table(
        recordings,
        f'{words},sign_up,"{{""month"": [""june"", ""June""], ""seats"": 1}}",calm.wav,club-01,calm,',
        f"{words},fetch_parent,,child.flac,club-01,child,childlike",
        f"{words},none,,calm.wav,,,",
    )
    done = _rig(recordings, "bank", "import", "calls.csv", "--out", "bank")
    assert done.returncode == 0, done.stderr
    assert "bank: 2 items, 3 clips from recordings, 0 rendered, 0 failed" in done.stdout
    assert "row 2: calm.wav: 2 channels averaged to one" in done.stderr
    bank = load_bank(recordings / "bank")
    assert [problem for problem in lint(bank) if problem.level == "error"] == []
    item = bank.item("club-01")
    calm, child = item.variants
    assert calm.gold.args == {"month": ("june", "June"), "seats": (1,)}
    assert (calm.is_neutral, child.is_neutral) == (True, False)
    assert {tool.name: [param.type for param in tool.params] for tool in item.tools} == {
        "sign_up": ["string", "integer"],
        "fetch_parent": [],
    }
    assert bank.item("calls-0003").variants[0].gold.tool is None
    clip = bank.clip(item, calm)
    assert clip is not None
    path = bank.clip_path(clip)
    assert path is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == clip.sha256
    info = soundfile.info(path)
    assert (info.samplerate, info.channels) == (24_000, 1)
    assert clip.speech_end_s == pytest.approx(4.3, abs=0.4)

    (recordings / "agent.py").write_text(
        'class Agent:\n    def respond(self, turn):\n        return {"calls": [{"name": "sign_up", '
        '"arguments": {"month": "june", "seats": 1}}]}\n'
    )
    target = {"name": "mine", "adapter": "python_agent", "settings": {"driver": "agent.py:Agent"}}
    config = {"version": 1, "bank": "bank", "pace": 10, "conditions": ["audio"], "targets": [target]}
    (recordings / "config.yaml").write_text(yaml.safe_dump(config))
    run = _rig(recordings, "run", "config.yaml", "--out", "run", "--json")
    assert run.returncode == 0, run.stderr
    credit = json.loads(run.stdout)["targets"]["mine"]["credit"]
    assert (credit["neutral"]["mean"], credit["neutral"]["n"]) == (0.5, 2)
    assert credit["cue_bearing"]["mean"] == 0.0


def test_rows_without_a_recording_are_spoken(tmp_path: Path) -> None:
    _table(tmp_path, "I would like to cancel my reservation please.,cancel_reservation,,,cancel-01,calm,")
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--out", "bank", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["items"], told["rendered"], told["failures"]) == (1, 1, [])
    assert _rig(tmp_path, "bank", "lint", "bank").returncode == 0
    assert soundfile.info(next((tmp_path / "bank" / "audio").glob("*.flac"))).duration > 1


def test_recordings_need_no_renderer(recordings: Path) -> None:
    _table(recordings, "Please sign me up.,sign_up,,calm.wav,a,,")
    absent = "av", "jiwer", "pyworld", "samplerate", "hibari"
    block = f"import sys; sys.modules.update(dict.fromkeys({absent}))"
    command = f"{block}; from rig.cli.main import run_cli; run_cli()"
    done = subprocess.run(
        [sys.executable, "-c", command, "bank", "import", "calls.csv", "--out", "bank"],
        cwd=recordings, capture_output=True, text=True, timeout=LONGEST_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 clips from recordings" in done.stdout


def test_speech_can_wait(tmp_path: Path) -> None:
    _table(tmp_path, "Please cancel it.,cancel,,,a-01,calm,", "Please cancel it.,help,,,a-01,sad,tearful")
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--out", "bank", "--no-render", "--voice", "hibari@0.80")
    assert done.returncode == 0, done.stderr
    recipes = yaml.safe_load((tmp_path / "bank" / "recipes.yaml").read_text())
    assert recipes["items"]["a-01"]["voice"] == "hibari@0.80"
    assert not list((tmp_path / "bank" / "audio").iterdir())


def test_every_wrong_row_is_named(tmp_path: Path) -> None:
    path = _table(
        tmp_path,
        ",cancel,,,,,",
        "Hello there.,,,,,,",
        "Hello there.,no such tool!,,,,,",
        'Hello there.,cancel,"{""seats"": }",,,,',
        "Hello there.,cancel,[1],,,,",
        'Hello there.,none,"{""a"": 1}",,,,',
        "Hello there.,cancel,,,,,joyous",
        "Hello there.,cancel,,,bank,,",
        "Hello there.,cancel,,,same,one,",
        "Hello you.,cancel,,,same,two,",
        "Hello there.,cancel,,,../up,,",
        "a,b,c,d,e,f,g,h",
        "Hello\x07.,cancel,,,,,",
        'Hello.,cancel,"{""a"": NaN}",,,,',
    )
    told = "\n".join(_problems(path))
    for said in (
        "row 2: utterance is empty",
        "row 3: tool is empty",
        "row 4: variants.0.gold.tool",
        'row 5: arguments: Expecting value at character 11; write JSON like {"seats": 2}',
        "row 6: arguments: must be a JSON object",
        "row 7: arguments are given although the tool is none",
        "row 8: ",
        "row 9: id 'bank' is the name of another file of a bank",
        "row 11: utterance differs from that of row 10, of the same item same",
        "row 12: id: ",
        "row 13: 8 cells, the header has 7: quote cells with ','",
        "row 14: utterance holds characters that are not text",
        "row 15: arguments: NaN is no JSON value",
    ):
        assert said in told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "column 'utterance' is missing"),
        (b"utterance,tool\n", "no rows under the header"),
        (b"utterance,tool,colour\nx,y,z\n", "column 'colour' is unknown"),
        (b"utterance,tool,tool\nx,y,z\n", "column 'tool' stands there 2 times"),
        (b"utterance,tool\n\xff\xfe,y\n", "line 2 is not UTF-8"),
        (b'utterance,tool\n"open,y\n', "line 2: unexpected end of data"),
        (b"utterance,tool,arguments\n" + b"x,y," + b"[" * 100_000 + b"\n", "arguments is longer than 2000"),
    ],
)
def test_a_table_that_is_none_is_told(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "calls.csv"
    path.write_bytes(content)
    assert any(said in problem for problem in _problems(path))


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), row=st.text(max_size=80))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, row: str) -> None:
    path = tmp_path_factory.mktemp("any") / "calls.csv"
    path.write_bytes(b"utterance,tool,arguments\n" + data + b"\n" + row.encode("utf-8", "replace"))
    items, told = [], ""
    try:
        items, _ = read_items(path, None, **SAID)
    except BankImportError as error:
        told = str(error)
    assert bool(items) is not bool(told)


def test_semicolons_and_a_byte_order_mark_as_spreadsheets_write_them(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    path.write_text('\ufeffUtterance;Tool;Arguments\nHello, you.;greet;"{""loud"": true}"\n\n', encoding="utf-8")
    (own,), notes = read_items(path, None, **SAID)
    assert own.item.transcript == "Hello, you."
    assert own.item.tools[0].params[0].type == "boolean"
    assert notes == []


def test_one_action_on_all_variants_is_a_control(tmp_path: Path) -> None:
    path = _table(tmp_path, "Stop it.,stop,,,a,calm,", "Stop it.,stop,,,a,angry,anger")
    (own,), notes = read_items(path, None, **SAID)
    assert own.item.is_control
    assert notes == [
        "rows 2, 3: the right action is the same on all variants, so a is an invariant control, out of every headline"
    ]


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "book",
            "description": "Book seats.",
            "parameters": {
                "type": "object",
                "properties": {
                    "seats": {"type": ["integer", "null"], "description": "How many."},
                    "days": {"type": "array", "items": {"type": "string"}},
                    "class": {"type": "string", "enum": ["first", "second"]},
                },
                "required": ["seats"],
            },
        },
    },
    {"name": "help"},
]


def test_tool_definitions_are_the_menu(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    tools = read_tools(tmp_path / "tools.json")
    path = _table(tmp_path, 'Two please.,book,"{""seats"": 2, ""days"": [""monday"", ""friday""]}",,a,,')
    (own,), _ = read_items(path, tools, **SAID)
    assert own.item.variants[0].gold.args == {"seats": (2,), "days": (["monday", "friday"],)}
    assert [tool.name for tool in own.item.tools] == ["book", "help"]
    schema = own.item.tools[0].json_schema()
    assert schema["required"] == ["seats"]
    assert schema["properties"]["class"]["enum"] == ["first", "second"]
    bank = Bank(tmp_path, load_bank("demo").info.model_copy(update={"origin": "imported"}), (own.item,))
    assert [problem for problem in lint(bank) if problem.level == "error"] == []


def test_a_call_that_no_tool_could_take_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    _table(
        tmp_path,
        'Two please.,book,"{""seats"": ""two""}",,a,,',
        'Two please.,book,"{""seats"": 2, ""class"": ""third""}",,b,,',
        "Two please.,fly,,,c,,",
    )
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--tools", "tools.json", "--out", "bank", "--no-render")
    assert done.returncode == 2
    assert done.stderr == "rig: calls.csv: row 4: tool 'fly' is not among the tools: book, help\n"
    _table(
        tmp_path,
        'Two please.,book,"{""seats"": ""two""}",,a,,',
        'Two please.,book,"{""seats"": 2, ""class"": ""third""}",,b,,',
    )
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--tools", "tools.json", "--out", "bank", "--no-render")
    assert done.returncode == 2
    assert 'row 2: variants[0].gold.args.seats[0]: "two" is not of type integer' in done.stderr
    assert 'row 3: variants[0].gold.args.class[0]: "third" is not in the parameter\'s enum' in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.csv", "tools.json"]


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "must be a list of 1 to 128 tools"),
        ("[3]", "[0]: is no tool"),
        ('[{"name": "a"}, {"name": "a"}]', "'a' is defined twice"),
        ('[{"name": "a b"}]', "[0].name"),
        ('[{"name": "a", "parameters": {"properties": {"x": {"type": "date"}}}}]', "x: type must be one of"),
    ],
)
def test_tool_definitions_that_are_none_are_told(tmp_path: Path, tools: str, said: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(tools)
    with pytest.raises(BankImportError) as raised:
        read_tools(path)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("wav", "said"),
    [
        ("absent.wav", "row 2: clip cannot be read (No such file or directory)"),
        ("text.wav", "row 2: unreadable audio"),
        ("silent.wav", "row 2: the recording is silent"),
    ],
)
def test_recordings_that_cannot_be_used_are_named_and_nothing_is_written(tmp_path: Path, wav: str, said: str) -> None:
    (tmp_path / "text.wav").write_text("no audio at all")
    soundfile.write(tmp_path / "silent.wav", np.zeros(24_000), 24_000)
    _table(tmp_path, f"Hello there.,greet,,{wav},,,")
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--out", "bank")
    assert done.returncode == 2
    assert said in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls.csv", "silent.wav", "text.wav"]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "mine.txt").write_text("mine")
    _table(tmp_path, "Hello there.,greet,,,,,")
    done = _rig(tmp_path, "bank", "import", "calls.csv", "--out", "bank", "--no-render")
    assert (done.returncode, done.stderr) == (2, "rig: bank: is there already: name another folder\n")
