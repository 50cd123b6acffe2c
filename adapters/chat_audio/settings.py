"""Settings of targets for file mode over chat.completions: what every member takes, and what speaking ones add."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from adapters.foreign_json import JsonObject
from adapters.target_settings import HeaderText, StrictSettings

Modalities = list[Literal["text", "audio"]]


class ForcedFunction(StrictSettings):
    """Name of the forced tool."""

    name: str


class ForcedTool(StrictSettings):
    """A tool that must be called."""

    type: Literal["function"] = "function"
    function: ForcedFunction


class ChatSettings(StrictSettings):
    """`settings:` that every member has. What is left out is not sent, so that the vendor's default holds."""

    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """For servers that do not know `max_completion_tokens`."""
    seed: int | None = None
    tool_choice: Literal["auto", "none", "required"] | ForcedTool | None = None
    parallel_tool_calls: bool | None = None
    usage_tells_hearing: bool = True
    """Usage that counts zero audio tokens voids the row; false for a server known to count none."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the request; values are secret."""

    @property
    def speaks(self) -> bool:
        """True when replies are asked for as speech."""
        return False

    @property
    def prompted_tools(self) -> bool:
        """True when tools are offered in the prompt (`adapters.chat_audio.tool_prompt`)."""
        return False

    def request_fields(self, with_tools: bool) -> JsonObject:
        """Fields of a request beside model, messages and tools."""
        fields = self.model_dump(exclude_none=True, exclude={"headers", "usage_tells_hearing"})
        if not with_tools:
            # Refused by vendors when there are no tools.
            for name in ("tool_choice", "parallel_tool_calls"):
                fields.pop(name, None)
        return fields


class SpeakingSettings(ChatSettings):
    """`settings:` of a vendor that answers with speech as well."""

    modalities: Modalities = Field(default=["text", "audio"])
    """Audio by default: the gpt-audio family refuses a request without audio on either side, such as a text twin."""
    voice: str | None = None
    """Voice of the reply, the vendor's usual one unless set; only with audio."""
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> SpeakingSettings:
        if "text" not in self.modalities or len(set(self.modalities)) != len(self.modalities):
            raise ValueError("modalities must be [text] or [text, audio]")
        if self.voice is not None and not self.speaks:
            raise ValueError("voice needs audio among modalities")
        return self

    @property
    def speaks(self) -> bool:
        """True when replies are asked for as speech."""
        return "audio" in self.modalities

    @property
    def usual_voice(self) -> str:
        """What is sent where `voice` is left out: the field is required."""
        return "alloy"

    def request_fields(self, with_tools: bool) -> JsonObject:
        """As `ChatSettings` has it, and the voice."""
        fields = super().request_fields(with_tools)
        voice = fields.pop("voice", self.usual_voice)
        if self.speaks:
            fields["audio"] = {"voice": voice, "format": "wav"}
        return fields


class ChatAudioSettings(SpeakingSettings):
    """`settings:` of a target on any server of OpenAI's shape."""

    provider: dict[str, Any] | None = None
    """A router's choice of upstream, e.g. `{order: [openai], allow_fallbacks: false}`."""


class LocalSettings(ChatSettings):
    """`settings:` of a server that anybody runs, with models that may have no tool template."""

    tools: Literal["native", "prompt"] = "native"
    """`prompt`: the menu goes into the instructions and the answer is read as JSON, for models without a template."""
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def prompted_tools(self) -> bool:
        """True when tools are offered in the prompt."""
        return self.tools == "prompt"

    def request_fields(self, with_tools: bool) -> JsonObject:
        """As `ChatSettings` has it."""
        fields = super().request_fields(with_tools)
        del fields["tools"]
        return fields
