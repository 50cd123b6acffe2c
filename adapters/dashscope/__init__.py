"""Qwen-Omni by DashScope's OpenAI-compatible mode: answers are streamed, audio travels as a data URI.

Spoken output may read a call aloud, so that replies are text unless asked for otherwise. Facts: alibabacloud.com
model-studio/qwen-omni and qwen3-8-omni-flash (October 2026).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from adapters.chat_audio import ChatDialect, wire
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import Modalities, SpeakingSettings
from adapters.chat_audio.usage import with_audio_tokens
from adapters.foreign_json import JsonObject

_BASES: Final = {
    "cn-beijing": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "ap-southeast-1": "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
}


class DashScopeSettings(SpeakingSettings):
    """`settings:` of a target."""

    modalities: Modalities = Field(default=["text"])
    region: Literal["cn-beijing", "ap-southeast-1"] = "cn-beijing"
    """Of the shared hosts, to which keys are bound; a workspace's own host goes into `base_url`."""
    enable_thinking: bool | None = None
    thinking_budget: Annotated[int, Field(ge=0)] | None = None
    reasoning_effort: Literal["low", "medium", "high"] | None = None

    @model_validator(mode="after")
    def _one_measure(self) -> DashScopeSettings:
        if self.thinking_budget is not None and self.reasoning_effort is not None:
            raise ValueError("thinking_budget and reasoning_effort exclude each other")
        return self

    @property
    def usual_voice(self) -> str:
        """Of the 3.5 generation; the older one has Cherry."""
        return "Tina"

    def request_fields(self, with_tools: bool) -> JsonObject:
        """As the family has it, streamed, with usage."""
        fields = super().request_fields(with_tools)
        del fields["region"]
        return fields | {"stream": True, "stream_options": {"include_usage": True}}


DIALECT = ChatDialect(
    "dashscope",
    "DASHSCOPE_API_KEY",
    ClientProfile(
        DashScopeSettings,
        base_url=lambda settings: _BASES[settings.region],
        vendor="DashScope",
        rate_hz=16_000,
        audio_part=wire.data_uri_audio,
        # The base64 text of one clip, as documented (uncertain); the request around it is small.
        max_request_bytes=10_000_000,
    ),
    ServerProfile(
        audio_of_part=wire.data_uri_audio_data, must_stream=True, raw_speech=True, usage=with_audio_tokens(7)
    ),
)
