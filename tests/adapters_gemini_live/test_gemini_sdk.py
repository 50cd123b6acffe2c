"""The vendor's SDK as witness: its client holds turns with the emulator, its types accept our client's messages."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import orjson
import pytest
from google import genai
from google.genai import types

from adapters.dialect import Setup, TurnMode
from adapters.server import Reply, ReplyCall
from rig.agents.emulator import serve
from rig.agents.tls import self_signed

SPEECH = bytes(range(256)) * 100
KEY = "TESTKEYTESTKEYTESTKEY"
PARAMETERS = {
    "type": "OBJECT",
    "properties": {"party": {"type": "INTEGER", "nullable": True}, "room": {"type": "STRING", "enum": ["1", "2"]}},
    "required": ["party"],
}


class ScriptedAgent:
    """Gives its replies in order, and keeps what it was asked."""

    def __init__(self, *replies: Reply, after: Reply | None = None) -> None:
        self.replies = list(replies)
        self.after = after or Reply(text="Booked.", pcm=SPEECH)
        self.asked: list[tuple[Setup, bytes, int, str | None]] = []
        self.results: list[ReplyCall | None] = []

    async def reply(self, setup: Setup, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        self.asked.append((setup, pcm, rate_hz, text))
        return self.replies.pop(0)

    def after_result(self, call: ReplyCall | None) -> Reply:
        self.results.append(call)
        return self.after


Talk = Callable[[Any], Coroutine[Any, Any, None]]


def with_sdk(
    agent: ScriptedAgent, folder: Path, model: str, config: dict[str, Any], talk: Talk, api_version: str | None = None
) -> None:
    """Runs `talk` with a session of the SDK's own client, over TLS."""

    async def run() -> None:
        certificate = folder / "emulator.pem"
        server = self_signed("127.0.0.1", certificate)
        trusting = ssl.create_default_context(cafile=str(certificate))
        async with serve("gemini_live", agent, "127.0.0.1", 0, server) as port:
            options = types.HttpOptions(
                base_url=f"https://127.0.0.1:{port}", api_version=api_version, async_client_args={"ssl": trusting}
            )
            client = genai.Client(api_key=KEY, http_options=options)
            async with asyncio.timeout(20), client.aio.live.connect(model=model, config=config) as session:
                await talk(session)
            await client.aio.aclose()

    asyncio.run(run())


def config(**more: Any) -> dict[str, Any]:
    declaration = {"name": "book_table", "description": "Books a table.", "parameters": PARAMETERS}
    return {
        "response_modalities": ["AUDIO"],
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [declaration]}],
        "output_audio_transcription": {},
        "input_audio_transcription": {},
        "realtime_input_config": {"automatic_activity_detection": {"disabled": True}},
        **more,
    }


async def say(session: Any, pcm: bytes = SPEECH) -> None:
    await session.send_realtime_input(activity_start=types.ActivityStart())
    for start in range(0, len(pcm), 640):
        blob = types.Blob(data=pcm[start : start + 640], mime_type="audio/pcm;rate=16000")
        await session.send_realtime_input(audio=blob)
    await session.send_realtime_input(activity_end=types.ActivityEnd())


async def heard(session: Any) -> list[Any]:
    """Messages up to the end of the turn, by the SDK's own sign."""
    return [message async for message in session.receive()]


