"""Whole turns of a cascade against its emulator: what each stage is sent, what comes back, what goes wrong where."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest
from aiohttp import web

from adapters import registry
from adapters.cascade.wire import opened
from adapters.dialect import InputTooLargeError, SettingsError, Setup, TargetSettings, ToolSpec
from adapters.server import Reply, ReplyCall
from adapters.session import Session
from captures.clock import MonotonicClock
from captures.events import (
    AnswerEnded,
    Event,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    TextDelta,
    ToolCall,
    Usage,
)
from captures.frames import Direction
from rig.agents.emulator import base_url, serve

pytestmark = pytest.mark.anyio
PCM = b"\x10\x20" * 8_000
SETUP = Setup("Help the caller.", (ToolSpec("hold", "Hold.", {"type": "object", "properties": {}}),), 16_000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Ear:
    """Hears the same words in every clip, and calls `hold` with the words it is told."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        if text is None and not setup.tools:
            return Reply(text="-", input_transcript="Um, hold it [sobs]", input_tags=("crying", "panic"))
        if text is None:
            return Reply(text="a clip for the text model!")
        return Reply(calls=(ReplyCall("hold", {"told": text}),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Done.")


def settings(url: str, key: str | None = None, **cascade: Any) -> TargetSettings:
    return TargetSettings("m", url, key, {"transcriber": {"model": "w"}} | cascade)


@asynccontextmanager
async def session(target: TargetSettings, setup: Setup = SETUP) -> AsyncIterator[Session]:
    dialect: Any = registry.dialect("cascade")
    clock = MonotonicClock()
    made = Session(dialect.client(target), dialect.transport(clock), clock)
    await made.open(setup, 5)
    try:
        yield made
    finally:
        await made.close()


async def settled(made: Session) -> list[Event]:
    """All events of a turn, once it has ended."""
    with anyio.fail_after(10):
        while not any(isinstance(timed.event, AnswerEnded | Failed | Refused) for timed in made.events):
            await made.wait_change()
    return [timed.event for timed in made.events]


async def spoken(target: TargetSettings) -> tuple[list[Event], list[tuple[str, Any]]]:
    """Events of one spoken turn, and what was sent: stage and body."""
    async with session(target) as made:
        for frame in made.encode_clip(PCM, 16_000, 20).frames:
            made.send_chunk(frame)
        made.commit_turn()
        events = await settled(made)
        sent = [opened(frame.payload) for frame in made.log if frame.direction is Direction.SENT]
        return events, [(stage.value, orjson.loads(body)) for stage, body in filter(None, sent)]


@pytest.mark.parametrize(
    ("rung", "told", "tags"),
    [
        ("words", "hold it", None),
        ("verbatim", "Um, hold it [sobs]", None),
        ("tags", "hold it\n[measured in the audio: crying, panic]", ("crying", "panic")),
    ],
)
async def test_the_text_model_is_told_what_its_rung_allows(rung: str, told: str, tags: object) -> None:
    async with serve("cascade", Ear()) as port:
        events, sent = await spoken(settings(base_url("cascade", "127.0.0.1", port), rung=rung))
    assert InputTranscript("Um, hold it [sobs]", tags=tags) in events
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert call.arguments == {"told": told}
    assert [stage for stage, _ in sent] == ["transcriber", *(["tagger"] if tags else []), "model"]
    assert "file" not in str(sent[-1])
    assert sent[0][1]["fields"] == {"model": "w", "response_format": "json"}


async def test_a_text_turn_goes_to_the_text_model_alone() -> None:
    async with (
        serve("cascade", Ear()) as port,
        session(settings(base_url("cascade", "127.0.0.1", port), rung="tags")) as made,
    ):
        made.text("Um, hold it.")
        events = await settled(made)
    assert not any(isinstance(event, InputTranscript) for event in events)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert call.arguments == {"told": "Um, hold it."}


class Writer(Ear):
    """Writes down what it hears, as it is asked to."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        if text is not None:
            return await super().reply(setup, pcm, rate_hz, text)
        said = "Keep fillers" in setup.instructions
        return Reply(text="hold it, uh, now" if said else "Loud siren!\nnothing\n")


@pytest.mark.parametrize(
    ("adapter", "settings_of_it"),
    [
        ("chat_audio", {"modalities": ["text"]}),
        ("dashscope", {}),
        ("mistral", {}),
        ("vllm", {}),
        ("gemini_file", {}),
    ],
)
async def test_a_file_mode_model_is_asked_to_write_down_what_it_hears(
    adapter: str, settings_of_it: dict[str, Any]
) -> None:
    async with serve(adapter, Writer()) as port, serve("cascade", Ear()) as chat_port:
        url = base_url(adapter, "127.0.0.1", port)
        hears = {"adapter": adapter, "model": "big", "settings": settings_of_it, "base_url": url, "api_key": "k-12345"}
        chat_url = base_url("cascade", "127.0.0.1", chat_port)
        events, sent = await spoken(settings(chat_url, rung="tags", transcriber=hears, tagger=hears))
    assert InputTranscript("hold it, uh, now", tags=("loud siren", "nothing")) in events
    assert sent[-1][1]["messages"][-1]["content"] == "hold it, now\n[measured in the audio: loud siren, nothing]"
    assert any(isinstance(event, ToolCall) for event in events)


@pytest.mark.parametrize("adapter", ["groq", "gemini_file", "dashscope"])
async def test_any_file_mode_adapter_may_choose_the_tool(adapter: str) -> None:
    async with serve("cascade", Ear()) as ears_port, serve(adapter, Ear()) as port:
        ears = {"model": "w", "base_url": base_url("cascade", "127.0.0.1", ears_port)}
        target = settings(
            base_url(adapter, "127.0.0.1", port), "key-12345", transcriber=ears, chat={"adapter": adapter}
        )
        events, _ = await spoken(target)
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.arguments) == ("hold", {"told": "hold it"})


@asynccontextmanager
async def answering(**answers: tuple[int, bytes, dict[str, str]]) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A server with fixed answers by the last part of the path, and the headers that it was sent."""
    seen: list[dict[str, str]] = []

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        seen.append({"path": request.path, "key": request.headers.get("Authorization", "")})
        status, body, headers = answers[request.path.rsplit("/", 1)[-1]]
        return web.Response(status=status, body=body, headers=headers, content_type="application/json")

    application = web.Application()
    application.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", seen
    finally:
        await runner.cleanup()


HEARD = (200, b'{"text": " hold it ", "usage": {"type": "duration", "seconds": 1}}', {})
DONE = (200, b'{"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}', {})


async def test_an_empty_transcript_is_a_valid_one() -> None:
    async with answering(transcriptions=(200, b'{"text": ""}', {}), completions=DONE) as (url, _):
        events, sent = await spoken(settings(url))
    assert InputTranscript("") in events
    assert TextDelta("Done.") in events
    assert sent[-1][1]["messages"][-1] == {"role": "user", "content": ""}


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (
            (429, b'{"error": {"message": "slow"}}', {"retry-after": "7"}),
            FailureKind.RATE_LIMIT,
            "transcriber: HTTP 429",
        ),
        ((503, b"busy", {}), FailureKind.TRANSIENT, "transcriber: HTTP 503"),
        ((413, b'{"error": {"message": "too big"}}', {}), FailureKind.PROTOCOL, "too big"),
        ((200, b"not json", {}), FailureKind.PROTOCOL, "not a JSON object"),
        ((200, b'{"words": "x"}', {}), FailureKind.PROTOCOL, "no text in the response"),
    ],
)
async def test_a_transcription_that_fails_measures_nothing(answer: Any, kind: FailureKind, says: str) -> None:
    async with answering(transcriptions=answer, completions=DONE) as (url, seen):
        events, _ = await spoken(settings(url))
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert (failed.kind, says in failed.message) == (kind, True), failed
    assert [request["path"] for request in seen] == ["/v1/audio/transcriptions"]
    if answer[0] == 429:
        assert failed.retry_after_s == 7


