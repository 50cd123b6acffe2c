"""What the server half takes as a setup, and the words in which it refuses: the vendor closes with 1007 and a reason.

Keys come in camel or snake case, mixed (the SDK does so). Facts: google-genai 3.6.1 `types.py`; refusals of schema keys
as reported in thClaws/thClaws#172; those of models in ai.google.dev live-api pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from adapters.dialect import Setup, ToolSpec, TurnControlSettings, TurnMode
from adapters.foreign_json import MAX_DEPTH, JsonObject, brief
from adapters.gemini_live import wire
from adapters.gemini_live.profiles import Profile, profile_of
from adapters.gemini_live.wire import camel, field

MAX_TOOLS: Final = 512
_SETUP_KEYS: Final = frozenset(
    {
        *("model", "generationConfig", "systemInstruction", "tools", "realtimeInputConfig", "sessionResumption"),
        *("inputAudioTranscription", "outputAudioTranscription", "contextWindowCompression", "proactivity"),
        *("historyConfig", "explicitVadSignal", "avatarConfig", "safetySettings", "labels"),
    }
)
_SCHEMA_KEYS: Final = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties"),
        *("required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern"),
        *("example", "anyOf", "propertyOrdering", "default"),
    }
)
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class RefusedError(Exception):
    """A client message that the vendor closes for; the text is the close's reason."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A setup as the server keeps it."""

    setup: Setup
    profile: Profile
    manual: bool
    interrupts: bool
    """The caller's speech cuts the model's."""
    silence_ms: int
    behaviors: Mapping[str, str]
    """By tool."""
    speaks: bool
    """Answers are audio; else text."""
    transcribes_input: bool
    transcribes_output: bool
    resumable: bool


def accepted_setup(given: Any) -> Accepted:
    """The first message's `setup`.

    Raises:
        RefusedError: what the vendor would close for.
    """
    setup = _object(given, "setup")
    for key in setup:
        if camel(key) not in _SETUP_KEYS:
            raise RefusedError(f"Invalid JSON payload received. Unknown name \"{brief(key, 60)}\" at 'setup'")
    model = field(setup, "model")
    if not isinstance(model, str) or not model:
        raise RefusedError("setup.model must be set")
    profile = profile_of(model)
    generation = _object(field(setup, "generationConfig"), "setup.generation_config")
    _check_model(generation, _object(field(setup, "proactivity"), "setup.proactivity"), model, profile)
    realtime = _object(field(setup, "realtimeInputConfig"), "setup.realtime_input_config")
    detection = _object(field(realtime, "automaticActivityDetection"), "automatic_activity_detection")
    manual = field(detection, "disabled") is True
    silence_ms = field(detection, "silenceDurationMs")
    tools, behaviors = _tools(field(setup, "tools"), profile)
    modalities = field(generation, "responseModalities") or ["AUDIO"]
    return Accepted(
        setup=Setup(
            _words(field(setup, "systemInstruction")),
            tools,
            wire.INPUT_RATE_HZ,
            TurnControlSettings(TurnMode.MANUAL if manual else TurnMode.SERVER_VAD),
        ),
        profile=profile,
        manual=manual,
        interrupts=field(realtime, "activityHandling") != "NO_INTERRUPTION",
        silence_ms=silence_ms if isinstance(silence_ms, int) and silence_ms > 0 else 500,
        behaviors=behaviors,
        speaks="TEXT" not in [str(modality).upper() for modality in modalities if isinstance(modalities, list)],
        transcribes_input=field(setup, "inputAudioTranscription") is not None,
        transcribes_output=field(setup, "outputAudioTranscription") is not None,
        resumable=field(setup, "sessionResumption") is not None,
    )


def updated(accepted: Accepted, given: JsonObject) -> Accepted:
    """The setup after a `contextUpdate`.

    Raises:
        RefusedError: on models before 3.8, whose setup is fixed.
    """
    if not accepted.profile.context_update:
        raise RefusedError("context_update is not supported by this model")
    setup, behaviors = accepted.setup, accepted.behaviors
    instruction, tools = field(given, "systemInstruction"), field(given, "tools")
    if instruction is not None:
        setup = replace(setup, instructions=_words(instruction))
    if tools is not None:
        listed, behaviors = _tools(field(_object(tools, "context_update.tools"), "tools"), accepted.profile)
        setup = replace(setup, tools=listed)
    return replace(accepted, setup=setup, behaviors=behaviors)


def texts_of(content: Any) -> list[str]:
    """The texts in a `Content` object."""
    parts = content.get("parts") if isinstance(content, dict) else None
    found = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [text for text in found if isinstance(text, str)]


