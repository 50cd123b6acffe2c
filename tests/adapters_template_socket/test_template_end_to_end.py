"""Every shipped template against the emulator of its agent, which was written without it: real audio over loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from adapters.template_socket.emulated.voice import agent_name
from rig.bank.loader import load_bank
from rig.prompts.templates import instructions

ITEM = "demo-betting-01"


def test_all_templates_measure_the_same_agent_alike(address: str, tmp_path: Path) -> None:
    bank = load_bank("demo")
    item = next(item for item in bank.items if item.id == ITEM)
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.json_schema()}
        for tool in bank.menu(item)
    ]
    agent = agent_name(instructions(item.scenario, item.explicit_policy), tools)
    names = [tool["name"] for tool in tools]
    own: dict[str, Any] = {"tools": names}
    detected = {"turn_control": {"mode": "server_vad"}, "adapter": "template_socket"}
    targets = [
        {
            "name": "elevenlabs",
            "base_url": address,
            "settings": {"template": "elevenlabs_agents", "values": {"agent_id": agent}} | own,
        },
        {"name": "deepgram", "base_url": address, "settings": {"template": "deepgram_voice_agent"}},
        {
            "name": "ultravox",
            "base_url": f"{address}/ultravox?call={agent}",
            "settings": {"template": "ultravox"} | own,
        },
        {
            "name": "pipecat",
            "base_url": f"{address}/ws?bot={agent}",
            "settings": {"template": "pipecat_websocket"} | own,
        },
    ]
    config = {
        "version": 1,
        "bank": "demo",
        "items": [ITEM],
        "conditions": ["audio", "text_twin"],
        "concurrency": 8,
        "targets": [target | detected for target in targets],
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "rig", "run", str(path), "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    captures = [json.loads(line) for line in (tmp_path / "run" / "captures.jsonl").read_text().splitlines()]
    acted: dict[str, dict[str, Any]] = {target["name"]: {} for target in targets}
    for capture in captures:
        first = capture["calls"][0] if capture["calls"] else {}
        cell = f"{capture['variant_id']}:{capture['condition']}"
        acted[capture["target"]][cell] = (capture["ending"], first.get("name"), first.get("arguments"))
    assert acted["elevenlabs"] == acted["deepgram"] == acted["ultravox"] == acted["pipecat"], acted
    assert {name for _, name, _ in acted["deepgram"].values()} == {"log_limit_increase", "begin_wellbeing_talk"}
    for name, target in report["targets"].items():
        errors = {kind: n for kind, n in target["endings"].items() if n and kind not in ("called", "declined")}
        assert not errors, f"{name}: {errors}"
    # No message was strange to its template.
    assert not [warning for capture in captures for warning in capture["warnings"] if "unreadable" in warning]
    replayed = subprocess.run(
        [sys.executable, "-m", "rig", "replay", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
