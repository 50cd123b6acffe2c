"""Reads `deliveries.yaml`: what an emotion at an intensity, and a speaker profile, do to the neutral voice.

Synthesis gives no acting: except for `neutral`, a delivery only suggests what its name says, and says why it falls
short. What the figures do to samples is `rig.bank.rendering.vocoder`; that they arrived is `rig.bank.rendering.gates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from rig.bank.yaml_file import YamlFileError, read_yaml

_MAX_BYTES = 64 * 1024
Figure = FiniteFloat | tuple[FiniteFloat, FiniteFloat]
"""One number, or the numbers at intensity 0 and 1."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Settings(_Strict):
    """What is done to a neutral voice; every default leaves it as it is. Units: `deliveries.yaml`."""

    pitch_st: FiniteFloat = 0.0
    pitch_hz: Annotated[FiniteFloat, Field(gt=0)] | None = None
    """Median pitch to reach before `pitch_st`, whatever the voice's own."""
    pitch_range: Annotated[FiniteFloat, Field(ge=0)] = 1.0
    final_st: FiniteFloat = 0.0
    jitter_st: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    tremor_hz: Annotated[FiniteFloat, Field(gt=0, le=12)] = 6.0
    tremor_st: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    tremor_db: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    rate: Annotated[FiniteFloat, Field(ge=0.4, le=2.5)] = 1.0
    unevenness: Annotated[FiniteFloat, Field(ge=0, le=0.5)] = 0.0
    drawl: Annotated[FiniteFloat, Field(ge=0.5, le=2)] = 1.0
    hold: Annotated[FiniteFloat, Field(ge=1, le=3)] = 1.0
    pauses: Annotated[FiniteFloat, Field(ge=0, le=10)] = 0.0
    pause_s: Annotated[FiniteFloat, Field(ge=0, le=2)] = 0.0
    gasp_db: FiniteFloat | None = None
    level_db: FiniteFloat = 0.0
    tilt_db: FiniteFloat = 0.0
    breathiness: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.0
    whisper: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.0
    formants: Annotated[FiniteFloat, Field(ge=0.5, le=2)] = 1.0
    tract: Annotated[FiniteFloat, Field(ge=0.5, le=2)] | None = None
    """Vocal-tract resonances to reach before `formants`, against an adult woman's."""
    smoothing_s: Annotated[FiniteFloat, Field(ge=0, le=0.3)] = 0.0

    @property
    def is_plain(self) -> bool:
        """True where nothing is changed."""
        return self == Settings()

    def with_emotion(self, emotion: Settings) -> Settings:
        """A speaker's settings (these) with an emotion's on top: shifts add up, ratios multiply, the rest is its own.

        Of two tremors the stronger stays.
        """
        mine, theirs = self.model_dump(), emotion.model_dump()
        joined = {name: mine[name] + theirs[name] for name in _SHIFTS}
        joined |= {name: mine[name] * theirs[name] for name in _RATIOS}
        joined["breathiness"] = 1.0 - (1.0 - self.breathiness) * (1.0 - emotion.breathiness)
        shaken = emotion if emotion.tremor_st + emotion.tremor_db > self.tremor_st + self.tremor_db else self
        joined |= {name: getattr(shaken, name) for name in ("tremor_hz", "tremor_st", "tremor_db")}
        joined |= {"pitch_hz": self.pitch_hz, "tract": self.tract}
        return Settings(**{**theirs, **joined})


_SHIFTS = ("pitch_st", "final_st", "jitter_st", "level_db", "tilt_db")
_RATIOS = ("pitch_range", "rate", "drawl", "formants")


class Delivery(_Strict):
    """Settings at one intensity, and why they only suggest what they are named after (None: they do not)."""

    settings: Settings = Settings()
    reason: str | None = None