def parts(messages: list[Any]) -> list[str]:
    """What each message holds, in order; repetitions once."""
    names: list[str] = []
    for message in messages:
        given = message.model_dump(exclude_none=True)
        for key, value in given.items():
            names += [f"{key}.{inner}" for inner in value] if key == "server_content" else [key]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def test_the_sdk_holds_a_spoken_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent(Reply(text="One", pcm=SPEECH, input_transcript="Hello there"))

    async def talk(session: Any) -> None:
        assert session.setup_complete is not None
        await say(session)
        messages = await heard(session)
        audio = b"".join(message.data for message in messages if message.data)
        assert audio == SPEECH
        assert parts(messages)[0] == "server_content.input_transcription"
        assert parts(messages)[-3:] == [
            "server_content.generation_complete",
            "server_content.turn_complete",
            "usage_metadata",
        ]
        assert {"server_content.model_turn", "server_content.output_transcription"} <= set(parts(messages))
        usage = messages[-1].usage_metadata
        assert usage.total_token_count == usage.prompt_token_count + usage.response_token_count > 0

    with_sdk(agent, tmp_path, "gemini-2.5-flash-native-audio-preview-12-2025", config(), talk)
    ((setup, pcm, rate_hz, text),) = agent.asked
    assert (setup.instructions, pcm, rate_hz, text) == ("Be brief.", SPEECH, 16_000, None)
    assert setup.tools[0].parameters == {
        "type": "object",
        "properties": {"party": {"type": ["integer", "null"]}, "room": {"type": "string", "enum": ["1", "2"]}},
        "required": ["party"],
    }


@pytest.mark.parametrize("api_version", [None, "v1beta"])
def test_the_sdk_holds_a_blocking_tool_turn(tmp_path: Path, api_version: str | None) -> None:
    agent = ScriptedAgent(Reply((ReplyCall("book_table", {"party": 4}),), "One moment.", SPEECH))

    async def talk(session: Any) -> None:
        await say(session)
        answered = False
        transcript = ""
        async for message in session.receive():
            if message.tool_call:
                (call,) = message.tool_call.function_calls
                assert (call.name, call.args) == ("book_table", {"party": 4})
                response = types.FunctionResponse(id=call.id, name=call.name, response={"ok": True})
                await session.send_tool_response(function_responses=[response])
                answered = True
            elif answered and message.server_content and message.server_content.output_transcription:
                transcript += message.server_content.output_transcription.text
        assert transcript == "Booked."

    model = "gemini-2.5-flash-native-audio-preview-12-2025"
    with_sdk(agent, tmp_path, model, config(), talk, api_version)
    assert ReplyCall("book_table", {"party": 4}) in agent.results


def test_the_sdk_follows_an_interaction_past_the_end_of_a_turn(tmp_path: Path) -> None:
    agent = ScriptedAgent(Reply((ReplyCall("book_table", {"party": 4}),), "Let me see.", SPEECH))

    async def talk(session: Any) -> None:
        await session.send_realtime_input(text="A table for four.")
        states = []
        async for message in session.receive():
            if message.tool_call:
                call = message.tool_call.function_calls[0]
                response = types.FunctionResponse(id=call.id, name=call.name, response={}, scheduling="WHEN_IDLE")
            if message.server_content and message.server_content.interaction_status:
                states.append(message.server_content.interaction_status.value)
                if states == ["IN_PROGRESS"]:
                    await session.send_tool_response(function_responses=[response])
        assert states == ["IN_PROGRESS", "IDLE"]
        await session.send_context_update(system_instruction="Be long.", tools=[])

    given = config(thinking_config={"thinking_level": "LOW"})
    with_sdk(agent, tmp_path, "gemini-3.8-live-extended-thinking", given, talk)
    assert agent.asked[0][3] == "A table for four."


def test_the_sdk_holds_a_text_turn_and_reads_handles(tmp_path: Path) -> None:
    agent = ScriptedAgent(Reply(text="Sure thing."), Reply(text="Again."))

    async def talk(session: Any) -> None:
        content = types.Content(role="user", parts=[types.Part(text="Cancel it.")])
        await session.send_client_content(turns=content, turn_complete=True)
        messages = await heard(session)
        assert "".join(message.text for message in messages if message.text) == "Sure thing."
        assert messages[0].session_resumption_update.new_handle
        await session.send_client_content(turns=content)
        assert "".join(message.text for message in await heard(session) if message.text) == "Again."

    given = config(response_modalities=["TEXT"], session_resumption={})
    with_sdk(agent, tmp_path, "gemini-2.5-flash-native-audio-preview-12-2025", given, talk)
    assert [text for *_, text in agent.asked] == ["Cancel it.", "Cancel it."]


