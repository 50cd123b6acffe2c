"""What differs between the models of Gemini Live; a profile is chosen by the model's name, or by a setting.

Facts: ai.google.dev/gemini-api/docs/live-api (models, thinking), as of November 2026. What a model refuses is refused
here before anything is sent, since the vendor closes with 1007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Thinking = Literal["budget", "level", "level_required", "none", "any"]
Behavior = Literal["BLOCKING", "NON_BLOCKING"]


@dataclass(frozen=True, slots=True)
class Profile:
    """One family of models."""

    name: str
    text_by_content: bool
    """The text twin goes as `clientContent`; else as `realtimeInput.text`."""
    content_answered: bool
    """`clientContent` with turnComplete is answered; else it only seeds the history."""
    behaviors: tuple[Behavior, ...]
    """Ways to call tools that may be asked for; the default first."""
    thinking: Thinking
    affective: bool
    proactive: bool
    """May be asked for; 3.8 always is."""
    context_update: bool
    states_interaction: bool
    """turnComplete comes with `interactionStatus`."""


GEMINI_2_5: Final = Profile("2.5", True, True, ("BLOCKING", "NON_BLOCKING"), "budget", True, True, False, False)
GEMINI_3_1: Final = Profile("3.1", False, False, ("BLOCKING",), "level", False, False, False, False)
GEMINI_3_8: Final = Profile("3.8", False, True, ("NON_BLOCKING", "BLOCKING"), "none", False, False, True, True)
GEMINI_3_8_EXTENDED: Final = Profile(
    "3.8-extended-thinking", False, True, ("NON_BLOCKING",), "level_required", False, False, True, True
)
OTHER: Final = Profile("other", False, True, ("BLOCKING", "NON_BLOCKING"), "any", True, True, True, False)
"""A model that is not known: the newest ways, and nothing refused on its behalf."""
PROFILES: Final = {
    profile.name: profile for profile in (GEMINI_2_5, GEMINI_3_1, GEMINI_3_8, GEMINI_3_8_EXTENDED, OTHER)
}


def profile_of(model: str) -> Profile:
    """The profile of a model by its name."""
    name = model.lower()
    if "extended-thinking" in name:
        return GEMINI_3_8_EXTENDED
    return next((PROFILES[version] for version in ("2.5", "3.1", "3.8") if f"-{version}-" in name), OTHER)
