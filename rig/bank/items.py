"""The item file format: tools, golds, scenes, variants, probe, followup, item (VoxParity's, with our additions).

Frozen models that say what a well-formed file may hold. Checks across several fields or files are `rig.bank.lint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    StringConstraints,
    field_validator,
    model_validator,
)

from rig.bank.words import CueKind

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
"""An id of an item or variant: safe as part of a file name."""
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
"""The strictest rule among the vendors' (letters, digits, `_`, `-`; 64 at most)."""
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
"""Text that is not blank."""
Admissible = Annotated[tuple[JsonValue, ...], Field(min_length=1)]
"""The values of one argument that count as right; for an array parameter each of them is a list."""

PARAM_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class BankModel(BaseModel):
    """Frozen; unknown keys are kept in `model_extra` so that the loader can warn about each of them."""

    model_config = ConfigDict(frozen=True, extra="allow")


def _type_mapping(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


JsonSchema = Annotated[Mapping[str, JsonValue], BeforeValidator(_type_mapping)]
"""A JSON schema; a bare type name stands for `{"type": name}`."""


class Param(BankModel):
    """One parameter of a tool."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")]
    type: Literal["string", "integer", "number", "boolean", "array", "object"] = "string"
    description: str = ""
    required: bool = False
    enum: Annotated[tuple[JsonValue, ...], Field(min_length=1)] | None = None
    items: JsonSchema | None = None
    """For an array: the schema of one element."""
    properties: Mapping[str, JsonSchema] | None = None
    """For an object: the schemas of its fields."""

    @model_validator(mode="before")
    @classmethod
    def _array_of(cls, data: Any) -> Any:
        """`array of string` is short for `type: array, items: {type: string}`."""
        if isinstance(data, dict) and isinstance(data.get("type"), str) and data["type"].startswith("array of "):
            return {**data, "type": "array", "items": data.get("items", data["type"].removeprefix("array of ").strip())}
        return data

    @model_validator(mode="after")
    def _known_element_type(self) -> Self:
        if self.items is not None:
            if self.type != "array":
                raise ValueError("only an array has items")
            if self.items.get("type", "string") not in PARAM_TYPES:
                raise ValueError(f"items: {self.items['type']!r} is not one of {', '.join(PARAM_TYPES)}")
        return self

    def json_schema(self) -> dict[str, Any]:
        """The parameter as a JSON schema, with what the file says and nothing more."""
        schema: dict[str, Any] = {"type": self.type}
        if self.description:
            schema["description"] = self.description
        if self.enum is not None:
            schema["enum"] = list(self.enum)
        if self.type == "array":
            schema["items"] = dict(self.items) if self.items is not None else {"type": "string"}
        if self.properties is not None:
            schema["properties"] = {name: dict(inner) for name, inner in self.properties.items()}
        return schema


class Tool(BankModel):
    """A typed action that the agent may call. A bank's standing actions are tools too."""

    name: ToolName
    description: Text
    params: tuple[Param, ...] = ()

    def json_schema(self) -> dict[str, Any]:
        """The `parameters` object that the vendors ask for: a JSON schema of type object."""
        return {
            "type": "object",
            "properties": {param.name: param.json_schema() for param in self.params},
            "required": [param.name for param in self.params if param.required],
        }


class Acceptable(BankModel):
    """An action that is not the gold but earns part of its credit."""

    tool: ToolName
    args: Mapping[str, Admissible] = Field(default_factory=dict)
    """Arguments that must match where stated; all others are free."""
    credit: Annotated[float, Field(gt=0, lt=1)]
    rationale: str = ""


class Gold(BankModel):
    """The right action on one variant; `tool` is None where the right action is no call."""

    tool: ToolName | None
    args: Mapping[str, Admissible] = Field(default_factory=dict)
    optional_args: Mapping[str, Admissible | None] = Field(default_factory=dict)
    """Arguments that may be left out, with their admissible values; None where the value is not scored."""
    rationale: str = ""
    acceptable: tuple[Acceptable, ...] = ()

    @field_validator("optional_args", mode="before")
    @classmethod
    def _names_alone(cls, value: object) -> object:
        """A list of names says that their values are not scored."""
        if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
            return dict.fromkeys(value)
        return value

    @model_validator(mode="after")
    def _no_call_has_no_arguments(self) -> Self:
        if self.tool is None and (self.args or self.optional_args):
            raise ValueError("no tool, so no arguments: empty args and optional_args, or name the tool")
        if both := sorted(set(self.args) & set(self.optional_args)):
            raise ValueError(f"both in args and in optional_args: {', '.join(both)}")
        return self


class Scene(BankModel):
    """What is audible besides the caller, or done to the caller's audio."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    """`background`, `dtmf`, `slot_noise`, `truncation`, `silence`, `disfluency`."""
    asset: Text | None = None
    """`tts:` (another voice), `real:` (a recording) or `synth:` (computed), then its name."""
    text: str | None = None
    slot: str | None = None
    """The words of the transcript that are masked or cut, or before which the caller halts."""
    speaker: Text | None = None
    """Profile of the second voice, as `Variant.speaker`; an adult where absent."""
    emotion: Text | None = None
    """How the second voice speaks, as `Variant.emotion`; neutral where absent."""
    intensity: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    snr_db: FiniteFloat | None = None
    start_s: Annotated[FiniteFloat, Field(ge=0)] | None = None
    seed: int | None = None


class Variant(BankModel):
    """One audio rendering of an item, and what is right on hearing it."""

    variant_id: Identifier
    emotion: Text = "neutral"
    intensity: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    speaker: Text | None = None
    """A profile such as `child`, only where the voice itself is the cue."""
    channel: Text | None = None
    """What carries the caller's audio, e.g. `g711_ulaw`; the same for all variants, since it is no cue."""
    scene: Scene | None = None
    gold: Gold
    audio_sha256: str | None = None
    source: str | None = None
    validated: bool | None = None

    @property
    def axis(self) -> Literal["scene", "speaker", "delivery"]:
        """Where the cue lies. A channel alone is no cue."""
        if self.scene is not None:
            return "scene"
        return "speaker" if self.speaker is not None else "delivery"

    @property
    def cue_class(self) -> str:
        """`scene:<kind>`, `speaker:<profile>`, or the emotion of the delivery."""
        if self.scene is not None:
            return f"scene:{self.scene.kind}"
        return f"speaker:{self.speaker}" if self.speaker is not None else self.emotion

    @property
    def is_neutral(self) -> bool:
        """True where nothing but the words is to be heard; all else is cue-bearing."""
        return self.axis == "delivery" and self.emotion == "neutral"

    @property
    def cue_kind(self) -> CueKind | None:
        """The kind of cue as the file implies it, None on a neutral variant (`Bank.cue_kind` knows overrides)."""
        if self.scene is not None:
            return self._scene_kind(self.scene)
        if self.speaker is not None:
            return CueKind.SPEAKER_AGE
        if self.emotion == "neutral":
            return None
        return _DELIVERY_KINDS.get(self.emotion, CueKind.EMOTIONAL_DELIVERY)

    @staticmethod
    def _scene_kind(scene: Scene) -> CueKind:
        if scene.kind == "background" and (scene.asset or "").startswith("tts:"):
            return CueKind.SECOND_VOICE
        return _SCENE_KINDS.get(scene.kind, CueKind.DISFLUENCY_SILENCE)


_SCENE_KINDS = {
    "background": CueKind.ENVIRONMENTAL_SOUND,
    "dtmf": CueKind.ENVIRONMENTAL_SOUND,
    "slot_noise": CueKind.MASKED_WORD,
}
_DELIVERY_KINDS = {
    "sarcasm": CueKind.SARCASM,
    "sarcastic": CueKind.SARCASM,
    "disfluent": CueKind.DISFLUENCY_SILENCE,
    "hesitant": CueKind.DISFLUENCY_SILENCE,
}


class Probe(BankModel):
    """The forced-choice question of what can be heard, asked without tools or policy."""

    question: Text
    options: Annotated[tuple[Text, ...], Field(min_length=2)]
    gold_by_variant: Mapping[str, str]


class Followup(BankModel):
    """A scripted second turn: the agent asked (or the like), is told so, and the caller answers."""

    trigger_tools: Annotated[tuple[ToolName, ...], Field(min_length=1)]
    """A first call with one of these starts it."""
    result: Text
    """What the tool returns to the agent."""
    reply: Text
    """The caller's words in the second turn."""
    gold_by_variant: Mapping[Identifier, Gold] = Field(default_factory=dict)
    """What is right after the reply; the variant's own gold where it is not named."""


class Item(BankModel):
    """A call reduced to its moment of decision: one transcript, two or more variants."""

    id: Identifier
    tier: str | None = None
    track: str | None = None
    policy_mode: Literal["explicit", "implicit"]
    domain: Text
    transcript: Text
    scenario: Text
    explicit_policy: Text | None = None
    tools: tuple[Tool, ...]
    variants: Annotated[tuple[Variant, ...], Field(min_length=1)]
    perception_probe: Probe | None = None
    review: str | None = None
    legacy: bool | None = None
    held: bool | None = None
    design: str | None = None
    """`invariant_control`: the right action is the same on every variant; out of every headline."""
    followup: Followup | None = None
    canary: str | None = None

    @property
    def is_control(self) -> bool:
        """True for an invariant control."""
        return self.design == "invariant_control"

    def variant(self, variant_id: str) -> Variant:
        """The variant of that id; KeyError where there is none."""
        for variant in self.variants:
            if variant.variant_id == variant_id:
                return variant
        raise KeyError(f"{self.id} has no variant {variant_id!r}")

    def second_gold(self, variant: Variant) -> Gold:
        """What is right on `variant` in the second turn."""
        return (
            variant.gold
            if self.followup is None
            else self.followup.gold_by_variant.get(variant.variant_id, variant.gold)
        )
