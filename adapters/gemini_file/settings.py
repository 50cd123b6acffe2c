"""A target's settings for generateContent, and where its requests go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from adapters.dialect import SettingsError, TargetSettings
from adapters.foreign_json import JsonObject
from adapters.target_settings import HeaderText, StrictSettings, bearer_headers, read_address
from transports.transport import Endpoint

BASE_URL: Final = "https://generativelanguage.googleapis.com"
KEY_HEADER: Final = "x-goog-api-key"
MAX_REQUEST_BYTES: Final = 100_000_000
"""Of a request with inline data, since 2026 (blog.google, gemini-api-new-file-limits)."""
MAX_AUDIO_S: Final = 9.5 * 3600
"""Of one prompt (ai.google.dev/gemini-api/docs/audio)."""


class GeminiFileSettings(StrictSettings):
    """`settings:` of a target. What is left out is not sent, so that the vendor's default holds."""

    api_version: Literal["v1", "v1beta"] = "v1beta"
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    seed: int | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    """Thinking counts against it: a small one leaves no answer."""
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = None
    """Levels differ by model."""
    thinking_budget: Annotated[int, Field(ge=-1)] | None = None
    function_calling: Literal["AUTO", "ANY", "NONE", "VALIDATED"] | None = None
    usage_tells_hearing: bool = True
    """Usage that counts zero audio tokens voids the row."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the request; values are secret."""

    @model_validator(mode="after")
    def _one_measure(self) -> GeminiFileSettings:
        if self.thinking_level is not None and self.thinking_budget is not None:
            raise ValueError("thinking_level and thinking_budget exclude each other")
        return self

    def generation_config(self) -> JsonObject:
        """`generationConfig` of a request."""
        thinking = _stated(
            thinkingLevel=self.thinking_level and self.thinking_level.upper(), thinkingBudget=self.thinking_budget
        )
        return _stated(
            temperature=self.temperature,
            topP=self.top_p,
            seed=self.seed,
            maxOutputTokens=self.max_output_tokens,
            thinkingConfig=thinking or None,
        )


@dataclass(frozen=True, slots=True)
class GeminiEndpoint(Endpoint):
    """The API's address, and the model, which stands in the path of each request."""

    model: str = ""
    api_version: str = ""


def endpoint(target: TargetSettings, settings: GeminiFileSettings) -> GeminiEndpoint:
    """Where a target's requests go.

    Raises:
        SettingsError: no model, a Live model, an address that is none, or a key that no header can carry.
    """
    model = target.model.removeprefix("models/")
    if not model or not model.isascii() or "/" in model or ":" in model:
        raise SettingsError("model: required, e.g. gemini-3.8-flash")
    if "-live" in model or "native-audio" in model:
        raise SettingsError(f"model: {model} is a Live model, which answers no whole clips; use adapter: gemini_live")
    base_url = target.base_url or BASE_URL
    parts, label = read_address(base_url, ("http", "https"), BASE_URL)
    if parts.query or parts.fragment:
        raise SettingsError("base_url: must end before any ? or #")
    headers = dict(settings.headers)
    if target.api_key:
        bearer_headers({}, target.api_key)  # refuses a key that no header can carry
        headers[KEY_HEADER] = target.api_key
    return GeminiEndpoint(base_url, headers, label, model, settings.api_version)


def _stated(**values: object) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
