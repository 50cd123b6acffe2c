"""Tool schemas in the words that Gemini takes, and returned arguments back in the words of the original.

Gemini's `Schema` is a part of OpenAPI 3.0 (google-genai 3.6.1 `types.Schema`): other keys are refused by the API, as
are a list as `type` and numbers in an enum (thClaws/thClaws#172, brightwave-inc/tidebreak#1516). A keyword that only
narrows a value is left out and said so; one that carries structure and has no counterpart is an error, for the model
would be shown another tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from adapters.dialect import SettingsError, ToolSpec
from adapters.foreign_json import MAX_DEPTH, JsonObject, brief

_ANNOTATIONS: Final = frozenset({"title", "description", "default", "example"})
_BY_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "integer": frozenset({"minimum", "maximum", "format"}),
    "number": frozenset({"minimum", "maximum", "format"}),
    "boolean": frozenset(),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
    "null": frozenset(),
}
"""Keywords that go over as they are."""
_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"date-time", "enum"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
"""Formats that the Gemini API takes."""
_LEFT_OUT: Final = frozenset(
    {
        *("$schema", "$id", "id", "$comment", "$anchor", "$defs", "definitions", "$vocabulary"),
        *("examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"),
        *("additionalProperties", "unevaluatedProperties", "propertyNames", "dependentRequired", "propertyOrdering"),
        *("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "additionalItems"),
        *("multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
        *(keyword for keywords in _BY_TYPE.values() for keyword in keywords),
    }
)
"""Left out where they do not go over: without them a value may only be freer."""
_SILENT: Final = frozenset({"$defs", "definitions", "$comment", "$anchor"})
_READ: Final = frozenset({"type", "enum", "const", "nullable", "properties", "required", "items", "anyOf", "oneOf"})


@dataclass(frozen=True, slots=True)
class Undo:
    """How returned arguments are turned back at one place of a schema."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """String that the model was shown → value of the original."""
    properties: Mapping[str, Undo] = field(default_factory=dict)
    items: Undo | None = None

    def __bool__(self) -> bool:
        return bool(self.values or self.properties or self.items)


@dataclass(frozen=True, slots=True)
class Translated:
    """A tool's parameters as Gemini takes them."""

    parameters: JsonObject | None
    """None for a tool without arguments: an object without properties is refused."""
    undo: Undo
    changes: tuple[str, ...]
    """What the model is not shown as written, a line each."""


def translate(tool: ToolSpec) -> Translated:
    """The parameters of a tool, translated.

    Raises:
        SettingsError: a keyword without counterpart; names the tool and the path.
    """
    translator = _Translator(tool)
    schema, undo = translator.schema(dict(tool.parameters), "parameters", ())
    empty = schema.get("type") == "OBJECT" and "properties" not in schema
    return Translated(None if empty else schema, undo, tuple(translator.changes))


def undone(value: Any, undo: Undo | None, path: str = "") -> tuple[Any, list[str]]:
    """A returned value in the words of the original schema, and what was turned back, a line each."""
    if not undo:
        return value, []
    if isinstance(value, str) and value in undo.values:
        original = undo.values[value]
        return original, [f"{path}: {_shown(value)} is {_shown(original)}"]
    changes: list[str] = []
    if isinstance(value, dict) and undo.properties:
        result: JsonObject = {}
        for name, inner in value.items():
            result[name], more = undone(inner, undo.properties.get(name), f"{path}.{name}" if path else name)
            changes += more
        return result, changes
    if isinstance(value, list) and undo.items:
        items = [undone(inner, undo.items, f"{path}[{place}]") for place, inner in enumerate(value)]
        return [item for item, _ in items], [change for _, more in items for change in more]
    return value, changes


def _shown(value: Any) -> str:
    return brief(orjson.dumps(value).decode(), 80)


