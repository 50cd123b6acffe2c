"""A target's settings for file mode over chat.completions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from adapters.foreign_json import JsonObject
from adapters.target_settings import HeaderText, StrictSettings


class ForcedFunction(StrictSettings):
    """Name of the forced tool."""

    name: str


class ForcedTool(StrictSettings):
    """A tool that must be called."""

    type: Literal["function"] = "function"
    function: ForcedFunction


class ChatAudioSettings(StrictSettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    modalities: list[Literal["text", "audio"]] = Field(default=["text", "audio"])
    """Audio by default: the gpt-audio family refuses a request without audio on either side, such as a text twin."""
    voice: str | None = None
    """Voice of the reply, `alloy` unless set; only with audio."""
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """For servers that do not know `max_completion_tokens`."""
    seed: int | None = None
    tool_choice: Literal["auto", "none", "required"] | ForcedTool | None = None
    parallel_tool_calls: bool | None = None
    provider: dict[str, Any] | None = None
    """OpenRouter's choice of upstream, e.g. `{order: [openai], allow_fallbacks: false}`."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the request; values are secret."""

    @model_validator(mode="after")
    def _fits(self) -> ChatAudioSettings:
        if "text" not in self.modalities or len(set(self.modalities)) != len(self.modalities):
            raise ValueError("modalities must be [text] or [text, audio]")
        if self.voice is not None and not self.speaks:
            raise ValueError("voice needs audio among modalities")
        return self

    @property
    def speaks(self) -> bool:
        """True when replies are asked for as speech."""
        return "audio" in self.modalities

    def request_fields(self, with_tools: bool) -> JsonObject:
        """Fields of a request beside model, messages and tools."""
        fields = self.model_dump(exclude_none=True, exclude={"headers", "voice"})
        if self.speaks:
            fields["audio"] = {"voice": self.voice or "alloy", "format": "wav"}
        if not with_tools:
            # Refused by the vendor when there are no tools.
            for name in ("tool_choice", "parallel_tool_calls"):
                fields.pop(name, None)
        return fields
