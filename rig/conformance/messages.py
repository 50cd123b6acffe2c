"""Checks of single messages: JSON, types, fields, values, audio in its place."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema

from adapters.dialect import ToolSpec
from adapters.foreign_json import JsonObject, brief, text_of
from adapters.rig_socket.wire import SCHEMA_PATH, FromAgent, fields_of
from rig.conformance.caller import Limits, Scene, SceneName
from rig.conformance.findings import NO_SESSION, Check, Finding, Judgement, NotSeen, broken, in_session
from rig.conformance.talk import MAX_BYTES, MAX_MESSAGES, Heard

TALKING = (SceneName.SPEECH, SceneName.WORDS, SceneName.CALL)
_BASE64 = re.compile(rb'"(?:[A-Za-z0-9+/_-]|\\/){160,}={0,2}"')
_KNOWN = frozenset(kind.value for kind in FromAgent)
_CHARS = 200


@functools.cache
def validator(kind: str) -> Any:
    """The validator of one type of message, by `schema.json`."""
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


def faults_of(fields: JsonObject) -> tuple[list[str], list[str]]:
    """What is wrong with a message of a known type: unknown fields, and fields missing or wrong, a line each."""
    unknown: list[str] = []
    wrong: list[str] = []
    for error in validator(fields["type"]).iter_errors(fields):
        if error.validator == "additionalProperties" and not error.absolute_path:
            names = sorted(name for name in fields.keys() - fields_of(fields["type"]) if not name.startswith("x_"))
            unknown.append(f"{fields['type']} has no field {brief(', '.join(names), _CHARS)}")
        else:
            where = ".".join(str(part) for part in error.absolute_path)
            wrong.append(brief(f"{where}: {error.message}" if where else str(error.message), _CHARS))
    return unknown, wrong


def _each(judge: Callable[[Scene, Heard], Iterator[Finding]]) -> Callable[[list[Scene], Limits], Judgement]:
    """A check of every message by itself."""

    @functools.wraps(judge)
    def judged(scenes: list[Scene], _: Limits) -> Judgement:
        if not any(scene.talk.heard for scene in scenes):
            return NotSeen("the agent sent nothing")
        return [found for scene in scenes for message in scene.talk.heard for found in judge(scene, message)]

    return judged


def _is_spoken_text(message: Heard) -> bool:
    return not message.binary and _BASE64.search(message.payload) is not None


@_each
def _json(scene: Scene, message: Heard) -> Iterator[Finding]:
    if not message.binary and message.fields is None:
        yield broken("send one JSON object (RFC 8259: no NaN, no single quotes) per text frame", scene, message)
    elif message.fields is not None and not message.type:
        yield broken("give every text message a string in type", scene, message)


@_each
def _types(scene: Scene, message: Heard) -> Iterator[Finding]:
    if message.fields is not None and message.type and message.type not in _KNOWN and not message.type.startswith("x_"):
        known = ", ".join(sorted(_KNOWN))
        yield broken(
            f"there is no type {brief(message.type, 60)!r}; an agent sends {known}, or x_… of its own", scene, message
        )


@_each
def _fields(scene: Scene, message: Heard) -> Iterator[Finding]:
    if message.fields is not None and message.type in _KNOWN:
        for fault in faults_of(message.fields)[0]:
            yield broken(f"{fault}; misspelt? begin the names of your own fields with x_", scene, message)


@_each
def _values(scene: Scene, message: Heard) -> Iterator[Finding]:
    if message.fields is None or message.type not in _KNOWN or message.type == FromAgent.READY:
        return
    for fault in faults_of(message.fields)[1]:
        if not (message.type == FromAgent.TOOL_CALL and fault.startswith("arguments: ")):
            yield broken(f"{message.type}: {fault}", scene, message)


@_each
def _binary(scene: Scene, message: Heard) -> Iterator[Finding]:
    if _is_spoken_text(message):
        yield broken("send audio as binary frames of raw PCM16, not as base64 in a text message", scene, message)


def _flood(scenes: list[Scene], _: Limits) -> Judgement:
    bounds = f"{MAX_MESSAGES:,} messages or {MAX_BYTES >> 20} MiB"
    return [
        broken(
            f"one session sent more than {bounds}: end answers, and send no silence between them",
            scene,
            scene.talk.heard[-1] if scene.talk.heard else None,
        )
        for scene in scenes
        if scene.talk.flooded
    ]


def _calls(scenes: list[Scene]) -> list[tuple[Scene, Heard, JsonObject]]:
    return [
        (scene, message, message.fields)
        for scene in in_session(scenes)
        for message in scene.talk.heard
        if message.type == FromAgent.TOOL_CALL and message.fields is not None
    ]


_NO_CALL = NotSeen("the agent called no tool, though asked to")


def _tool_names(scenes: list[Scene], _: Limits) -> Judgement:
    calls = _calls(scenes)
    found = []
    for scene, message, fields in calls:
        offered = [tool.name for tool in scene.setup.tools]
        if text_of(fields, "name") not in offered:
            found.append(
                broken(f"call only what session.setup offered: {', '.join(offered) or 'nothing'}", scene, message)
            )
    return found if calls else _NO_CALL


def _tool_ids(scenes: list[Scene], _: Limits) -> Judgement:
    calls = _calls(scenes)
    found = []
    seen: set[tuple[int, str]] = set()
    for scene, message, fields in calls:
        key = (id(scene), repr(fields.get("call_id")))
        if key in seen:
            found.append(broken("give every call of a session a call_id of its own", scene, message))
        seen.add(key)
    return found if calls else _NO_CALL


def _tool_arguments(scenes: list[Scene], _: Limits) -> Judgement:
    calls = _calls(scenes)
    found = [
        broken("arguments must be a JSON object (send {} for none, and no string of JSON)", scene, message)
        for scene, message, fields in calls
        if not isinstance(fields.get("arguments"), dict)
    ]
    return found if calls else _NO_CALL


def _tool_schema(scenes: list[Scene], _: Limits) -> Judgement:
    calls = _calls(scenes)
    found = []
    for scene, message, fields in calls:
        tool = next((tool for tool in scene.setup.tools if tool.name == fields.get("name")), None)
        arguments = fields.get("arguments")
        if tool is not None and isinstance(arguments, dict):
            found += [
                broken(f"arguments of {tool.name}: {fault}", scene, message) for fault in _misfits(tool, arguments)
            ]
    return found if calls else _NO_CALL


def _misfits(tool: ToolSpec, arguments: JsonObject) -> list[str]:
    errors = jsonschema.Draft202012Validator(dict(tool.parameters)).iter_errors(arguments)
    return [brief(str(error.message), _CHARS) for error in errors]


def _no_tools(scenes: list[Scene], _: Limits) -> Judgement:
    if not in_session(scenes):
        return NO_SESSION
    return [
        broken("call nothing where session.setup offers no tools: keep nothing from other sessions", scene, message)
        for scene, message, _ in _calls(scenes)
    ]


MESSAGE_CHECKS = (
    Check("json", "text frames are JSON objects with a type", TALKING, _json),
    Check("known-types", "types are the contract's", TALKING, _types),
    Check("known-fields", "fields are the contract's", TALKING, _fields),
    Check("values", "fields are there and right", TALKING, _values),
    Check("binary-audio", "audio is binary", TALKING, _binary),
    Check("no-flood", "a session is bounded", TALKING, _flood),
)
TOOL_CHECKS = (
    Check("tool-names", "only offered tools are called", TALKING, _tool_names),
    Check("tool-ids", "call ids are unique in a session", TALKING, _tool_ids),
    Check("tool-arguments", "arguments are an object", TALKING, _tool_arguments),
    Check("tool-schema", "arguments fit the tool's schema", TALKING, _tool_schema),
    Check("no-tools", "no call without tools", (SceneName.NO_TOOLS,), _no_tools),
)
"""Not for an agent with tools of its own, but for `tool-ids` and `tool-arguments`."""
