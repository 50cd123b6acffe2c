"""OpenRouter: one key for many hosts, each answer told with the one that served it.

A model without audio input gets the text alone, without a word: `audio_not_heard` catches it. A failed upstream may
come with status 200. Facts: openrouter.ai/docs (multimodal/audio, provider routing); voxparity-bench's adapter.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from adapters.chat_audio import ChatDialect
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import Modalities, SpeakingSettings
from adapters.chat_audio.usage import with_audio_tokens
from adapters.foreign_json import JsonObject, object_of, objects_of, text_of


class OpenRouterSettings(SpeakingSettings):
    """`settings:` of a target."""

    modalities: Modalities = Field(default=["text"])
    upstream: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    """The only host that may answer, by its slug, e.g. `mistral`; without it OpenRouter chooses for every request."""
    provider: dict[str, Any] | None = None
    """The router's own field instead, e.g. `{order: [mistral, groq], data_collection: deny}`."""

    @model_validator(mode="after")
    def _one_way(self) -> OpenRouterSettings:
        if self.upstream is not None and self.provider is not None:
            raise ValueError("upstream and provider exclude each other")
        return self

    def request_fields(self, with_tools: bool) -> JsonObject:
        """As the family has it, and the pinned host."""
        fields = super().request_fields(with_tools)
        upstream = fields.pop("upstream", None)
        if upstream is not None:
            fields["provider"] = {"order": [upstream], "allow_fallbacks": False}
        return fields


def _needs_parameters(body: JsonObject) -> tuple[str, str] | None:
    """Mistral's rule, which holds behind the router as well."""
    for index, tool in enumerate(objects_of(body, "tools")):
        if not object_of(object_of(tool, "function"), "parameters"):
            return f"{text_of(object_of(tool, 'function'), 'name')}: parameters are required", f"tools[{index}]"
    return None


DIALECT = ChatDialect(
    "openrouter",
    "OPENROUTER_API_KEY",
    ClientProfile(
        OpenRouterSettings,
        base_url="https://openrouter.ai/api/v1",
        vendor="OpenRouter",
        pinned_upstream=lambda settings: settings.upstream,
    ),
    ServerProfile(
        complaint=_needs_parameters,
        usage=with_audio_tokens(10),
        answer_fields={"provider": "Rig Emulator"},
        error_in_body=True,
    ),
)