async def test_a_refused_key_names_its_stage_and_is_not_repeated() -> None:
    body = b'{"error": {"message": "bad key sk-secret-one", "code": "invalid_api_key"}}'
    async with answering(transcriptions=(401, body, {}), completions=DONE) as (url, _):
        own = {"model": "w", "base_url": url, "api_key": "sk-secret-one"}
        events, _ = await spoken(settings(url, "sk-secret-two", transcriber=own))
    (refused,) = [event for event in events if isinstance(event, Refused)]
    assert refused.message.startswith("transcriber: ")
    assert "sk-secret" not in refused.message


async def test_a_call_that_the_vendor_could_not_parse_is_a_wrong_call() -> None:
    body = orjson.dumps({"error": {"code": "tool_use_failed", "message": "bad", "failed_generation": "<hold>{"}})
    async with answering(transcriptions=HEARD, completions=(400, body, {})) as (url, _):
        events, _ = await spoken(settings(url))
    (call,) = [event for event in events if isinstance(event, ToolCall)]
    assert (call.name, call.arguments, call.arguments_json) == (None, None, '"<hold>{"')
    assert not any(isinstance(event, Failed | Refused) for event in events)
    assert Usage({"transcription": {"type": "duration", "seconds": 1}}) in events


async def test_keys_go_where_they_belong() -> None:
    async with (
        answering(transcriptions=HEARD) as (ears, heard),
        answering(completions=DONE, transcriptions=HEARD) as (model, told),
    ):
        await spoken(settings(model, "key-model", transcriber={"model": "w", "base_url": ears}))
        await spoken(settings(model, "key-model", transcriber={"model": "w", "base_url": ears, "api_key": "key-ears"}))
        await spoken(settings(model, "key-model"))
    assert [request["key"] for request in heard] == ["", "Bearer key-ears"]
    assert {request["key"] for request in told} == {"Bearer key-model"}
    assert len(told) == 4