class _Translator:
    def __init__(self, tool: ToolSpec) -> None:
        self._tool = tool
        self.changes: list[str] = []

    def schema(self, given: Any, path: str, inlined: tuple[str, ...]) -> tuple[JsonObject, Undo]:
        """One schema at any depth; `inlined` are the references that led to it."""
        if not isinstance(given, dict):
            raise self._wrong(path, "must be a schema object")
        if path.count(".") > 2 * MAX_DEPTH:
            raise self._wrong("parameters", "nested too deeply")
        given, inlined = self._resolved(given, path, inlined)
        self._check_keywords(given, path)
        nullable = given.get("nullable") is True
        alternatives = self._alternatives(given, path)
        if alternatives is not None:
            others = [branch for branch in alternatives if branch.get("type") != "null"]
            nullable |= len(others) < len(alternatives)
            said = {key: value for key, value in given.items() if key in ("title", "description")}
            return self._any_of([said | branch for branch in others], nullable, f"{path}.anyOf", inlined)
        types, enum = self._types_and_enum(given, path)
        if "null" in types and len(types) > 1:
            types, nullable = [kind for kind in types if kind != "null"], True
        if len(types) > 1 and enum is None:
            return self._any_of([_narrowed(given, kind) for kind in types], nullable, path, inlined)
        return self._plain(given, types[0], enum, nullable, path, inlined)

    # --- what a schema says

    def _resolved(self, given: JsonObject, path: str, inlined: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """References and single `allOf` put in place."""
        for _ in range(MAX_DEPTH):
            if "$ref" in given:
                reference = given["$ref"]
                if reference in inlined:
                    raise self._wrong(f"{path}.$ref", "refers to itself, which Gemini cannot be told")
                rest = {key: value for key, value in given.items() if key != "$ref"}
                given, inlined = self._referred(reference, path) | rest, (*inlined, reference)
            elif "allOf" in given:
                parts = given["allOf"]
                if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
                    raise self._wrong(f"{path}.allOf", "Gemini has no counterpart for several schemas at once")
                given = parts[0] | {key: value for key, value in given.items() if key != "allOf"}
            else:
                return given, inlined
        raise self._wrong(path, "too many references")

    def _referred(self, reference: Any, path: str) -> JsonObject:
        place: Any = self._tool.parameters
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise self._wrong(f"{path}.$ref", "only references into the same schema (#/…) can be put in place")
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, Mapping) else None
        if not isinstance(place, Mapping):
            raise self._wrong(f"{path}.$ref", f"{brief(reference, 80)} is not in the schema")
        return dict(place)

    def _check_keywords(self, given: JsonObject, path: str) -> None:
        for keyword in given:
            if keyword not in _READ | _ANNOTATIONS | _LEFT_OUT and not keyword.startswith("x-"):
                raise self._wrong(f"{path}.{keyword}", "Gemini has no counterpart for this keyword")

    def _alternatives(self, given: JsonObject, path: str) -> list[JsonObject] | None:
        """Branches of `anyOf` or `oneOf`; None when there are none."""
        name = next((name for name in ("anyOf", "oneOf") if name in given), None)
        if name is None:
            return None
        beside = sorted(set(given) & _READ - {name, "nullable", "type"})
        branches = given[name]
        if beside:
            raise self._wrong(f"{path}.{name}", f"Gemini takes no {beside[0]} beside it")
        if not isinstance(branches, list) or not branches or not all(isinstance(branch, dict) for branch in branches):
            raise self._wrong(f"{path}.{name}", "must be a list of schema objects")
        if name == "oneOf":
            self._changed(path, "oneOf shown as anyOf")
        self._leave_out(given, path, sorted(set(given) - {name, "nullable", "type", "title", "description"}))
        outer = {"type": given["type"]} if "type" in given else {}
        return [outer | branch for branch in branches]

    def _types_and_enum(self, given: JsonObject, path: str) -> tuple[list[str], list[Any] | None]:
        enum = [given["const"]] if "const" in given else given.get("enum")
        if enum is not None and (not isinstance(enum, list) or not enum):
            raise self._wrong(f"{path}.enum", "must be a list of values")
        stated = given.get("type")
        types = [stated] if isinstance(stated, str) else stated
        if types is None:
            types = self._implied_types(given, enum, path)
        if not isinstance(types, list) or not types or any(kind not in _BY_TYPE for kind in types):
            raise self._wrong(f"{path}.type", f"{_shown(stated)} is no type")
        if enum is not None and None in enum:
            return list(dict.fromkeys([*types, "null"])), [value for value in enum if value is not None]
        return list(dict.fromkeys(types)), enum

    def _implied_types(self, given: JsonObject, enum: list[Any] | None, path: str) -> list[str]:
        if enum is not None:
            return list(dict.fromkeys(_type_of(value) for value in enum))
        implied = [kind for kind, sign in (("object", "properties"), ("array", "items")) if sign in given]
        if not implied:
            raise self._wrong(f"{path}.type", "is missing; Gemini needs one")
        return implied

    # --- what Gemini is shown

    def _any_of(
        self, branches: Sequence[JsonObject], nullable: bool, path: str, inlined: tuple[str, ...]
    ) -> tuple[JsonObject, Undo]:
        if not branches:
            raise self._wrong(path, "allows no value but null")
        done = [self.schema(branch, f"{path}[{place}]", inlined) for place, branch in enumerate(branches)]
        if nullable:
            for schema, _ in done:
                schema["nullable"] = True
        if len(done) == 1:
            return done[0]
        return {"anyOf": [schema for schema, _ in done]}, self._joined(done, path)

    def _joined(self, branches: Sequence[tuple[JsonObject, Undo]], path: str) -> Undo:
        """The undoing of alternatives, when it is clear which one a value belongs to."""
        values: dict[str, Any] = {}
        for _, undo in branches:
            values |= undo.values
        strings = [(schema, undo) for schema, undo in branches if schema.get("type") == "STRING"]
        words = {name for schema, undo in strings for name in schema.get("enum", ()) if name not in undo.values}
        clash = values and (words & set(values) or any("enum" not in schema for schema, _ in strings))
        nested = [(schema, undo) for schema, undo in branches if undo.properties or undo.items]
        kinds = [schema.get("type") for schema, _ in branches]
        if clash or any(kinds.count(schema["type"]) > 1 for schema, _ in nested if "type" in schema):
            raise self._wrong(path, "its numbers shown as strings could not be told from other strings")
        merged = Undo(values)
        for _, undo in nested:
            merged = Undo(values, undo.properties or merged.properties, undo.items or merged.items)
        return merged

    def _plain(
        self,
        given: JsonObject,
        kind: str,
        enum: list[Any] | None,
        nullable: bool,
        path: str,
        inlined: tuple[str, ...],
    ) -> tuple[JsonObject, Undo]:
        shown: JsonObject = {"type": kind.upper()} | ({"nullable": True} if nullable else {})
        shown |= {key: given[key] for key in sorted(_ANNOTATIONS | _BY_TYPE[kind]) if key in given}
        if "format" in shown and shown["format"] not in _FORMATS[kind]:
            del shown["format"]
        closed = _close_bounds(given, shown) if kind == "integer" else set()
        undo = Undo()
        if enum is not None:
            undo = self._show_enum(shown, enum, path)
        if kind == "object":
            undo = self._show_properties(given, shown, path, inlined)
        elif kind == "array":
            if "items" not in given:
                raise self._wrong(f"{path}.items", "is missing; Gemini needs to know what the array holds")
            shown["items"], inner = self.schema(given["items"], f"{path}.items", inlined)
            undo = Undo(items=inner) if inner else undo
        kept = set(shown) | _READ | closed
        self._leave_out(given, path, [keyword for keyword in given if keyword not in kept])
        return shown, undo

    def _show_enum(self, shown: JsonObject, enum: list[Any], path: str) -> Undo:
        if set(map(type, enum)) == {bool} and len(set(enum)) == 2:
            return Undo()  # the type says as much
        names = [value if isinstance(value, str) else _shown(value) for value in enum]
        if any(isinstance(value, list | dict) for value in enum) or len(set(names)) < len(names):
            raise self._wrong(f"{path}.enum", "its values cannot be shown as different strings")
        values = {name: value for name, value in zip(names, enum, strict=True) if not isinstance(value, str)}
        shown["enum"] = names
        if values:
            for keyword in _BY_TYPE["number"]:
                shown.pop(keyword, None)
            shown["type"] = "STRING"  # also where the values are of several types
            shown |= {key: _as_name(shown[key]) for key in ("default", "example") if key in shown}
            self._changed(path, f"{', '.join(values)} shown as strings")
        return Undo(values)

    def _show_properties(self, given: JsonObject, shown: JsonObject, path: str, inlined: tuple[str, ...]) -> Undo:
        properties = given.get("properties", {})
        required = given.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise self._wrong(path, "needs an object as `properties` and a list as `required`")
        done = {name: self.schema(inner, f"{path}.properties.{name}", inlined) for name, inner in properties.items()}
        if done:
            shown["properties"] = {name: schema for name, (schema, _) in done.items()}
        known = [name for name in required if name in done]
        if known:
            shown["required"] = known
        if len(known) < len(required):
            self._changed(path, "required names without a property left out")
        return Undo(properties={name: undo for name, (_, undo) in done.items() if undo})

    # --- what is said of it

    def _leave_out(self, given: JsonObject, path: str, keywords: Iterable[str]) -> None:
        for keyword in keywords:
            if keyword not in _SILENT and not keyword.startswith("x-"):
                self._changed(path, f"{keyword} left out")

    def _changed(self, path: str, what: str) -> None:
        self.changes.append(f"{self._tool.name}: {path}: {what}")

    def _wrong(self, path: str, why: str) -> SettingsError:
        return SettingsError(f"tool {brief(self._tool.name, 80)}: {brief(path, 300)}: {why}")


def _narrowed(given: JsonObject, kind: str) -> JsonObject:
    """`given` for values of one type alone."""
    foreign = {keyword for keywords in _BY_TYPE.values() for keyword in keywords} - _BY_TYPE[kind]
    structure = {"object": {"items"}, "array": {"properties", "required"}}.get(
        kind, {"items", "properties", "required"}
    )
    left_out = foreign | structure | {"type", "nullable", "default", "example"}
    return {key: value for key, value in given.items() if key not in left_out} | {"type": kind}


def _close_bounds(given: JsonObject, shown: JsonObject) -> set[str]:
    """Open bounds of whole numbers as closed ones; the keywords that were read."""
    done: set[str] = set()
    bounds = (("exclusiveMinimum", "minimum", 1, max), ("exclusiveMaximum", "maximum", -1, min))
    for keyword, bound, step, outer in bounds:
        limit = given.get(keyword)
        if isinstance(limit, int) and not isinstance(limit, bool):
            shown[bound] = outer(limit + step, shown.get(bound, limit + step))
            done.add(keyword)
    return done


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (list, "array"),
        (dict, "object"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _as_name(value: Any) -> str:
    return value if isinstance(value, str) else _shown(value)
