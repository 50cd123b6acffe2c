"""The second turn through every dialect, against an agent that asks first and books once it has been told."""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from adapters.server import Reply, ReplyCall
from captures.capture import Ending
from rig.agents.agent import Earlier
from rig.agents.emulator import ROUTES, base_url, serve

ASK = "ask_clarifying_question"
BOOKED = {"party": 4, "time": "19:30"}
SPEECH = b"\x10\x27\xf0\xd8" * 6_000
"""Half a second, loud, 24 kHz."""
VAD = {"turn_control": {"mode": "server_vad"}}
TARGETS: dict[str, dict[str, Any]] = {
    "cascade": {"settings": {"transcriber": {"model": "w"}}},
    "gemini_live": {"model": "gemini-3.8-live"},
    "vercel_gateway": {"model": "openai/gpt-realtime"},
    "openai_live": {"settings": {"delegate_model": "d"}, **VAD},
    "template_socket": {"settings": {"template": "plain_json"}},
    "nova_sonic": {"model": "amazon.nova-2-sonic-v1:0", "settings": {"stream": "websocket"}, **VAD},
}
TEXTLESS = {"openai_live", "openai_chat", "qwen_omni_realtime"}
NAMES = [name for name in ROUTES if name != "twilio_media"]
"""All but the phone: what it calls is answered by the webhook, and its emulator has no tools."""
STATELESS = {name for name, route in ROUTES.items() if not route.websocket}
"""Each request is a conversation of its own there: the agent is not told what was before."""


class Clarifier:
    """Asks, and books when this turn completes the one before."""

    async def reply(
        self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: Earlier | None = None
    ) -> Reply:
        call = ReplyCall("book_table", BOOKED) if earlier else ReplyCall(ASK, {"question": "When?"})
        return Reply(calls=(call,), input_transcript="words")

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="When would you like to come?", pcm=SPEECH)


@pytest.mark.parametrize("form", ["audio", "text"])
def test_every_dialect_gives_result_and_reply(rig: Any, tmp_path: Path, banks: Any, form: str) -> None:
    item = copy.deepcopy(banks.BOOKING)
    item["followup"] = {"trigger_tools": [ASK], "result": "asked", "reply": "At half past seven."}
    bank = banks.write_bank(tmp_path / "bank", {"noisy": banks.wav(banks.tone(0.5))}, (item,))
    if form == "audio":
        clip = banks.wav(banks.tone(0.4, hz=700))
        sha256 = hashlib.sha256(clip).hexdigest()
        (bank / "audio" / f"{sha256}.wav").write_bytes(clip)
        manifest = bank / "audio" / "manifest.yaml"
        entry = {"item_id": "booking", "variant_id": "noisy", "sha256": sha256, "engine": "test", "turn": 2}
        manifest.write_text(json.dumps([*yaml.safe_load(manifest.read_text()), entry]))
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        targets = []
        for name in NAMES:
            port = stack.enter_context(portal.wrap_async_context_manager(serve(name, Clarifier())))
            target = {"name": name, "adapter": name, "model": "m", "base_url": base_url(name, "127.0.0.1", port)}
            targets.append(target | TARGETS.get(name, {}))
        config = rig.config("") | {"targets": targets, "limits": {"turn_s": 10, "setup_s": 10}}
        done = rig.run(config)
    captures = {capture.target: capture for capture in done.captures}
    problems = []
    for name in NAMES:
        capture = captures[name]
        second = capture.second_turn
        if capture.ending is not Ending.CALLED or [call.name for call in capture.calls] != [ASK] or second is None:
            problems.append(f"{name}: first turn {capture.ending} {capture.error} {capture.calls}")
        elif form == "text" and name in TEXTLESS:
            if "no text turn" not in second.not_played or second.after_result is not None:
                problems.append(f"{name}: a text reply where there is none: {second}")
        elif second.answer is None:
            problems.append(f"{name}: {second.not_played}; {second.after_result}")
        else:
            called = [call.name for call in second.answer.calls]
            if called != ([ASK] if name in STATELESS else ["book_table"]) or second.reply_as != form:
                problems.append(f"{name}: {second.answer.ending} {second.answer.error} {called}")
            if (
                second.after_result is None
                or second.after_result.reply_transcript + second.after_result.reply_text == ""
            ):
                problems.append(f"{name}: after the result {second.after_result}")
    assert not problems, "\n".join(problems)
    assert done.replayed() == []
