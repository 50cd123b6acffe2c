"""vLLM's OpenAI-compatible server with an audio model. Models without a tool parser take `settings: {tools: prompt}`.

Facts: docs.vllm.ai, serving/openai_compatible_server and multimodal inputs.
"""

from __future__ import annotations

from adapters.chat_audio import ChatDialect
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import LocalSettings
from adapters.chat_audio.usage import without_split

DIALECT = ChatDialect(
    "vllm",
    None,
    ClientProfile(LocalSettings, base_url="http://127.0.0.1:8000/v1", vendor="vLLM", rate_hz=16_000),
    ServerProfile(may_stream=True, text_only=True, usage=without_split),
)
