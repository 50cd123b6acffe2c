"""JSON with `{{ expression }}` in its strings, and the JMESPath expressions themselves. Nothing is evaluated as code.

A string that is one `{{ … }}` becomes the value of its expression, whatever its type; inside a longer string the value
is put in as text. A member of an object whose expression gives null is left out. `${NAME}` stands for a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import jmespath
import orjson
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

MAX_EXPRESSION: Final = 1_000
"""Characters."""
MAX_NESTING: Final = 32
SEARCH_ERRORS: Final = (
    JMESPathError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a search may raise on data that its expression was not made for."""

_PART: Final = re.compile(r"\{\{(.*?)\}\}|\$\{([^}]*)\}", re.DOTALL)
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*", re.IGNORECASE)
_FIRST_CHILD: Final = frozenset(
    {"subexpression", "index_expression", "projection", "filter_projection", "flatten", "value_projection", "pipe"}
    | {"or_expression", "and_expression", "not_expression", "comparator"}
)

Rendered = Callable[[Mapping[str, Any]], Any]
"""Context in, JSON value out. Secrets stand in the context under `${}`."""
SECRETS: Final = "${}"


class ExpressionError(ValueError):
    """An expression that is none, or names what is not there."""


def expression(text: str) -> ParsedResult:
    """A compiled JMESPath expression.

    Raises:
        ExpressionError: too long, or not JMESPath.
    """
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(f"longer than {MAX_EXPRESSION} characters")
    try:
        return jmespath.compile(text)
    except (*SEARCH_ERRORS,) as error:
        reason = " ".join(str(error).split())
        raise ExpressionError(f"{text!r} is not a JMESPath expression ({reason[:160]})") from None


def literals(parsed: ParsedResult) -> Iterator[str]:
    """All strings that an expression compares with."""
    waiting = [parsed.parsed]
    while waiting:
        node = waiting.pop()
        if node["type"] == "literal" and isinstance(node.get("value"), str):
            yield node["value"]
        waiting += [child for child in node["children"] if isinstance(child, dict)]


def compiled(
    value: Any, place: str, names: Collection[str], secrets: Collection[str], complain: Callable[[str], None]
) -> Rendered:
    """`value` ready to be filled in; what is wrong with it is told to `complain`, one line each with its place.

    `names` are what an expression may begin with, `secrets` the environment names that may stand in `${}`.
    """
    return _Compiler(names, secrets, complain).node(value, place, 0)


class _Compiler:
    def __init__(self, names: Collection[str], secrets: Collection[str], complain: Callable[[str], None]) -> None:
        self._names = names
        self._secrets = secrets
        self._complain = complain

    def node(self, value: Any, place: str, depth: int) -> Rendered:
        if depth > MAX_NESTING:
            self._complain(f"{place}: nested deeper than {MAX_NESTING}; make it flatter")
            return lambda context: None
        if isinstance(value, dict):
            return self._object(value, place, depth)
        if isinstance(value, list):
            parts = [self.node(inner, f"{place}[{n}]", depth + 1) for n, inner in enumerate(value)]
            return lambda context: [part(context) for part in parts]
        if isinstance(value, str) and ("{{" in value or "${" in value):
            return self._text(value, place)
        return lambda context: value

    def _object(self, value: dict[str, Any], place: str, depth: int) -> Rendered:
        parts = {str(key): self.node(inner, f"{place}.{key}", depth + 1) for key, inner in value.items()}
        fixed = {str(key) for key, inner in value.items() if inner is None}

        def render(context: Mapping[str, Any]) -> dict[str, Any]:
            made = {key: part(context) for key, part in parts.items()}
            return {key: inner for key, inner in made.items() if inner is not None or key in fixed}

        return render

    def _text(self, text: str, place: str) -> Rendered:
        if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
            return self._search(text[2:-2].strip(), place)
        parts: list[Rendered] = []
        at = 0
        for match in _PART.finditer(text):
            parts.append(_constant(text[at : match.start()]))
            parts.append(self._secret(match[2], place) if match[1] is None else self._search(match[1].strip(), place))
            at = match.end()
        parts.append(_constant(text[at:]))

        def render(context: Mapping[str, Any]) -> str | None:
            values = [part(context) for part in parts]
            return None if None in values else "".join(as_text(value) for value in values)

        return render

    def _search(self, text: str, place: str) -> Rendered:
        try:
            parsed = expression(text)
        except ExpressionError as error:
            self._complain(f"{place}: {error}; see https://jmespath.org")
            return lambda context: None
        first = _first_name(parsed)
        if first is not None and first not in self._names:
            known = ", ".join(sorted(self._names))
            self._complain(f"{place}: {{{{ {text} }}}} begins with {first!r}, which is not known here; use {known}")
        return lambda context: search(parsed, context)

    def _secret(self, name: str, place: str) -> Rendered:
        if name not in self._secrets:
            fit = "add it there" if _NAME.fullmatch(name) else "write the name of an environment variable"
            self._complain(f"{place}: ${{{name}}} is not listed under secrets; {fit}")
        return lambda context: context[SECRETS].get(name, "")


def search(parsed: ParsedResult, data: Any) -> Any:
    """The value of an expression over `data`; None also where it cannot be had."""
    try:
        return parsed.search(data)
    except SEARCH_ERRORS:
        return None


def as_text(value: Any) -> str:
    """A value inside a longer string."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _constant(text: str) -> Rendered:
    return lambda context: text


def _first_name(parsed: ParsedResult) -> str | None:
    node = parsed.parsed
    while node["type"] in _FIRST_CHILD:
        node = node["children"][0]
    return str(node["value"]) if node["type"] == "field" else None
