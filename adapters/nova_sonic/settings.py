"""A target's settings, and the set-up events made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlunsplit

from pydantic import Field, StringConstraints

from adapters.dialect import SettingsError, Setup, TargetSettings, TurnControlSettings, TurnMode
from adapters.foreign_json import JsonObject
from adapters.nova_sonic import wire
from adapters.target_settings import StrictSettings, read_address, read_settings
from captures.frames import OutFrame
from transports.transport import Endpoint

EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Share = Annotated[float, Field(ge=0, le=1, strict=False)]


class NovaSettings(StrictSettings):
    """`settings:` of a target. `api_key_env` names the AWS secret access key."""

    stream: Literal["bedrock", "websocket"] = "bedrock"
    """`websocket`: the same JSON events as WebSocket messages, which is how the loopback emulator is reached."""
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")] = "us-east-1"
    access_key_env: EnvName = "AWS_ACCESS_KEY_ID"
    session_token_env: EnvName = "AWS_SESSION_TOKEN"
    """Of temporary credentials; the variable may be unset."""
    generation: Literal[1, 2] | None = None
    """Of the model, where its name does not tell."""
    voice: Words = "matthew"
    output_rate_hz: Literal[24_000, 16_000, 8_000] = 24_000
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    top_p: Share = 0.9
    temperature: Share = 0.7
    """Sampling as in the vendor's samples: the API states no defaults."""
    tool_choice: Literal["auto", "any"] | None = None
    late_call_grace_s: Annotated[float, Field(ge=0, le=10, strict=False)] = 1.0
    """After the end of the speech: the words that were spoken come behind it."""


class _Endpointing(StrictSettings):
    """Parameters of turn mode `server_vad`."""

    sensitivity: Literal["HIGH", "MEDIUM", "LOW"] | None = None


def generation_of(settings: NovaSettings, model: str) -> int:
    """1 for `amazon.nova-sonic-v1:0`, else 2."""
    return settings.generation or (1 if "nova-sonic-v1" in model else 2)


def endpoint_of(settings: NovaSettings, target: TargetSettings) -> Endpoint:
    """Where to connect. For `sdk`, the headers hold the names of environment variables, and the secret key.

    Raises:
        SettingsError: an address of the wrong kind.
    """
    if settings.stream == "websocket":
        schemes, example = ("ws", "wss", "http", "https"), "ws://127.0.0.1:8765/nova-sonic"
        if target.base_url is None:
            raise SettingsError("base_url: settings.stream websocket needs one (`rig emulate nova-sonic` prints it)")
        parts, label = read_address(target.base_url, schemes, example)
        scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
        url = urlunsplit((scheme, parts.netloc, parts.path, parts.query, ""))
        return Endpoint(url, {}, scheme + label[len(parts.scheme) :])
    if not target.model:
        raise SettingsError("model: needs the model's id, such as amazon.nova-2-sonic-v1:0")
    if target.base_url and not target.base_url.startswith("https:"):
        raise SettingsError("settings.stream: must be websocket for an address that is not https (an emulator's)")
    base = target.base_url or f"https://bedrock-runtime.{settings.region}.amazonaws.com"
    parts, _ = read_address(base, ("https",), "https://bedrock-runtime.us-east-1.amazonaws.com")
    label = f"https://{parts.netloc}/model/{quote(target.model, safe='')}/invoke-with-bidirectional-stream"
    headers = {
        "region": settings.region,
        "model": target.model,
        "access-key-env": settings.access_key_env,
        "session-token-env": settings.session_token_env,
        "secret-key": target.api_key or "",
    }
    return Endpoint(f"https://{parts.netloc}", headers, label)


def endpointing(turn_control: TurnControlSettings, generation: int) -> JsonObject:
    """Fields of `sessionStart` that set the vendor's own turn detection, which cannot be switched off.

    Raises:
        SettingsError: another mode or parameter; names the key.
    """
    if turn_control.mode is not TurnMode.SERVER_VAD:
        raise SettingsError(f"turn_control.mode: {turn_control.mode.value} does not exist here; use server_vad")
    sensitivity = read_settings(_Endpointing, turn_control.parameters, "turn_control").sensitivity
    if sensitivity is None:
        return {}
    field: Mapping[str, Any] = {"endpointingSensitivity": sensitivity}
    return {"turnDetectionConfiguration": field} if generation == 2 else dict(field)


def setup_events(settings: NovaSettings, generation: int, setup: Setup) -> list[OutFrame]:
    """Everything before the caller's first audio, in the order that the vendor insists on.

    Raises:
        SettingsError: see `endpointing`.
    """
    sampling = {"maxTokens": settings.max_tokens, "topP": settings.top_p, "temperature": settings.temperature}
    prompt: JsonObject = {
        "promptName": wire.PROMPT,
        "textOutputConfiguration": wire.TEXT_TYPE,
        "audioOutputConfiguration": {
            **_audio_type(settings.output_rate_hz),
            "voiceId": settings.voice,
        },
    }
    if setup.tools:
        tools: JsonObject = {"tools": [wire.tool_spec(tool) for tool in setup.tools]}
        if settings.tool_choice is not None:
            tools["toolChoice"] = {settings.tool_choice: {}}
        prompt["toolUseOutputConfiguration"] = {"mediaType": "application/json"}
        prompt["toolConfiguration"] = tools
    audio = {"audioInputConfiguration": _audio_type(wire.INPUT_RATE_HZ)}
    return [
        wire.event("sessionStart", {"inferenceConfiguration": sampling, **endpointing(setup.turn_control, generation)}),
        wire.event("promptStart", prompt),
        *wire.text_block("system", "SYSTEM", setup.instructions),
        wire.content_start(wire.CALLER, "AUDIO", "USER", True, audio),
    ]


def _audio_type(rate_hz: int) -> JsonObject:
    return {
        "mediaType": "audio/lpcm",
        "sampleRateHertz": rate_hz,
        "sampleSizeBits": 16,
        "channelCount": 1,
        "encoding": "base64",
        "audioType": "SPEECH",
    }
