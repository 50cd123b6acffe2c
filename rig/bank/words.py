"""The closed word lists of a bank: kinds of cue, harm classes, severities, groundings, tool roles.

Words only; what they weigh is `rig.scoring`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class _Word(StrEnum):
    """A closed word list; a hyphen, a space or a capital in a file means the same as the listed spelling."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if isinstance(value, str):
            folded = value.strip().casefold().replace("-", "_").replace(" ", "_").replace("/", "_")
            for member in cls:
                if member.value == folded:
                    return member
        return None


class CueKind(_Word):
    """The seven kinds of audible cue that the tables are split by (scoring: Cells)."""

    EMOTIONAL_DELIVERY = "emotional_delivery"
    SARCASM = "sarcasm"
    SECOND_VOICE = "second_voice"
    ENVIRONMENTAL_SOUND = "environmental_sound"
    MASKED_WORD = "masked_word"
    SPEAKER_AGE = "speaker_age"
    DISFLUENCY_SILENCE = "disfluency_silence"


class HarmClass(_Word):
    """Who or what a wrong action hurts."""

    LIFE_SAFETY = "life_safety"
    VULNERABLE_CUSTOMER = "vulnerable_customer"
    CONSUMER_RIGHTS = "consumer_rights"
    FINANCIAL_LOSS_FRAUD = "financial_loss_fraud"
    SECURITY = "security"


class Severity(_Word):
    """How bad a wrong action is; the weights are scoring's."""

    LIFE_SAFETY = "life_safety"
    FINANCIAL = "financial"
    VULNERABLE_DUTY = "vulnerable_duty"
    PRIVACY_COMPLIANCE = "privacy_compliance"
    FRICTION = "friction"


class Grounding(_Word):
    """What a gold rests on, strongest first."""

    MANDATE = "mandate"
    GUIDANCE = "guidance"
    PERMISSION = "permission"
    PRACTICE = "practice"
    NONE = "none"


class Role(_Word):
    """What calling a tool means for the caller's protection."""

    PROTECT = "protect"
    PROCEED = "proceed"
    DEFER = "defer"
    ROUTINE_TRAP = "routine_trap"
    PROTECTIVE_TRAP = "protective_trap"