def test_a_clip_over_the_upload_limit_is_named_before_any_request() -> None:
    client = registry.dialect("cascade").client(settings("http://127.0.0.1:1/v1"))
    with pytest.raises(InputTooLargeError, match="25,000,000"):
        client.encode_clip(bytes(26_000_000), 16_000, 20)


@pytest.mark.parametrize(
    ("cascade", "says"),
    [
        ({"transcriber": {}}, "settings.transcriber.model: required"),
        ({"rung": "all"}, "settings.rung"),
        ({"tagger": {}}, "a tagger is for rung: tags"),
        ({"transcriber": {"adapter": "openai_realtime", "model": "x"}}, "another vendor's"),
        ({"transcriber": {"adapter": "openai_realtime", "base_url": "http://h"}}, "no file-mode adapter"),
        ({"transcriber": {"adapter": "nobody", "base_url": "http://h"}}, "no adapter 'nobody'"),
        ({"transcriber": {"model": "w", "settings": {"lang": "en"}}}, "settings.transcriber.settings.lang"),
        ({"transcriber": {"model": "w", "base_url": "ftp://h"}}, "settings.transcriber.base_url"),
        ({"chat": {"adapter": "cascade"}}, "settings.chat.adapter"),
    ],
)
def test_settings_that_do_not_fit_are_named(cascade: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        registry.dialect("cascade").client(settings("http://127.0.0.1:1/v1", "secret-key", **cascade))
    assert says in str(caught.value)
    assert "secret-key" not in str(caught.value)


def test_each_stage_may_be_of_another_vendor() -> None:
    client = registry.dialect("cascade").client(
        TargetSettings("gpt-oss", None, "key-groq", {"chat": {"adapter": "groq"}, "transcriber": {"model": "whisper"}})
    )
    found: Any = client.endpoint()
    routes = {stage.value: route.endpoint for stage, route in found.routes.items()}
    assert {route.url for route in routes.values()} == {"https://api.groq.com/openai/v1"}
    other = {"adapter": "mistral", "model": "voxtral", "api_key": "key-mistral"}
    client = registry.dialect("cascade").client(
        TargetSettings("gpt-oss", None, "key-groq", {"chat": {"adapter": "groq"}, "transcriber": other})
    )
    found = client.endpoint()
    heard = next(route.endpoint for stage, route in found.routes.items() if stage.value == "transcriber")
    assert heard.url.startswith("https://api.mistral.ai")
    assert heard.headers["Authorization"] == "Bearer key-mistral"


def test_only_the_rung_with_tags_can_be_asked_what_it_hears() -> None:
    for rung, hears in (("words", False), ("verbatim", False), ("tags", True)):
        client = registry.dialect("cascade").client(settings("http://127.0.0.1:1/v1", rung=rung))
        assert client.capabilities.probe is hears
        assert client.capabilities.text_twin
        assert not client.capabilities.streams_audio
