"""A target's settings and turn control, checked against its model, and the `setup` made of them.

What is left out is not sent, so that the vendor's default holds. Facts: ai.google.dev live-api, google-genai 3.6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlunsplit

from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.gemini_live import wire
from adapters.gemini_live.profiles import PROFILES, Profile, profile_of
from adapters.gemini_live.schema import Translated
from adapters.target_settings import HeaderText, StrictSettings, bearer_headers, read_address, read_settings

_SCHEMES: Final = ("ws", "wss", "http", "https")
EPHEMERAL: Final = "auth_tokens/"
"""How short-lived tokens begin; they go into another header."""
Words = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class Resumption(StrictSettings):
    """`sessionResumption`: the vendor then sends handles with which the session can be taken up again."""

    handle: Annotated[str, StringConstraints(max_length=10_000)] | None = Field(default=None, repr=False)
    transparent: bool | None = None


class GeminiLiveSettings(StrictSettings):
    """`settings:` of a target."""

    profile: Literal["2.5", "3.1", "3.8", "3.8-extended-thinking", "other"] | None = None
    """How the model behaves, where its name does not tell."""
    key_in: Literal["header", "query", "bearer"] | None = None
    """`x-goog-api-key`, `?key=`, or an OAuth token (Vertex); by default the header."""
    voice: Words | None = None
    language: Words | None = None
    response_modality: Literal["AUDIO", "TEXT"] = "AUDIO"
    output_transcription: bool = True
    """The agent's own words, without which a spoken answer to a probe could not be read."""
    input_transcription: bool = False
    temperature: Annotated[float, Field(ge=0, le=2, strict=False)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking_level: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    thinking_budget: Annotated[int, Field(ge=-1)] | None = None
    affective_dialog: bool | None = None
    proactive_audio: bool | None = None
    tool_behavior: Literal["BLOCKING", "NON_BLOCKING"] | None = None
    result_scheduling: Literal["SILENT", "WHEN_IDLE", "INTERRUPT"] | None = None
    """When the result of a NON_BLOCKING call is voiced."""
    text_as: Literal["realtime_input", "client_content"] | None = None
    """How the text twin goes, against the model's usual way."""
    late_call_grace_s: Annotated[float, Field(ge=0, le=10, strict=False)] | None = None
    session_resumption: Resumption | None = None
    context_window_compression: bool = False
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake."""


class ServerVad(StrictSettings):
    """Parameters of turn mode `server_vad` (`automaticActivityDetection` and beside it)."""

    start_of_speech_sensitivity: Literal["high", "low"] | None = None
    end_of_speech_sensitivity: Literal["high", "low"] | None = None
    prefix_padding_ms: Annotated[int, Field(ge=0)] | None = None
    silence_duration_ms: Annotated[int, Field(ge=0)] | None = None
    activity_handling: Literal["START_OF_ACTIVITY_INTERRUPTS", "NO_INTERRUPTION"] | None = None
    turn_coverage: (
        Literal[
            "TURN_INCLUDES_ONLY_ACTIVITY",
            "TURN_INCLUDES_ALL_INPUT",
            "TURN_INCLUDES_AUDIO_ACTIVITY_AND_ALL_VIDEO",
        ]
        | None
    ) = None


class Manual(StrictSettings):
    """Turn mode `manual` has no parameters."""


TURN_MODES: Final = frozenset({TurnMode.MANUAL, TurnMode.SERVER_VAD})


def checked(target: TargetSettings) -> tuple[GeminiLiveSettings, Profile]:
    """A target's settings and its model's profile.

    Raises:
        SettingsError: an unknown key, a wrong value, or one that the model refuses; names the key.
    """
    settings = read_settings(GeminiLiveSettings, target.extra)
    profile = PROFILES[settings.profile] if settings.profile else profile_of(target.model)
    if not target.model:
        raise SettingsError("model: Gemini Live needs one, e.g. gemini-2.5-flash-native-audio-preview-12-2025")
    level, budget = settings.thinking_level, settings.thinking_budget
    if profile.thinking == "none" and (level is not None or budget is not None):
        key = "thinking_level" if level is not None else "thinking_budget"
        raise SettingsError(f"settings.{key}: {target.model} takes no thinking settings")
    if profile.thinking == "budget" and level is not None:
        raise SettingsError(f"settings.thinking_level: {target.model} takes thinking_budget instead")
    if profile.thinking in ("level", "level_required") and budget is not None:
        raise SettingsError(f"settings.thinking_budget: {target.model} takes thinking_level instead")
    if profile.thinking == "level_required" and level not in ("low", "medium", "high"):
        raise SettingsError(f"settings.thinking_level: {target.model} needs low, medium or high")
    if settings.affective_dialog is not None and not profile.affective:
        raise SettingsError(f"settings.affective_dialog: {target.model} does not take it, not even as false")
    if settings.proactive_audio is not None and not profile.proactive:
        raise SettingsError(f"settings.proactive_audio: {target.model} does not take it")
    if settings.tool_behavior is not None and settings.tool_behavior not in profile.behaviors:
        raise SettingsError(f"settings.tool_behavior: {target.model} calls tools {profile.behaviors[0]} only")
    return settings, profile


def behavior_of(settings: GeminiLiveSettings, profile: Profile) -> str:
    """How tools are called: as asked for, else the model's default."""
    return settings.tool_behavior or profile.behaviors[0]


def realtime_input_config(turn_control: TurnControlSettings) -> JsonObject:
    """`realtimeInputConfig` for a way of ending turns.

    Raises:
        SettingsError: a mode or parameter that the API does not have; names the key.
    """
    if turn_control.mode is TurnMode.MANUAL:
        read_settings(Manual, turn_control.parameters, "turn_control")
        return {"automaticActivityDetection": {"disabled": True}}
    if turn_control.mode is not TurnMode.SERVER_VAD:
        raise SettingsError(f"turn_control.mode: {turn_control.mode} is not one of {', '.join(sorted(TURN_MODES))}")
    given = read_settings(ServerVad, turn_control.parameters, "turn_control")
    detection: JsonObject = {}
    if given.start_of_speech_sensitivity is not None:
        detection["startOfSpeechSensitivity"] = f"START_SENSITIVITY_{given.start_of_speech_sensitivity.upper()}"
    if given.end_of_speech_sensitivity is not None:
        detection["endOfSpeechSensitivity"] = f"END_SENSITIVITY_{given.end_of_speech_sensitivity.upper()}"
    detection |= _stated(prefixPaddingMs=given.prefix_padding_ms, silenceDurationMs=given.silence_duration_ms)
    return {
        "automaticActivityDetection": detection,
        **_stated(activityHandling=given.activity_handling, turnCoverage=given.turn_coverage),
    }


def setup_object(model: str, settings: GeminiLiveSettings, setup: Setup, tools: Sequence[Translated]) -> JsonObject:
    """`setup`, the first message of a session; `tools` are the translated parameters of `setup.tools`.

    Raises:
        SettingsError: see `realtime_input_config`.
    """
    made: JsonObject = {
        "model": model if "/" in model else f"models/{model}",
        "generationConfig": _generation_config(settings),
        "systemInstruction": {"parts": [{"text": setup.instructions}]},
        "realtimeInputConfig": realtime_input_config(setup.turn_control),
    }
    if setup.tools:
        declarations = [
            {"name": tool.name, "description": tool.description}
            | _stated(parameters=translated.parameters, behavior=settings.tool_behavior)
            for tool, translated in zip(setup.tools, tools, strict=True)
        ]
        made["tools"] = [{"functionDeclarations": declarations}]
    if settings.output_transcription and settings.response_modality == "AUDIO":
        made["outputAudioTranscription"] = {}
    if settings.input_transcription:
        made["inputAudioTranscription"] = {}
    if settings.proactive_audio is not None:
        made["proactivity"] = {"proactiveAudio": settings.proactive_audio}
    if settings.session_resumption is not None:
        made["sessionResumption"] = settings.session_resumption.model_dump(exclude_none=True)
    if settings.context_window_compression:
        made["contextWindowCompression"] = {"slidingWindow": {}}
    return made


def _generation_config(settings: GeminiLiveSettings) -> JsonObject:
    speech = _stated(languageCode=settings.language)
    if settings.voice is not None:
        speech["voiceConfig"] = {"prebuiltVoiceConfig": {"voiceName": settings.voice}}
    level = settings.thinking_level
    thinking = _stated(thinkingBudget=settings.thinking_budget, thinkingLevel=level and level.upper())
    return {
        "responseModalities": [settings.response_modality],
        **_stated(
            speechConfig=speech or None,
            temperature=settings.temperature,
            maxOutputTokens=settings.max_output_tokens,
            thinkingConfig=thinking or None,
            enableAffectiveDialog=settings.affective_dialog,
        ),
    }


def _stated(**values: Any) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def address(settings: GeminiLiveSettings, base_url: str | None, api_key: str | None) -> tuple[str, dict[str, str], str]:
    """URL with its query, headers, and label without secrets. `http(s)` stands for `ws(s)`.

    An address without a path gets the API's own; a key in the query is never part of the label.

    Raises:
        SettingsError: not such an address, or a key that cannot be sent.
    """
    parts, label = read_address(base_url or f"wss://{wire.HOST}", _SCHEMES, f"wss://{wire.HOST}")
    ephemeral = bool(api_key) and str(api_key).startswith(EPHEMERAL)
    path = parts.path
    if path in ("", "/"):
        path = wire.TOKEN_PATH if ephemeral else wire.PATH
        label = label.removesuffix("/") + path
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    label = scheme + label.removeprefix(parts.scheme)
    query = parse_qsl(parts.query, keep_blank_values=True)
    headers = dict(settings.headers)
    if api_key:
        bearer = bearer_headers({}, api_key)["Authorization"]  # refuses a key that no header can carry
        if settings.key_in == "query":
            query.append(("key", api_key))
        elif settings.key_in == "bearer":
            headers["Authorization"] = bearer
        elif ephemeral:
            headers["Authorization"] = f"Token {api_key}"
        else:
            headers["x-goog-api-key"] = api_key
    return urlunsplit((scheme, parts.netloc, path, urlencode(query), "")), headers, label
