"""schema.json is the contract: every message of both our halves is in it, and nothing that the docs do not name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Setup, TargetSettings, ToolSpec, TurnControlSettings, TurnMode
from adapters.rig_socket import wire
from adapters.rig_socket.client import RigSocketClient
from adapters.rig_socket.server import RigSocketServer
from adapters.rig_socket.wire import FromAgent, FromRig
from adapters.server import Reply, ReplyCall
from captures.events import Refused, SessionReady, Unrecognised, Warned
from captures.frames import InFrame, OutFrame

SCHEMA = json.loads(wire.SCHEMA_PATH.read_text())
TOOL = ToolSpec("refund", "Gives money back.", {"type": "object", "properties": {}})
EVERY_AGENT_MESSAGE = [
    {"type": "session.ready", "version": 1, "agent": "mine", "output_rate_hz": 8000},
    {"type": "tool.call", "call_id": "a", "name": "refund", "arguments": {"euros": 5}},
    {"type": "reply.text", "text": "No."},
    {"type": "reply.transcript", "text": "No."},
    {"type": "turn.end", "reason": "cancelled", "detail": "as asked"},
    {"type": "error", "kind": "rate_limit", "code": "busy", "message": "later", "where": "model", "retry_after_s": 2.5},
    {"type": "input.transcript", "text": "Hello"},
    {"type": "speech.started", "audio_ms": 0},
    {"type": "speech.stopped", "audio_ms": 900},
    {"type": "interrupted"},
    {"type": "usage", "counts": {"tokens": 12}},
]


def fits(side: str, message: Any) -> bool:
    whole = {"$ref": f"#/$defs/{side}", "$defs": SCHEMA["$defs"]}
    return bool(jsonschema.Draft202012Validator(whole).is_valid(message))


def texts(frames: Any) -> list[Any]:
    return [json.loads(frame.payload) for frame in frames if not frame.binary]


def test_the_schema_is_valid_and_holds_exactly_the_wire_s_messages() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for side, names in (("from_rig", FromRig), ("from_agent", FromAgent)):
        assert {ref["$ref"].rpartition("/")[2] for ref in SCHEMA["$defs"][side]["oneOf"]} == set(names)


@settings(max_examples=25)
@given(
    st.text(max_size=30),
    st.lists(st.text(min_size=1, max_size=9), max_size=3),
    st.sampled_from(wire.INPUT_RATES_HZ),
    st.sampled_from([TurnMode.MANUAL, TurnMode.SERVER_VAD]),
)
def test_all_that_the_rig_sends_fits(words: str, names: list[str], rate_hz: int, mode: TurnMode) -> None:
    half = RigSocketClient(TargetSettings("", "ws://h"))
    setup = Setup(words, tuple(ToolSpec(n, words, {}) for n in names), rate_hz, TurnControlSettings(mode, {"ms": 5}))
    frames: list[OutFrame] = [
        *half.open(setup), *half.start_turn(), *half.commit_turn(), *half.text(words), *half.tool_result("c", words),
        *half.cancel(), *half.truncate(250), *half.close(),
    ]  # fmt: skip
    sent = texts(frames)
    assert {message["type"] for message in sent} == set(FromRig)
    assert all(fits("from_rig", message) for message in sent)
    assert not any(fits("from_agent", message) for message in sent)


def test_all_that_our_agent_half_sends_fits() -> None:
    server = RigSocketServer()
    opening = server.receive(InFrame(wire.setup_message(Setup("", (TOOL,), 24000)).payload, False, 0))
    reply = Reply(
        text="Yes", pcm=b"\x00\x01" * 100, rate_hz=24000, calls=(ReplyCall("refund", {"euros": 5}),),
        usage={"words": 1}, input_transcript="Hello",
    )  # fmt: skip
    refusals = [
        RigSocketServer().receive(InFrame(payload, False, 0)).frames
        for payload in (b"{}", b'{"type": "session.setup", "version": 9}', b'{"type": "session.setup", "version": 1}')
    ]
    frames = [*opening.frames, *server.answer(reply), *server.failure("x", "y"), *(f for r in refusals for f in r)]
    sent = texts(frames)
    assert {"session.ready", "tool.call", "reply.transcript", "turn.end", "usage", "error"} <= {m["type"] for m in sent}
    assert [message for message in sent if not fits("from_agent", message)] == []


@pytest.mark.parametrize("message", EVERY_AGENT_MESSAGE, ids=lambda message: message["type"])
def test_what_the_schema_takes_the_client_reads(message: dict[str, Any]) -> None:
    assert fits("from_agent", message)
    assert fits("from_agent", {**message, "x_mine": [1]})
    assert not fits("from_agent", {**message, "mine": [1]})
    half = RigSocketClient(TargetSettings("", "ws://h"))
    events, _ = half.receive(InFrame(json.dumps(message).encode(), False, 0))
    assert events
    assert not any(isinstance(event, Unrecognised | Warned) for event in events)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "session.ready"},
        {"type": "session.ready", "version": 1, "output_rate_hz": 96000},
        {"type": "tool.call", "call_id": "", "name": "a", "arguments": {}},
        {"type": "tool.call", "call_id": "a", "name": "a", "arguments": "{}"},
        {"type": "reply.text", "text": None},
        {"type": "turn.end", "reason": "bored"},
        {"type": "error", "code": "a", "message": "b", "kind": "strange"},
        {"type": "turn.commit"},
    ],
)
def test_what_no_agent_may_send(message: dict[str, Any]) -> None:
    assert not fits("from_agent", message)


def test_versions_neither_side_guesses() -> None:
    """An unknown version is refused on either side, before any audio, and both say what they speak."""
    half = RigSocketClient(TargetSettings("", "ws://h"))
    (event,) = half.receive(InFrame(b'{"type": "session.ready", "version": 2}', False, 0))[0]
    assert isinstance(event, Refused)
    assert (event.code, event.message) == (
        "version_mismatch",
        "session.ready states version 2, the rig speaks rig socket version 1",
    )
    newer = {**wire.setup_fields(Setup("", (), 24000)), "type": "session.setup", "version": 2}
    for versions, expected in (([2, 1], SessionReady), ([2, 3], Refused)):
        step = RigSocketServer().receive(InFrame(json.dumps({**newer, "versions": versions}).encode(), False, 0))
        (event,) = RigSocketClient(TargetSettings("", "ws://h")).receive(InFrame(step.frames[0].payload, False, 0))[0]
        assert isinstance(event, expected)
        assert (step.close == (4400, "version_mismatch")) == (expected is Refused)
        if expected is Refused:
            assert texts(step.frames)[0]["versions"] == [1]


def test_the_page_names_every_message_and_field(repo_dir: Path) -> None:
    page = (repo_dir / "docs" / "bring-your-own-agent.md").read_text()
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)\??`", page))
    for kind in (*FromRig, *FromAgent):
        fields = set(SCHEMA["$defs"][kind]["properties"]) - {"type"}
        assert kind.value in named
        assert fields <= named, f"{kind.value}: {fields - named}"
