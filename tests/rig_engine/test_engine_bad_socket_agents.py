"""Agents of one's own that break the rig socket: what a capture says of each; and B17, B20, B21 over the rig socket."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from captures.capture import Ending

READY = [("expect", "session.setup"), ("send", {"type": "session.ready", "version": 1})]
COMMITTED = [*READY, ("expect", "turn.commit")]
END = ("send", {"type": "turn.end"})


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    return banks.write_bank(tmp_path / "bank")


def measured(rig: Any, serve: Any, *script: Any, **changes: Any) -> Any:
    limits = {"attempts": 1, "turn_s": 0.5}
    return rig.run(rig.config(serve([*script]).ws_url, target={"adapter": "rig_socket"}, limits=limits, **changes))


def warned(capture: Any, code: str) -> list[str]:
    return [warning for warning in capture.warnings if warning.startswith(f"{code}: ")]


def test_text_where_binary_is_due_is_not_heard_and_noted_once(rig: Any, serve: Any) -> None:
    told = {"type": "response.audio.delta", "delta": base64.b64encode(bytes(range(240))).decode()}
    capture = measured(rig, serve, *COMMITTED, ("send", told), ("send", told), END).captures[-1]
    assert (capture.ending, capture.reply_audio) == (Ending.DECLINED, None)
    (warning,) = warned(capture, "audio_as_text")
    assert "response.audio.delta" in warning


def test_unknown_types_and_fields_are_ignored_and_noted(rig: Any, serve: Any) -> None:
    call = {"type": "tool.call", "call_id": "c", "name": "cancel_order", "arguments": {}, "confidence": 0.9, "x_my": 1}
    script = [("send", {"type": "thinking"}), ("send", {"type": "x_own.note"}), ("send", call), END]
    capture = measured(rig, serve, *COMMITTED, *script).captures[-1]
    assert (capture.ending, capture.calls[0].name, capture.calls[0].arguments) == (Ending.CALLED, "cancel_order", {})
    assert len(warned(capture, "unknown_type")) == len(warned(capture, "unknown_field")) == 1
    assert "tool.call has no field confidence; it is ignored" in warned(capture, "unknown_field")[0]


def test_a_tool_that_nobody_offered_is_a_wrong_call(rig: Any, serve: Any) -> None:
    call = {"type": "tool.call", "call_id": "c", "name": "launch_rocket", "arguments": {}}
    done = measured(rig, serve, *COMMITTED, ("send", call), END)
    assert (done.captures[-1].ending, done.captures[-1].calls[0].name) == (Ending.CALLED, "launch_rocket")
    assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == 0


def test_a_rate_outside_the_bounds_refuses_the_target(rig: Any, serve: Any) -> None:
    ready = {"type": "session.ready", "version": 1, "output_rate_hz": 96_000}
    capture = measured(rig, serve, ("expect", "session.setup"), ("send", ready), ("silent",)).captures[-1]
    assert (capture.ending, capture.error.code) == (Ending.CONFIGURATION_ERROR, "bad_output_rate")


def test_an_answer_that_never_ends_is_unfinished_not_declined(rig: Any, serve: Any) -> None:
    text = {"type": "reply.text", "text": "And another thing"}
    capture = measured(rig, serve, *COMMITTED, ("send", text), ("silent",)).captures[-1]
    assert capture.ending is Ending.UNFINISHED
    assert measured_silence(rig, serve).ending is Ending.NO_ANSWER


def measured_silence(rig: Any, serve: Any) -> Any:
    config = rig.config(
        serve([*COMMITTED, ("silent",)]).ws_url, target={"adapter": "rig_socket"}, limits={"turn_s": 0.5}
    )
    return rig.run(config, out="silent").captures[-1]


def test_an_agent_that_dies_is_no_measurement(rig: Any, serve: Any) -> None:
    capture = measured(rig, serve, *COMMITTED, ("send", {"type": "reply.text", "text": "I"}), ("drop",)).captures[-1]
    assert (capture.ending, capture.finished) == (Ending.INFRASTRUCTURE_ERROR, False)
    assert (capture.error.kind, capture.error.code) == ("transient", "closed")


def test_a_repeated_id_counts_once(rig: Any, serve: Any) -> None:
    first = {"type": "tool.call", "call_id": "c", "name": "cancel_order", "arguments": {}}
    script = [("send", first), ("send", {**first, "name": "book_table"}), END]
    capture = measured(rig, serve, *COMMITTED, *script).captures[-1]
    assert [call.name for call in capture.calls] == ["cancel_order"]
    assert len(warned(capture, "repeated_call")) == 1


@pytest.mark.parametrize(("last", "stray"), [(240, False), (241, True)])
def test_b17_pieces_that_cut_a_sample_in_half(rig: Any, serve: Any, last: int, stray: bool) -> None:
    pcm = bytes(index * 7 % 251 for index in range(6001))
    cuts = [pcm[:4063], pcm[4063:5760], pcm[5760 : 5760 + last]]
    capture = measured(rig, serve, *COMMITTED, *[("send", cut) for cut in cuts], END).captures[-1]
    assert capture.ending is Ending.DECLINED
    assert (capture.reply_audio.received_s, capture.reply_audio.stray_bytes) == (3000 / 24_000, int(stray))


B20 = {
    "tool": {"name": "average", "description": "Averages.", "params": [
        {"name": "numbers", "type": "array of number", "required": True},
        {"name": "digits", "type": "integer", "required": True},
    ]},
    "gold": {"tool": "average", "args": {"numbers": [[12.0, 15.0, 18.0]], "digits": [2]}},
}  # fmt: skip
B21 = {
    "tool": {"name": "weather", "description": "The weather.", "params": [
        {"name": "city", "type": "string", "required": True}, {"name": "unit", "type": "string"},
    ]},
    "gold": {"tool": "weather", "args": {"city": ["Oslo"]}, "optional_args": {"unit": ["celsius"]}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "arguments", "right"),
    [
        (B20, {"numbers": [12, 15, 18], "digits": 2}, True),
        (B20, {"numbers": [12, "15", 18], "digits": 2}, False),
        (B20, {"numbers": [12, 15, 18], "digits": 2.5}, False),
        (B20, {"numbers": [15, 12, 18], "digits": 2}, False),
        (B21, {"city": "Oslo", "unit": "celsius"}, True),
        (B21, {"city": "Oslo", "unit": None}, True),
        (B21, {"city": "Oslo", "days": 3}, False),
        (B21, {"unit": "celsius"}, False),
    ],
)
def test_b20_and_b21_arguments_as_objects(
    rig: Any, serve: Any, banks: Any, case: Any, arguments: Any, right: bool
) -> None:
    item = {key: value for key, value in banks.BOOKING.items() if key != "perception_probe"}
    variants = [{"variant_id": "clear", "emotion": "neutral", "gold": case["gold"]}]
    banks.write_bank(rig.folder / "cases", items=({**item, "tools": [case["tool"]], "variants": variants},))
    call = {"type": "tool.call", "call_id": "c", "name": case["tool"]["name"], "arguments": arguments}
    done = measured(rig, serve, *COMMITTED, ("send", call), END, bank="cases")
    assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] == (1 if right else 0)