def _check_model(generation: JsonObject, proactivity: JsonObject, model: str, profile: Profile) -> None:
    thinking = field(generation, "thinkingConfig")
    level = field(thinking, "thinkingLevel") if isinstance(thinking, dict) else None
    if profile.thinking == "none" and thinking is not None:
        raise RefusedError(f"{brief(model, 100)} does not support thinking_config")
    if profile.thinking == "level_required" and str(level).upper() not in ("LOW", "MEDIUM", "HIGH"):
        raise RefusedError(f"{brief(model, 100)} requires thinking_level LOW, MEDIUM or HIGH")
    if field(generation, "enableAffectiveDialog") is not None and not profile.affective:
        raise RefusedError('Invalid JSON payload received. Unknown name "enableAffectiveDialog"')
    if field(proactivity, "proactiveAudio") is False and not profile.proactive:
        raise RefusedError("proactive_audio cannot be turned off on this model")


def _tools(given: Any, profile: Profile) -> tuple[tuple[ToolSpec, ...], dict[str, str]]:
    specs: list[ToolSpec] = []
    behaviors: dict[str, str] = {}
    for number, tool in enumerate(_list(given, "setup.tools")):
        place = f"setup.tools[{number}].function_declarations"
        declarations = _list(field(_object(tool, place), "functionDeclarations"), place)
        for index, declaration in enumerate(declarations):
            where = f"{place}[{index}]"
            declared = _object(declaration, where)
            name, description = field(declared, "name"), field(declared, "description")
            if not isinstance(name, str) or not name or len(specs) >= MAX_TOOLS:
                raise RefusedError(f"Invalid function name at '{where}.name'")
            # A schema given as `parametersJsonSchema` reaches the model as nothing (googleapis/python-genai#1147).
            parameters = field(declared, "parameters")
            schema: JsonObject = {"type": "object", "properties": {}}
            if parameters is not None:
                schema = json_schema(parameters, f"{where}.parameters")
            behavior = str(field(declared, "behavior") or profile.behaviors[0]).upper()
            if behavior not in profile.behaviors:
                raise RefusedError(f"{brief(behavior, 40)} function calling is not supported by this model")
            behaviors[name] = behavior
            specs.append(ToolSpec(name, description if isinstance(description, str) else "", schema))
    return tuple(specs), behaviors


def json_schema(given: Any, where: str, depth: int = 0) -> JsonObject:
    """A Gemini `Schema` as JSON Schema.

    Raises:
        RefusedError: what the API does not take: unknown keys, a list as `type`, values of an enum that are no strings.
    """
    schema = {camel(key): value for key, value in _object(given, where).items()}
    if depth > MAX_DEPTH:
        raise RefusedError(f"Schema nested too deeply at '{brief(where, 60)}'")
    for key in schema:
        if key not in _SCHEMA_KEYS:
            raise RefusedError(
                f"Invalid JSON payload received. Unknown name \"{brief(key, 60)}\" at '{brief(where, 200)}'"
            )
    result: JsonObject = {
        key: value for key, value in schema.items() if key not in ("type", "nullable", "properties", "items", "anyOf")
    }
    kind = schema.get("type")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _TYPES):
        raise RefusedError(f"Invalid value at '{brief(where, 200)}.type' (type.googleapis.com/…Type)")
    enum = schema.get("enum")
    if enum is not None and (not isinstance(enum, list) or not all(isinstance(value, str) for value in enum)):
        raise RefusedError(f"Invalid value at '{brief(where, 200)}.enum' (TYPE_STRING)")
    if kind is not None:
        result["type"] = [kind.lower(), "null"] if schema.get("nullable") is True else kind.lower()
    if "properties" in schema:
        properties = _object(schema["properties"], f"{where}.properties")
        result["properties"] = {
            name: json_schema(inner, f"{where}.properties[{name}]", depth + 1) for name, inner in properties.items()
        }
    if "items" in schema:
        result["items"] = json_schema(schema["items"], f"{where}.items", depth + 1)
    elif result.get("type") == "array":
        raise RefusedError(f"{brief(where, 200)}.items: missing field.")
    if "anyOf" in schema:
        branches = _list(schema["anyOf"], f"{where}.any_of")
        result["anyOf"] = [json_schema(branch, f"{where}.any_of", depth + 1) for branch in branches]
    return result


def _words(content: Any) -> str:
    return "\n".join(texts_of(content))


def _object(value: Any, where: str) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RefusedError(f"Invalid value at '{brief(where, 200)}': an object is needed")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise RefusedError(f"Invalid value at '{brief(where, 200)}': a list is needed")
    return value
