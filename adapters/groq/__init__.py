"""Groq's chat completions: text models today, so the model of a cascade; audio goes out in OpenAI's shape.

A call that cannot be parsed comes as HTTP 400 `tool_use_failed`, which is the model's answer: a wrong call. Facts:
groq 1.7.0, voxparity-bench's cascade.
"""

from __future__ import annotations

from typing import Literal

from adapters.chat_audio import ChatDialect
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import ChatSettings
from adapters.chat_audio.usage import without_split


class GroqSettings(ChatSettings):
    """`settings:` of a target."""

    reasoning_effort: Literal["none", "default", "low", "medium", "high"] | None = None
    include_reasoning: bool | None = None


DIALECT = ChatDialect(
    "groq",
    "GROQ_API_KEY",
    ClientProfile(GroqSettings, base_url="https://api.groq.com/openai/v1", vendor="Groq", rate_hz=16_000),
    ServerProfile(may_stream=True, text_only=True, usage=without_split),
)
