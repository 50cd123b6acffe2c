"""A target's settings for a cascade: which stages it is made of."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from adapters.target_settings import HeaderText, StrictSettings

ENDPOINT = "endpoint"
"""Stages behind a request of their own: `/audio/transcriptions` and `/audio/tags`."""


class StageSettings(StrictSettings):
    """A stage that hears: an endpoint made for it, or a file-mode adapter that is asked to."""

    adapter: str = ENDPOINT
    """`endpoint`, or the name of any file-mode adapter."""
    model: str = ""
    base_url: str | None = None
    """Default: the text model's own address for an endpoint and for its own adapter, else the adapter's."""
    api_key: HeaderText | None = Field(default=None, repr=False)
    """Write it as ${NAME}. Default: the target's own, where the address is the text model's too."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The adapter's own; of an endpoint: EndpointSettings."""


class EndpointSettings(StrictSettings):
    """What an endpoint is told beside the audio. What is left out is not sent."""

    language: str | None = None
    """Without it short clips are misdetected."""
    prompt: str | None = None
    """Biases spelling: a prompt with values of arguments would leak the answer."""
    temperature: float | None = None
    fields: dict[str, str] = Field(default_factory=dict)
    """More form fields, for servers with switches of their own (fillers kept, and the like)."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)


class ModelSettings(StrictSettings):
    """The model that chooses the tool; its name, address and key are the target's."""

    adapter: str = "chat_audio"
    """Any file-mode adapter; `chat_audio` is asked for text alone."""
    settings: dict[str, Any] = Field(default_factory=dict)


class CascadeSettings(StrictSettings):
    """`settings:` of a target."""

    rung: Literal["words", "verbatim", "tags"] = "words"
    """`words`: fillers, repetitions and sound annotations taken out (the null). `verbatim`: the transcript as it came.
    `tags`: the words, and what a tagger measured in the audio."""
    transcriber: StageSettings = Field(default_factory=StageSettings)
    tagger: StageSettings | None = None
    """Of the rung `tags`; default there: an endpoint beside the transcriber's."""
    chat: ModelSettings = Field(default_factory=ModelSettings)

    @model_validator(mode="after")
    def _fits(self) -> CascadeSettings:
        if self.tagger is not None and self.rung != "tags":
            raise ValueError("a tagger is for rung: tags")
        return self
