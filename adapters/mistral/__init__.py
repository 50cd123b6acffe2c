"""Mistral's Voxtral over chat completions: the audio part is a plain string, arguments may come as an object.

Posted through the OpenAI SDK, whose shape it is but for that part. Facts: docs.mistral.ai/studio/audio and the types of
mistralai 3.7; the greedy-sampling rule from voxparity-bench.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.chat_audio import ChatDialect, wire
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import ChatSettings
from adapters.chat_audio.usage import with_audio_seconds
from adapters.foreign_json import JsonObject, object_of, objects_of, text_of


class MistralSettings(ChatSettings):
    """`settings:` of a target."""

    safe_prompt: bool | None = None

    def request_fields(self, with_tools: bool) -> JsonObject:
        """As the family has it; the seed has another name, and a temperature of 0 needs top_p 1."""
        fields = super().request_fields(with_tools)
        if "seed" in fields:
            fields["random_seed"] = fields.pop("seed")
        if fields.get("temperature") == 0:
            fields.setdefault("top_p", 1)
        return fields


def _audio(data: str) -> JsonObject:
    return {"type": "input_audio", "input_audio": data}


def _audio_data(part: Mapping[str, Any]) -> tuple[str, str]:
    data = text_of(part, "input_audio")
    if data is None:
        raise wire.BadPartError("input_audio: Input should be a valid string")
    return "wav", data


def _complaint(body: JsonObject) -> tuple[str, str] | None:
    if body.get("temperature") == 0 and body.get("top_p") != 1:
        return "top_p must be 1 when using greedy sampling", "top_p"
    for index, tool in enumerate(objects_of(body, "tools")):
        if "parameters" not in object_of(tool, "function"):
            return "parameters: Field required", f"tools[{index}].function.parameters"
    return None


DIALECT = ChatDialect(
    "mistral",
    "MISTRAL_API_KEY",
    ClientProfile(
        MistralSettings,
        base_url="https://api.mistral.ai/v1",
        vendor="Mistral",
        rate_hz=16_000,
        audio_part=_audio,
        tool_message=wire.named_tool_message,
        max_audio_s=40 * 60,
    ),
    ServerProfile(
        audio_of_part=_audio_data,
        complaint=_complaint,
        text_only=True,
        arguments_as_object=True,
        usage=with_audio_seconds,
    ),
)