def test_the_sdk_uses_the_servers_own_detection(tmp_path: Path) -> None:
    agent = ScriptedAgent(Reply(text="One", pcm=SPEECH))
    loud = (b"\x00\x20" * 8 + b"\x00\xe0" * 8) * 1000

    async def talk(session: Any) -> None:
        blob = types.Blob(data=loud + bytes(2 * 16_000), mime_type="audio/pcm;rate=16000")
        await session.send_realtime_input(audio=blob)
        messages = await heard(session)
        kinds = [message.voice_activity.voice_activity_type.value for message in messages if message.voice_activity]
        assert kinds == ["ACTIVITY_START", "ACTIVITY_END"]
        assert b"".join(message.data for message in messages if message.data) == SPEECH

    given = config(realtime_input_config={"automatic_activity_detection": {"silence_duration_ms": 300}})
    with_sdk(agent, tmp_path, "gemini-3.1-flash-live-preview", given, talk)


def test_the_sdk_is_told_why_it_is_refused(tmp_path: Path) -> None:
    async def talk(session: Any) -> None:
        raise AssertionError("the setup was taken")

    given = config(thinking_config={"thinking_level": "LOW"})
    with pytest.raises(genai.errors.APIError, match="does not support thinking_config") as raised:
        with_sdk(ScriptedAgent(), tmp_path, "gemini-3.8-live", given, talk)
    assert raised.value.code == 1007


@pytest.mark.parametrize(
    ("model", "mode", "parameters", "extra"),
    [
        (
            "gemini-2.5-flash-native-audio-preview-12-2025",
            TurnMode.MANUAL,
            {},
            {
                "voice": "Kore",
                "language": "en-US",
                "temperature": 1,
                "max_output_tokens": 500,
                "thinking_budget": 0,
                "affective_dialog": True,
                "proactive_audio": False,
                "input_transcription": True,
                "tool_behavior": "NON_BLOCKING",
                "result_scheduling": "INTERRUPT",
                "session_resumption": {"handle": "h", "transparent": True},
                "context_window_compression": True,
            },
        ),
        (
            "gemini-3.8-live-extended-thinking",
            TurnMode.SERVER_VAD,
            {
                "start_of_speech_sensitivity": "low",
                "end_of_speech_sensitivity": "high",
                "prefix_padding_ms": 20,
                "silence_duration_ms": 300,
                "activity_handling": "NO_INTERRUPTION",
                "turn_coverage": "TURN_INCLUDES_ONLY_ACTIVITY",
            },
            {"thinking_level": "high"},
        ),
    ],
)
def test_our_messages_are_of_the_sdks_types(
    gemini: Any, model: str, mode: TurnMode, parameters: dict[str, Any], extra: dict[str, Any]
) -> None:
    wire = gemini.Wire(model, mode, parameters=parameters, **extra)
    setup = dict(wire.setup)
    realtime = setup.pop("realtimeInputConfig")  # the SDK has a type of its own for it
    checked(types.RealtimeInputConfig, realtime)
    checked(types.LiveClientMessage, {"setup": setup})
    client = wire.client
    frames = [*client.start_turn(), *client.encode_clip(SPEECH, 16_000, 20).frames, client.encode_silence(16_000, 20)]
    frames += [*client.commit_turn(), *client.text("Hello")]
    wire.hear({"setupComplete": {}}, gemini.call("c1", "book_table", party=2))
    frames += [*client.tool_result("c1", '{"ok":true}'), *client.close()]
    messages = gemini.sent(frames)
    for message in messages:
        assert len(message) == 1
        checked(types.LiveClientMessage, message)
    assert "toolResponse" in [next(iter(message)) for message in messages]


def checked(kind: Any, message: Any) -> None:
    """The SDK's type takes the message, and would send the same."""
    accepted = kind.model_validate_json(orjson.dumps(message))
    again = orjson.loads(accepted.model_dump_json(by_alias=True, exclude_unset=True))
    assert url_safe(again) == url_safe(message)


def url_safe(value: Any, key: str = "") -> Any:
    """The same with base64 in one alphabet."""
    if isinstance(value, dict):
        return {name: url_safe(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [url_safe(inner) for inner in value]
    return value.translate({43: "-", 47: "_"}) if key == "data" else value
