"""Server half of generateContent, for one request: body in, body out.

In `ServerStep.close` stands the HTTP status of a refusal. Calls carry a signature, and a conversation that lost one is
refused, as Gemini 3 does it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from types import MappingProxyType
from typing import Any, Final

import orjson

from adapters.chat_audio import wav
from adapters.dialect import Setup, ToolSpec
from adapters.foreign_json import JsonObject, decode, list_of, object_of, objects_of, text_of
from adapters.gemini_live.server_rules import RefusedError, json_schema
from adapters.gemini_live.wire import camel, decode_audio, field
from adapters.server import AnswerWanted, AudioGiven, Intent, Reply, ServerStep, SetupGiven, ToolResultGiven
from captures.frames import InFrame, OutFrame

_TOKENS_PER_S: Final = 32
_RATE_HZ: Final = 16_000
_STATUS: Final[Mapping[str, tuple[int, str]]] = {
    "rate_limit_exceeded": (429, "RESOURCE_EXHAUSTED"),
    "insufficient_quota": (429, "RESOURCE_EXHAUSTED"),
}
_KEYS: Final = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "labels"}
    | {"cachedContent", "store", "serviceTier"}
)


def _cut_arguments(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """Arguments are objects here, so that none can be cut: text that is no JSON object takes their place."""
    for frame in frames:
        body = decode(frame.payload) or {}
        for candidate in list_of(body, "candidates"):
            for part in list_of(object_of(candidate, "content"), "parts"):
                if "functionCall" in part:
                    part["functionCall"]["args"] = '{"cut'
        yield OutFrame(orjson.dumps(body))


def _deaf(frames: Iterable[OutFrame]) -> Iterator[OutFrame]:
    """The usage counts no audio, as if it had been dropped."""
    for frame in frames:
        body = decode(frame.payload) or {}
        usage = object_of(body, "usageMetadata")
        kept = [entry for entry in list_of(usage, "promptTokensDetails") if entry.get("modality") != "AUDIO"]
        if "promptTokensDetails" in usage:
            usage["promptTokensDetails"] = kept
        yield OutFrame(orjson.dumps(body))


class GeminiFileServer:
    """`ServerDialect` of generateContent."""

    answer_faults = MappingProxyType({"cut-arguments": _cut_arguments, "deaf": _deaf})

    def __init__(self) -> None:
        self._digest = ""
        self._heard_s = 0.0

    def greeting(self, query: Mapping[str, str]) -> Sequence[OutFrame]:
        """Nothing: the request comes first."""
        return ()

    def receive(self, frame: InFrame) -> ServerStep:
        """Setup, caller turn and the wish for an answer, from one request body."""
        try:
            return ServerStep(intents=self._intents(frame.payload))
        except (RefusedError, wav.WavError) as error:
            return ServerStep([_error(400, "INVALID_ARGUMENT", str(error))], close=(400, "INVALID_ARGUMENT"))

    def _intents(self, payload: bytes) -> list[Intent]:
        given = decode(payload)
        if given is None:
            raise RefusedError("Invalid JSON payload received.")
        body = {camel(key): value for key, value in given.items()}
        for key in body:
            if key not in _KEYS:
                raise RefusedError(f'Invalid JSON payload received. Unknown name "{key[:60]}"')
        self._digest = hashlib.sha256(payload).hexdigest()
        contents = [content for content in list_of(body, "contents") if isinstance(content, dict)]
        _check_signatures(contents)
        results: list[Intent] = []
        for content in reversed(contents):
            if content.get("role") == "model":
                continue
            parts = [part for part in list_of(content, "parts") if isinstance(part, dict)]
            answers = [part for part in parts if isinstance(field(part, "functionResponse"), dict)]
            if not answers:
                return self._turn(body, parts, results)
            results = [ToolResultGiven(*_result(field(part, "functionResponse"))) for part in answers] + results
        raise RefusedError("contents is not specified")

    def _turn(self, body: JsonObject, parts: Sequence[JsonObject], results: Sequence[Intent]) -> list[Intent]:
        audio = [_audio(data) for part in parts if isinstance(data := field(part, "inlineData"), dict)]
        self._heard_s = sum(len(piece.pcm) / 2 / piece.rate_hz for piece in audio)
        words = None if audio else "".join(text_of(part, "text") or "" for part in parts)
        told = list_of(object_of(body, "systemInstruction"), "parts")
        instructions = "\n".join(text_of(part, "text") or "" for part in told if isinstance(part, dict))
        lists = [field(tool, "functionDeclarations") for tool in objects_of(body, "tools")]
        declared = [one for given in lists if isinstance(given, list) for one in given if isinstance(one, dict)]
        setup = Setup(instructions, tuple(_tool(one) for one in declared), audio[0].rate_hz if audio else _RATE_HZ)
        return [SetupGiven(setup), *audio, *results, AnswerWanted(words)]

    def answer(self, reply: Reply) -> Iterable[OutFrame]:
        """One frame: the response body. Text alone: speech comes from other models."""
        parts: list[JsonObject] = [{"text": reply.text}] if reply.text else []
        for index, call in enumerate(reply.calls):
            called = {"id": f"call-{self._digest[:12]}-{index}", "name": call.name, "args": dict(call.arguments)}
            signature = base64.b64encode(f"rig-{index}".encode()).decode()
            parts.append({"functionCall": called, "thoughtSignature": signature})
        audio = ceil(_TOKENS_PER_S * self._heard_s)
        details = [{"modality": "TEXT", "tokenCount": 200}]
        if audio:
            details.append({"modality": "AUDIO", "tokenCount": audio})
        usage: dict[str, Any] = {
            "promptTokenCount": 200 + audio,
            "candidatesTokenCount": 20,
            "totalTokenCount": 220 + audio,
            "promptTokensDetails": details,
        }
        yield OutFrame(
            orjson.dumps(
                {
                    "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                    "usageMetadata": dict(reply.usage) or usage,
                    "modelVersion": "rig-emulator",
                    "responseId": self._digest[:22],
                }
            )
        )

    def failure(self, code: str, message: str) -> Sequence[OutFrame]:
        """The body of a failed request."""
        status, name = _STATUS.get(code, (500, "INTERNAL"))
        return [_error(status, name, f"{code}: {message}")]


def _error(status: int, name: str, message: str) -> OutFrame:
    return OutFrame(orjson.dumps({"error": {"code": status, "message": message, "status": name}}))


def _check_signatures(contents: Sequence[JsonObject]) -> None:
    for content in contents:
        for part in list_of(content, "parts"):
            if isinstance(part, dict) and field(part, "functionCall") and not field(part, "thoughtSignature"):
                raise RefusedError("Function call is missing a thought_signature in functionCall parts.")


def _result(given: JsonObject) -> tuple[str, str]:
    response = given.get("response")
    if not isinstance(response, dict):
        raise RefusedError("function_response.response must be an object")
    return text_of(given, "id") or "", text_of(response, "result") or ""


def _audio(given: JsonObject) -> AudioGiven:
    if field(given, "mimeType") != "audio/wav":
        raise RefusedError(f"Unsupported MIME type: {str(field(given, 'mimeType'))[:60]}")
    data = decode_audio(text_of(given, "data") or "")
    if data is None:
        raise RefusedError("inline_data.data: Base64 decoding failed")
    return AudioGiven(*wav.decode(data))


def _tool(declared: Any) -> ToolSpec:
    name = text_of(declared, "name") if isinstance(declared, dict) else None
    if not name:
        raise RefusedError("tools.function_declarations.name: required")
    parameters = declared.get("parameters")
    plain = field(declared, "parametersJsonSchema")
    schema = json_schema(parameters, name) if parameters is not None else plain
    empty = {"type": "object", "properties": {}}
    return ToolSpec(name, text_of(declared, "description") or "", schema if isinstance(schema, dict) else empty)
