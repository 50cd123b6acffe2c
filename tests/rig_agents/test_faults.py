"""Faults as users write them, what a session draws from them, and answers made wrong."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import aiohttp
import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import registry
from adapters.dialect import Setup, ToolSpec
from adapters.openai_family.misbehaviour import ANSWER_FAULTS
from adapters.server import Reply, ReplyCall
from captures.frames import OutFrame
from rig.agents.emulator import ROUTES
from rig.agents.faults import KINDS, MAX_WAIT_S, NO_FAULTS, Cut, FaultError, SessionFaults, Wait, check, parse
from rig.agents.faults_answer import faulty_frames, faulty_replies
from rig.agents.fleet import fleet
from rig.agents.send_stamps import kind_of
from rig.config import ConfigError, parse_config

SPEECH = Reply(text="One moment.", pcm=b"\x01\x02" * 100, rate_hz=24_000)
SETUP = Setup("", (ToolSpec("book", "", {}), ToolSpec("cancel", "", {})), 24_000)
CALL = Reply(calls=(ReplyCall("book", {"party": 4}),))


def only(*texts: str) -> SessionFaults:
    return parse(texts).for_session(1)


class TestGrammar:
    def test_values(self) -> None:
        assert only("close=1011:a: b").cut_before_done == Cut(1011, "a: b")
        assert only("close=1008:mail me@example.org").cut_before_done == Cut(1008, "mail me@example.org")
        assert only("drop").cut_before_done == Cut()
        assert only("close-on-connect=4000").cut_on_connect == Cut(4000, "")
        assert only("delay=lognormal:0.5:0.3").delay == Wait("lognormal", 0.5, 0.3)
        assert only("no-ack").ack_delay_s == math.inf
        assert only("big-frame").big_frame_bytes == 1_500_000
        assert only("failed=x").failed is not None
        assert only() == NO_FAULTS

    def test_faults_of_dialects_combine(self) -> None:
        faults = only("cut-arguments", "interleaved-calls", "mute")
        assert faults.answer_faults == ("cut-arguments", "interleaved-calls")
        assert faults.second_call
        assert faults.mute

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("delai=1", "there are acts"),
            ("delay", "write delay=SECONDS"),
            ("delay=nan", "from 0 to 600"),
            ("delay=-1", "from 0 to 600"),
            ("delay=uniform:2:1", "above the second"),
            ("delay=lognormal:1:11", "at most 10"),
            ("delay=exponential:0", "from 0.001"),
            ("http=200", "400 to 599"),
            ("http=429:x:soon", "whole seconds"),
            ("close=1006", "may hold"),
            ("close", "may hold"),
            ("drop=1", "takes no value"),
            ("drop@1.5", "between 0 and 1"),
            ("big-frame=99999999999", "bytes must be"),
            ("seed=x", "whole number"),
            ("", "no fault ''"),
        ],
    )
    def test_what_does_not_fit_is_told_in_one_line(self, text: str, words: str) -> None:
        with pytest.raises(FaultError, match=words) as caught:
            parse([text])
        assert "\n" not in str(caught.value)

    def test_contradictions(self) -> None:
        with pytest.raises(FaultError, match="exclude each other"):
            parse(["drop", "close=1011"])
        with pytest.raises(FaultError, match="twice"):
            parse(["delay=1", "delay=2"])

    @given(st.text(max_size=40) | st.builds("{}={}".format, st.sampled_from(sorted(KINDS)), st.text(max_size=20)))
    @settings(max_examples=200, deadline=None)
    def test_any_text_is_a_plan_or_a_fault_error(self, text: str) -> None:
        try:
            plan = parse([text])
        except FaultError:
            return
        assert 0 <= plan.for_session(1).delay_s() <= MAX_WAIT_S


class TestChances:
    def test_the_same_sessions_in_every_run(self) -> None:
        first, second = (
            [parse(["drop@0.3", "seed=5"]).for_session(n).cut_before_done for n in range(200)] for _ in "ab"
        )
        assert first == second
        assert 30 <= sum(cut is not None for cut in first) <= 90

    def test_another_seed_is_another_draw(self) -> None:
        drawn = [
            [parse(["drop@0.5", seed]).for_session(n).cut_before_done for n in range(50)]
            for seed in ("seed=1", "seed=2")
        ]
        assert drawn[0] != drawn[1]

    def test_one_chance_changes_no_other(self) -> None:
        rare, often = (
            [parse([f"mute@{chance}", "drop@0.5"]).for_session(n).cut_before_done for n in range(50)]
            for chance in ("0.01", "0.99")
        )
        assert rare == often

    def test_no_chance_is_always(self) -> None:
        assert all(parse(["mute"]).for_session(n).mute for n in range(50))
        assert not any(parse(["mute@0"]).for_session(n).mute for n in range(50))

    @pytest.mark.parametrize(
        ("text", "median"),
        [("uniform:0.2:0.8", 0.5), ("lognormal:0.5:0.3", 0.5), ("exponential:1", math.log(2)), ("0.3", 0.3)],
    )
    def test_distributions(self, text: str, median: float) -> None:
        wait, rng = only(f"delay={text}").delay, random.Random(1)
        assert wait is not None
        drawn = sorted(wait.draw(rng) for _ in range(2_001))
        assert drawn[1_000] == pytest.approx(median, rel=0.1)

    def test_draws_are_bounded(self) -> None:
        assert max(Wait("lognormal", 600.0, 10.0).draw(random.Random(n)) for n in range(20)) == MAX_WAIT_S


class TestReplies:
    def test_none(self) -> None:
        assert faulty_replies(NO_FAULTS, CALL, SETUP, SPEECH) == (CALL,)

    def test_speech_beside_a_call(self) -> None:
        (reply,) = faulty_replies(only("speech-and-call"), CALL, SETUP, SPEECH)
        assert (reply.calls, reply.pcm, reply.text) == (CALL.calls, SPEECH.pcm, SPEECH.text)

    def test_a_second_call_contradicts_the_first(self) -> None:
        (reply,) = faulty_replies(only("second-call"), CALL, SETUP, SPEECH)
        assert [call.name for call in reply.calls] == ["book", "cancel"]

    def test_leading_silence(self) -> None:
        (reply,) = faulty_replies(only("leading-silence=0.5"), SPEECH, SETUP, SPEECH)
        assert reply.pcm == bytes(24_000) + SPEECH.pcm

    def test_a_late_call_comes_in_an_answer_of_its_own(self) -> None:
        spoken, called = faulty_replies(only("late-call=1"), CALL, SETUP, SPEECH)
        assert (spoken.calls, spoken.pcm) == ((), SPEECH.pcm)
        assert called == CALL


def events(*names: str) -> list[OutFrame]:
    return [OutFrame(json.dumps({"type": name}).encode()) for name in names]


class TestFrames:
    def frames(self, *faults: str) -> list[OutFrame]:
        audio = OutFrame(b"\x01\x02", binary=True)
        whole = [*events("a"), audio, *events("b", "c")]
        return list(faulty_frames(only(*faults), iter(whole), object()))

    def test_duplicate(self) -> None:
        assert [kind_of(frame) for frame in self.frames("duplicate")] == [*"aa", "audio", "audio", *"bbcc"]

    def test_unknown(self) -> None:
        unknown = "rig.unknown_event"
        assert [kind_of(frame) for frame in self.frames("unknown")] == [
            unknown,
            "a",
            "audio",
            unknown,
            "b",
            unknown,
            "c",
        ]

    def test_big_frame(self) -> None:
        frames = self.frames("big-frame=1000")
        assert [len(frame.payload) for frame in frames] == [1000, 2, 13, 1000]
        assert json.loads(frames[-1].payload) == {"type": "c"}

    def test_cut(self) -> None:
        assert [kind_of(frame) for frame in self.frames("drop")] == ["a", "audio"]

    def test_nothing_is_taken_before_it_is_sent(self) -> None:
        """An answer that is cancelled half-way must find the server half where it is."""
        taken: list[str] = []

        def answer() -> Any:
            for frame in events(*"abcdef"):
                taken.append(kind_of(frame))
                yield frame

        frames = faulty_frames(only("duplicate", "unknown"), answer(), object())
        next(frames)
        assert taken == ["a"]


class TestFamilyCalls:
    """OpenAI's events, as a server half of the family sends them."""

    def sent(self, fault: str, *calls: ReplyCall) -> list[dict[str, Any]]:
        server = registry.dialect("openai_realtime").server()
        frames = ANSWER_FAULTS[fault](server.answer(Reply(calls=calls)))
        return [json.loads(frame.payload) for frame in frames]

    def about_calls(self, sent: list[dict[str, Any]]) -> list[str]:
        return [
            event["type"]
            for event in sent
            if "function_call" in event["type"] or event.get("item", {}).get("type") == "function_call"
        ]

    def test_in_deltas_alone(self) -> None:
        sent = self.sent("call-in-deltas", CALL.calls[0])
        kinds = self.about_calls(sent)
        assert kinds[0] == "response.output_item.added"
        assert set(kinds[1:]) == {"response.function_call_arguments.delta"}
        assert "".join(event.get("delta", "") for event in sent) == '{"party":4}'
        assert sent[-1]["response"]["output"] == []

    def test_in_done_alone(self) -> None:
        sent = self.sent("call-in-done", CALL.calls[0])
        assert self.about_calls(sent) == []
        assert sent[-1]["response"]["output"][0]["arguments"] == '{"party":4}'

    def test_cut_arguments_agree_everywhere(self) -> None:
        call = ReplyCall("book", {"name": "x" * 60})
        whole = json.dumps(dict(call.arguments), separators=(",", ":"))
        sent = self.sent("cut-arguments", call)
        cut = whole[: len(whole) // 2]
        assert "".join(event.get("delta", "") for event in sent) == cut
        stated = [event["arguments"] for event in sent if "arguments" in event]
        items = [event["item"] for event in sent if event.get("item", {}).get("status") == "completed"]
        assert {*stated, *(item["arguments"] for item in items)} == {cut}
        assert sent[-1]["response"]["output"][0]["arguments"] == cut

    def test_interleaved_calls_keep_their_own_order(self) -> None:
        sent = self.sent(
            "interleaved-calls", ReplyCall("book", {"name": "x" * 60}), ReplyCall("cancel", {"n": "y" * 60})
        )
        deltas = [event["output_index"] for event in sent if event["type"].endswith("arguments.delta")]
        assert deltas[:4] == [0, 1, 0, 1]
        for index in (0, 1):
            pieces = [event["delta"] for event in sent if "delta" in event and event["output_index"] == index]
            json.loads("".join(pieces))
        assert sent[-1]["type"] == "response.done"


class TestWhoCanHaveWhich:
    def test_every_dialect_fault_is_offered_somewhere(self) -> None:
        offered = {
            name for dialect in ROUTES for name in getattr(registry.dialect(dialect).server(), "answer_faults", ())
        }
        assert offered == {name for name, kind in KINDS.items() if kind.from_dialect}

    def test_a_dialect_without_it_says_so(self) -> None:
        server = registry.dialect("rig_socket").server()
        with pytest.raises(FaultError, match="rig_socket has no fault call-in-done; it has cut-arguments"):
            check(parse(["call-in-done"]), "rig_socket", server, file_mode=False)

    def test_file_mode_has_no_closes(self) -> None:
        server = registry.dialect("chat_audio").server()
        with pytest.raises(FaultError, match="one request with one body"):
            check(parse(["close=1011"]), "chat_audio", server, file_mode=True)


class TestConfig:
    def problems(self, tmp_path: Any, target: str) -> list[str]:
        text = f"version: 1\nbank: demo\ntargets:\n  - {{name: a, adapter: openai_realtime, {target}}}\n"
        with pytest.raises(ConfigError) as caught:
            parse_config(text, "c.yaml", tmp_path, {})
        return caught.value.problems

    def test_unknown_fault(self, tmp_path: Any) -> None:
        line, *_ = self.problems(tmp_path, "embedded_agent: local-cascade, faults: [delai=1]")
        assert line.startswith("targets[0].faults: no fault 'delai'")

    def test_faults_without_an_embedded_agent(self, tmp_path: Any) -> None:
        (line,) = self.problems(tmp_path, 'base_url: "ws://127.0.0.1:1/", faults: [mute]')
        assert "faults are for an embedded_agent" in line


def test_a_fleet_serves_the_same_agent_with_faults_and_without(tmp_path: Any) -> None:
    well, ill = ("rig_socket", "local-cascade"), ("rig_socket", "local-cascade", ("http=418:teapot",))

    async def statuses() -> list[int]:
        found = []
        async with fleet([well, ill], tmp_path) as urls, aiohttp.ClientSession() as http:
            for spec in (well, ill):
                async with http.get(urls[spec]) as response:
                    found.append(response.status)
        return found

    # A plain request is no handshake: 400 from the well one, which got as far as looking at it.
    assert anyio.run(statuses) == [400, 418]
