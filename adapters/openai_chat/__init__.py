"""OpenAI's gpt-audio family over chat.completions.

It serves no request without audio on either side, so that a pure text twin does not exist: not applicable. Facts:
OpenAI's guide to audio in chat completions; types of its SDK 3.57.
"""

from __future__ import annotations

from adapters.chat_audio import ChatDialect
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import SpeakingSettings
from adapters.chat_audio.usage import with_audio_tokens
from adapters.foreign_json import JsonObject, list_of, objects_of


def _needs_audio(body: JsonObject) -> tuple[str, str] | None:
    parts = [part for message in objects_of(body, "messages") for part in objects_of(message, "content")]
    if "audio" in list_of(body, "modalities") or any(part.get("type") == "input_audio" for part in parts):
        return None
    return "This model requires that either input content or output modality contain audio.", "model"


DIALECT = ChatDialect(
    "openai_chat",
    "OPENAI_API_KEY",
    ClientProfile(SpeakingSettings, vendor="OpenAI", text_twin=lambda settings, host: False),
    ServerProfile(complaint=_needs_audio, may_stream=True, usage=with_audio_tokens(10)),
)
