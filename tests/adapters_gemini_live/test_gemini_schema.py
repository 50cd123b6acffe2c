"""Tool schemas: case B10, translation at every depth, and its undoing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import SettingsError, Setup, TargetSettings, ToolSpec
from adapters.gemini_live import DIALECT
from adapters.gemini_live.schema import translate, undone
from adapters.gemini_live.server_rules import json_schema
from captures.capture import Ending
from captures.frames import InFrame

SET_LEVEL = ToolSpec(
    "set_level",
    "Sets a level.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "level": {"type": "integer", "enum": [0, 1, 2]},
            "note": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "where": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "additionalProperties": False,
                "properties": {"floor": {"enum": [1.5, 2]}},
                "propertyNames": {"pattern": "^[a-z]+$"},
            },
        },
        "required": ["level"],
    },
)


def shown(schema: dict[str, Any]) -> Any:
    """A schema of one argument, as Gemini is shown it."""
    parameters = translate(ToolSpec("t", "", {"type": "object", "properties": {"x": schema}})).parameters
    assert parameters is not None
    types.Schema.model_validate(parameters, strict=False)
    return parameters["properties"]["x"]


def test_b10_the_translated_copy() -> None:
    translated = translate(SET_LEVEL)
    assert translated.parameters == {
        "type": "OBJECT",
        "properties": {
            "level": {"type": "STRING", "enum": ["0", "1", "2"]},
            "note": {"type": "STRING", "nullable": True},
            "tags": {"type": "ARRAY", "items": {"type": "STRING"}},
            "where": {"type": "OBJECT", "properties": {"floor": {"type": "STRING", "enum": ["1.5", "2"]}}},
        },
        "required": ["level"],
    }
    types.Schema.model_validate(translated.parameters)
    assert "set_level: parameters.properties.where: propertyNames left out" in translated.changes
    assert SET_LEVEL.parameters["properties"]["level"] == {"type": "integer", "enum": [0, 1, 2]}


def test_b10_the_setup_is_accepted_by_a_server_that_refuses_the_original(gemini: Any) -> None:
    refused = DIALECT.server()
    raw = {"model": "m", "tools": [{"functionDeclarations": [{"name": "t", "parameters": SET_LEVEL.parameters}]}]}
    step = refused.receive(gemini_frame({"setup": raw}))
    assert step.close is not None
    assert "$schema" in step.close[1]
    wire = gemini.Wire(tools=[SET_LEVEL])
    accepted = DIALECT.server().receive(gemini_frame({"setup": wire.setup}))
    assert accepted.close is None


def gemini_frame(message: Any) -> Any:
    return InFrame(orjson.dumps(message), False, 0)


def test_b10_arguments_are_turned_back_and_it_is_said(gemini: Any) -> None:
    steps = [
        (0.3, gemini.call("c1", "set_level", level="1", where={"floor": "1.5"}, note="1")),
        (0.4, gemini.content(turnComplete=True)),
    ]

    async def main() -> Any:
        stage = await gemini.open_stage(gemini.ScriptedGemini({"activityEnd": [steps]}), tools=[SET_LEVEL])
        return await stage.speak(0.2), stage.session.ready

    record, ready = gemini.virtual(main)
    assert record.ending is Ending.CALLED
    assert record.calls[0].arguments == {"level": 1, "where": {"floor": 1.5}, "note": "1"}
    assert record.calls[0].arguments_json == '{"level":"1","where":{"floor":"1.5"},"note":"1"}'
    assert any(
        'arguments_turned_back: set_level: level: "1" is 1; where.floor: "1.5" is 1.5' in warning
        for warning in record.warnings
    )
    assert "set_level: parameters.properties.tags: uniqueItems left out" in ready.echoed["tool_schemas_changed"]


def test_a_number_from_a_model_that_was_shown_strings_stays_a_number(gemini: Any) -> None:
    wire = gemini.Wire(tools=[SET_LEVEL]).asked()
    (call,) = wire.hear(gemini.call("c1", "set_level", level=1, note="7"))
    assert call.arguments == {"level": 1, "note": "7"}
    (call,) = wire.hear(gemini.call("c2", "set_level", level="7"))
    assert call.arguments == {"level": "7"}  # no value of the enum: wrong, as it came


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "string", "not": {"const": "a"}}, "parameters.properties.x.not"),
        ({"type": "object", "patternProperties": {"^a": {}}}, "parameters.properties.x.patternProperties"),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "parameters.properties.x.allOf"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "parameters.properties.x.prefixItems"),
        ({"type": "array"}, "parameters.properties.x.items"),
        ({"description": "anything"}, "parameters.properties.x.type"),
        ({"type": "text"}, "parameters.properties.x.type"),
        ({"enum": [1, "1"]}, "parameters.properties.x.enum"),
        ({"enum": [{"a": 1}]}, "parameters.properties.x.enum"),
        ({"$ref": "https://example.org/s.json"}, "parameters.properties.x.$ref"),
        ({"$ref": "#"}, "parameters.properties.x.properties.x.$ref"),
        ({"anyOf": [{"required": ["a"]}], "properties": {}}, "parameters.properties.x.anyOf"),
        ({"anyOf": [{"enum": [1]}, {"type": "string"}]}, "parameters.properties.x.anyOf"),
        ({"anyOf": [{"enum": [1]}, {"enum": ["1"]}]}, "parameters.properties.x.anyOf"),
        ({"type": "array", "items": {"type": "object", "if": {}}}, "parameters.properties.x.items.if"),
        (True, "parameters.properties.x"),
    ],
)
def test_what_cannot_be_translated_is_named(schema: Any, path: str) -> None:
    tool = ToolSpec("order", "", {"type": "object", "properties": {"x": schema}})
    client = DIALECT.client(TargetSettings("gemini-3.8-live"))
    with pytest.raises(SettingsError) as raised:
        client.open(Setup("", (tool,), 16_000))
    assert str(raised.value).startswith(f"tool order: {path}: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("schema", "gemini_schema"),
    [
        ({"const": 3}, {"type": "STRING", "enum": ["3"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "nullable": True, "enum": ["a"]}),
        ({"type": "boolean", "enum": [True, False]}, {"type": "BOOLEAN"}),
        ({"type": "string", "format": "date"}, {"type": "STRING"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "integer", "exclusiveMinimum": 0, "maximum": 9}, {"type": "INTEGER", "minimum": 1, "maximum": 9}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "NUMBER"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        (
            {"type": ["integer", "string"], "minimum": 1, "minLength": 2, "description": "d"},
            {
                "anyOf": [
                    {"type": "INTEGER", "description": "d", "minimum": 1},
                    {"type": "STRING", "description": "d", "minLength": 2},
                ]
            },
        ),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "STRING", "description": "d"}),
        ({"properties": {"type": {"type": "string"}}}, {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}),
        ({"type": "string", "x-order": 1, "examples": ["a"]}, {"type": "STRING"}),
    ],
)
def test_what_gemini_is_shown(schema: dict[str, Any], gemini_schema: dict[str, Any]) -> None:
    assert shown(schema) == gemini_schema


def test_references_are_put_in_place() -> None:
    tool = ToolSpec(
        "t",
        "",
        {
            "type": "object",
            "$defs": {"level": {"enum": [1, 2]}},
            "properties": {"levels": {"type": "array", "items": {"$ref": "#/$defs/level", "description": "d"}}},
        },
    )
    translated = translate(tool)
    assert translated.parameters is not None
    assert translated.parameters["properties"]["levels"] == {
        "type": "ARRAY",
        "items": {"type": "STRING", "description": "d", "enum": ["1", "2"]},
    }
    assert undone({"levels": ["1", "3"]}, translated.undo) == ({"levels": [1, "3"]}, ['levels[0]: "1" is 1'])


def test_a_tool_without_arguments_is_shown_without_parameters(gemini: Any) -> None:
    declarations = gemini.Wire().setup["tools"][0]["functionDeclarations"]
    assert declarations[1] == {"name": "hold_the_line", "description": "Waits."}


def test_alternatives_know_where_a_number_belongs() -> None:
    inner = {"type": "object", "properties": {"n": {"enum": [1, 2]}}}
    tool = ToolSpec("t", "", {"type": "object", "properties": {"x": {"anyOf": [{"enum": [5]}, inner]}}})
    undo = translate(tool).undo
    assert undone({"x": "5"}, undo)[0] == {"x": 5}
    assert undone({"x": {"n": "2"}}, undo)[0] == {"x": {"n": 2}}


LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": ["integer", "null"], "minimum": 0}),
    st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(lambda values: {"enum": values}),
    st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3, unique=True).map(lambda values: {"enum": values}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items, "uniqueItems": True}),
        st.dictionaries(st.sampled_from(["a", "b", "type", "enum", "anyOf"]), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "additionalProperties": False}
        ),
    ),
    max_leaves=8,
)


def a_value(schema: dict[str, Any]) -> tuple[Any, Any]:
    """A value of a schema, and as a model that was shown strings gives it."""
    if "enum" in schema:
        value = schema["enum"][0]
        return value, value if isinstance(value, str) else str(value)
    if schema["type"] == "array":
        value, given_value = a_value(schema["items"])
        return [value], [given_value]
    if schema["type"] == "object":
        pairs = {name: a_value(inner) for name, inner in schema["properties"].items()}
        return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}
    return ("1", "1") if schema["type"] == "string" else (1, 1)


@settings(max_examples=100, deadline=None)
@given(properties=st.dictionaries(st.sampled_from(["p", "q", "properties"]), SCHEMAS, min_size=1, max_size=3))
def test_any_schema_is_accepted_and_its_arguments_come_back(properties: dict[str, Any]) -> None:
    tool = ToolSpec("t", "", {"type": "object", "properties": properties})
    translated = translate(tool)
    types.Schema.model_validate(translated.parameters)
    json_schema(translated.parameters, "parameters")  # refuses what the vendor refuses
    values = {name: a_value(schema) for name, schema in properties.items()}
    given_values = {name: pair[1] for name, pair in values.items()}
    assert undone(given_values, translated.undo)[0] == {name: pair[0] for name, pair in values.items()}
