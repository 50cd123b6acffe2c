"""The vendors' own SDKs against the loopback servers of the chat-completions family."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import mistralai.client as mistral
import openai
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from adapters.chat_audio import wav
from adapters.server import Reply, ReplyCall
from rig.agents.emulator import base_url, serve

TOOL: Any = {"type": "function", "function": {"name": "refund", "description": "", "parameters": {"type": "object"}}}
CLIP = base64.b64encode(wav.encode(bytes(3200), 16000)).decode()


class Clerk:
    """Calls the tool where there is one."""

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        assert (len(pcm), rate_hz) == (3200, 16000) or text
        if not setup.tools:
            return Reply(text="Good day.", pcm=bytes(4800))
        return Reply((ReplyCall("refund", {"amount": 5}),), "On it.")

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="Paid.")


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as own:
        yield own


@pytest.fixture
def url(portal: BlockingPortal, request: pytest.FixtureRequest) -> Iterator[str]:
    """Base URL of an emulator of the dialect that the test is parametrised with."""
    with portal.wrap_async_context_manager(serve(request.param, Clerk())) as port:
        yield base_url(request.param, "127.0.0.1", port)


def part(url: str) -> Any:
    data = f"data:;base64,{CLIP}" if "compatible-mode" in url else CLIP
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


@pytest.mark.parametrize("url", ["openai_chat", "openrouter", "groq", "llamacpp", "vllm"], indirect=True)
def test_openai_sdk_whole(url: str) -> None:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        asked: list[Any] = [{"role": "user", "content": [part(url)]}]
        answer = client.chat.completions.create(model="m", messages=asked, tools=[TOOL])
        message = answer.choices[0].message
        assert message.tool_calls is not None
        call: Any = message.tool_calls[0]
        assert (call.function.name, json.loads(call.function.arguments)) == ("refund", {"amount": 5})
        assert answer.choices[0].finish_reason == "tool_calls"
        assert answer.usage is not None
        later = [*asked, message, {"role": "tool", "tool_call_id": call.id, "content": "ok"}]
        said = client.chat.completions.create(model="m", messages=later, tools=[TOOL]).choices[0].message
        assert said.content == "Paid."


@pytest.mark.parametrize("url", ["dashscope", "openai_chat", "stepfun_chat"], indirect=True)
def test_openai_sdk_streamed(url: str) -> None:
    given = {"type": "input_audio", "input_audio": {"data": f"data:audio/wav;base64,{CLIP}", "format": "wav"}}
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        asked: list[Any] = [{"role": "user", "content": [part(url)]}]
        for body in (asked, [{"role": "user", "content": [given]}]):
            try:
                with client.chat.completions.stream(
                    model="m", messages=body, tools=[TOOL], stream_options={"include_usage": True}
                ) as stream:
                    final = stream.get_final_completion()
                break
            except openai.BadRequestError:  # StepFun wants a data URI with its type
                assert "compatible-mode" not in url
        call: Any = final.choices[0].message.tool_calls[0]  # type: ignore[index]
        assert (call.function.name, json.loads(call.function.arguments)) == ("refund", {"amount": 5})
        assert final.choices[0].message.content == "On it."
        assert final.usage is not None
        assert final.usage.total_tokens > 200


@pytest.mark.parametrize("url", ["dashscope"], indirect=True)
def test_dashscope_serves_no_whole_answers(url: str) -> None:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as client:
        asked: list[Any] = [{"role": "user", "content": [part(url)]}]
        with pytest.raises(openai.BadRequestError, match="stream mode"):
            client.chat.completions.create(model="m", messages=asked)


@pytest.mark.parametrize("url", ["mistral"], indirect=True)
def test_mistral_sdk(url: str) -> None:
    with mistral.Mistral(api_key="k", server_url=url.removesuffix("/v1")) as client:
        asked: list[Any] = [{"role": "user", "content": [{"type": "input_audio", "input_audio": CLIP}]}]
        answer = client.chat.complete(model="voxtral-small-latest", messages=asked, tools=[TOOL])
        message = answer.choices[0].message
        assert message is not None
        assert message.tool_calls
        call = message.tool_calls[0]
        assert (call.function.name, call.function.arguments) == ("refund", {"amount": 5})
        assert answer.usage.prompt_audio_seconds == 1
        later = [*asked, message, {"role": "tool", "tool_call_id": call.id, "name": "refund", "content": "ok"}]
        said = client.chat.complete(model="voxtral-small-latest", messages=later, tools=[TOOL]).choices[0].message
        assert said is not None
        assert said.content == "Paid."
