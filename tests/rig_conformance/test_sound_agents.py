"""Agents that keep the contract pass; what could not be judged is not called passed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rig.conformance.findings import Verdict
from rig.conformance.run import CHECKS, ConformanceError, chosen_checks
from rig.conformance.scenes import SCENES


def verdicts(report: Any) -> dict[str, Verdict]:
    return {result.name: result.verdict for result in report.results}


def test_a_sound_agent_passes_every_check(hold: Any, scripted: Any) -> None:
    report = hold(scripted)
    assert [(r.name, r.findings, r.note) for r in report.results if r.verdict is not Verdict.PASSED] == []
    assert (report.agent, report.count(Verdict.PASSED)) == ("scripted", len(CHECKS))
    assert "token" not in report.address


def test_an_agent_that_never_calls_proves_nothing_about_calls(hold: Any, scripted: Any) -> None:
    class Talks(scripted):  # type: ignore[misc]
        async def call(self, name: str) -> None:
            await self.text()

        def speech(self) -> bytes:
            return b""

    found = verdicts(hold(Talks))
    unseen = {name for name, verdict in found.items() if verdict is Verdict.NOT_SEEN}
    assert unseen == {
        "tool-result", "tool-names", "tool-ids", "tool-arguments", "tool-schema",
        "whole-samples", "pcm16", "audio-rate",
    }  # fmt: skip
    assert Verdict.FAILED not in found.values()


def test_an_agent_with_tools_of_its_own_is_sent_none_and_not_judged_by_ours(hold: Any, scripted: Any) -> None:
    class Own(scripted):  # type: ignore[misc]
        async def on_setup(self, message: Any) -> None:
            if message["instructions"] or message["tools"]:
                await self.say("error", kind="configuration", code="own", message="I have my own")
            else:
                await super().on_setup(message)

        async def text(self) -> None:
            await self.call("transfer")

        async def on_result(self, message: Any) -> None:
            await self.end()

    found = verdicts(hold(Own, takes_setup=False, tools=["transfer"]))
    assert {name for name, verdict in found.items() if verdict is Verdict.NOT_SEEN} == {
        "tool-names", "tool-schema", "no-tools",
    }  # fmt: skip
    assert Verdict.FAILED not in found.values()


def test_a_full_duplex_agent_ends_by_silence(hold: Any, scripted: Any) -> None:
    """Its audio never pauses, it has no turn events and takes no words; silence of the caller makes it speak."""

    class Duplex(scripted):  # type: ignore[misc]
        async def on_audio(self, pcm: bytes) -> None:
            await self.ws.send_bytes(bytes(960))
            if any(pcm):
                self.heard += pcm
            elif self.heard:
                self.heard = b""
                await self.speak()

        async def on_text(self, message: Any) -> None:
            raise AssertionError("it takes no words")

        async def end(self) -> None:
            raise AssertionError("it has no turn events")

    report = hold(Duplex, mode="server_vad", end_silence_s=0.3, continuous_audio=True, text_turns=False)
    found = verdicts(report)
    assert Verdict.FAILED not in found.values(), [r for r in report.results if r.verdict is Verdict.FAILED]
    assert found["ends-speech"] is Verdict.PASSED
    assert {"ends-text", "empty-turn", "cancel", "one-end"} <= {n for n, v in found.items() if v is Verdict.NOT_SEEN}


def test_the_page_lists_the_checks(repo_dir: Path) -> None:
    page = (repo_dir / "docs" / "bring-your-own-agent.md").read_text()
    table = page.partition("| about | checks |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`([a-z0-9-]+)`", table)) == sorted(check.name for check in CHECKS)
    assert f"judges {len(CHECKS)} rules" in page
    assert len(SCENES) == 12
    assert "holds twelve short conversations" in page


def test_an_unknown_check_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConformanceError, match=r"no check 'tempo'; there are ready, "):
        chosen_checks(["tempo"])
    assert [check.name for check in chosen_checks(["json", "ready"])] == ["ready", "json"]
