"""`rig template` at the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "rig", "template", *words], capture_output=True, text=True, timeout=60)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    lines = [
        '{"type": "started", "session": "s-9"}',
        '{"direction": "sent", "text": "{}"}',
        '{"direction": "received", "json": {"type": "call", "id": "1", "tool": "pay", "args": {"amount": 3}}}',
        '{"direction": "received", "text": "{\\"type\\": \\"done\\"}"}',
    ]
    path.write_text("\n".join(lines))
    return path


def test_a_session_is_told_message_by_message(session: Path) -> None:
    done = rig("try", "plain_json", str(session), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(row["line"], row["rules"]) for row in told["messages"]] == [
        (1, ["0:ready"]),
        (3, ["2:tool_call"]),
        (4, ["6:answer_ended"]),
    ]
    assert told["messages"][1]["events"] == ["ToolCall(name='pay', arguments={'amount': 3})"]
    assert told["missing"] == []
    assert "2:tool_call" in rig("try", "plain_json", str(session)).stdout


def test_a_message_that_no_rule_knows_fails(session: Path) -> None:
    session.write_text('{"type": "strange"}\n')
    done = rig("try", "plain_json", str(session), "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [row["understood"] for row in told["messages"]] == [False]
    assert len(told["missing"]) == 3


def test_a_shipped_template_is_a_start_for_ones_own(session: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text(rig("show", "plain_json").stdout)
    assert rig("try", str(own), str(session)).returncode == 0
    own.write_text(own.read_text().replace("event: ready", "event: redy"))
    broken = rig("try", str(own), str(session))
    assert broken.returncode == 2
    assert broken.stderr.startswith(f"rig: {own}: events[0].event: should be ")


@pytest.mark.parametrize(
    ("text", "line"), [('{"direction": "up"}', "line 1: each line is a message"), (None, "cannot be read")]
)
def test_a_session_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | None, line: str) -> None:
    path = tmp_path / "s.jsonl"
    if text is not None:
        path.write_text(text)
    done = rig("try", "plain_json", str(path))
    assert done.returncode == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1