class _Scale(_Strict):
    """One entry of the file: figures at both ends of the intensity scale."""

    least: Settings
    full: Settings
    reason: str | None

    @model_validator(mode="before")
    @classmethod
    def _both_ends(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        figures = {name: value for name, value in data.items() if name != "reason"}
        for name, value in figures.items():
            if isinstance(value, list) and len(value) != 2:
                raise ValueError(f"{name}: write one number, or [at intensity 0, at intensity 1]")
        ends = [
            {name: value[end] if isinstance(value, list) else value for name, value in figures.items()}
            for end in (0, 1)
        ]
        return {"least": ends[0], "full": ends[1], "reason": data.get("reason")}

    def at(self, intensity: float) -> Settings:
        """The settings on the line between both ends."""
        low, high = self.least.model_dump(), self.full.model_dump()
        return Settings(**{n: v if v is None else v + (high[n] - v) * intensity for n, v in low.items()})


class _DeliveryFile(_Strict):
    version: Literal[1]
    default_intensity: Annotated[FiniteFloat, Field(ge=0, le=1)]
    emotions: Mapping[str, _Scale]
    aliases: Mapping[str, str]
    speakers: Mapping[str, _Scale]

    @model_validator(mode="after")
    def _consistent(self) -> _DeliveryFile:
        if wrong := sorted(set(self.aliases.values()) - set(self.emotions)):
            raise ValueError(f"aliases of no emotion here: {', '.join(wrong)}")
        if both := sorted(set(self.aliases) & set(self.emotions)):
            raise ValueError(f"both alias and emotion: {', '.join(both)}")
        return self


def delivery_file_path() -> Path:
    """Where the one data file of deliveries is."""
    return Path(str(files("rig.bank.rendering").joinpath("deliveries.yaml")))


def read_deliveries(path: Path) -> _DeliveryFile:
    """The file; raises ValueError with one line for each thing wrong in it."""
    try:
        return _DeliveryFile.model_validate(read_yaml(path, _MAX_BYTES))
    except YamlFileError as error:
        raise ValueError(f"{path}: {error}") from error
    except ValidationError as error:
        lines = [f"{path}: {'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]
        raise ValueError("\n".join(lines)) from error


@cache
def _packaged() -> _DeliveryFile:
    return read_deliveries(delivery_file_path())


def emotions() -> frozenset[str]:
    """Every emotion that can be rendered, aliases included."""
    return frozenset(_packaged().emotions) | frozenset(_packaged().aliases)


def speakers() -> frozenset[str]:
    """Every speaker profile that can be rendered."""
    return frozenset(_packaged().speakers)


def emotion_name(emotion: str) -> str:
    """The emotion that a name stands for; a name that is not known stands for itself."""
    return _packaged().aliases.get(emotion, emotion)


def emotion_delivery(emotion: str, intensity: float | None) -> Delivery:
    """The delivery of an emotion; `intensity` None stands for the file's default. Raises ValueError for others."""
    table = _packaged()
    name = emotion_name(emotion)
    if name not in table.emotions:
        raise ValueError(f"emotion {emotion!r} has no delivery; known: {', '.join(sorted(emotions()))}")
    scale = table.emotions[name]
    return Delivery(settings=scale.at(table.default_intensity if intensity is None else intensity), reason=scale.reason)


def speaker_delivery(speaker: str | None) -> Delivery:
    """What a speaker profile does to an adult voice; None is an adult. Raises ValueError for an unknown one."""
    table = _packaged()
    name = speaker or "adult"
    if name not in table.speakers:
        raise ValueError(f"speaker {speaker!r} cannot be rendered; known: {', '.join(sorted(speakers()))}")
    return Delivery(settings=table.speakers[name].full, reason=table.speakers[name].reason)


def delivery_of(emotion: str, intensity: float | None, speaker: str | None) -> Delivery:
    """An emotion spoken by a speaker profile, with the reasons of both. Raises ValueError for an unknown name."""
    felt, voice = emotion_delivery(emotion, intensity), speaker_delivery(speaker)
    reasons = [reason for reason in (voice.reason, felt.reason) if reason]
    return Delivery(settings=voice.settings.with_emotion(felt.settings), reason="; ".join(reasons) or None)


def known_emotion(name: str) -> str:
    """The name, for a model's field; raises ValueError where it has no delivery."""
    emotion_delivery(name, None)
    return name


EmotionName = Annotated[str, AfterValidator(known_emotion)]
