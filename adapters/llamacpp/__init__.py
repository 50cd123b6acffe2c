"""llama.cpp's server with an audio-capable projector. Models without a tool template take `settings: {tools: prompt}`.

Facts: ggml-org/llama.cpp docs/multimodal.md and issues 21868, 25889, 27136.
"""

from __future__ import annotations

from adapters.chat_audio import ChatDialect
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import LocalSettings
from adapters.chat_audio.usage import without_split


class LlamaCppSettings(LocalSettings):
    """`settings:` of a target."""

    cache_prompt: bool | None = None
    """False for runs that must not depend on their order."""


DIALECT = ChatDialect(
    "llamacpp",
    None,
    ClientProfile(LlamaCppSettings, base_url="http://127.0.0.1:8080/v1", vendor="llama.cpp", rate_hz=16_000),
    ServerProfile(may_stream=True, text_only=True, usage=without_split),
)
