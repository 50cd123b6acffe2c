"""Reads one YAML file that nobody vouches for: bounded in size and depth, no aliases, no surprises in its numbers.

Says what is wrong and on which line; what the data means is the caller's.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml: ten times slower, otherwise equal
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

MAX_DEPTH = 30
"""Deepest nesting read; an item file needs 8."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""Whole numbers that JSON writers take."""


class YamlFileError(Exception):
    """The file cannot be read as data; the text says why and, where known, on which line."""


class _Loader(_SafeLoader):
    """Safe loading that also refuses doubled keys, not-a-number, infinity, whole numbers beyond 64 bits, and times read
    as base-60 numbers."""


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key.value!r} twice", key.start_mark)
            seen.add(key.value)
    return loader.construct_mapping(node, deep=True)


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> float:
    is_float = node.tag == "tag:yaml.org,2002:float"
    if ":" in node.value:
        problem = f"{node.value} would be read as a base-60 number: quote it"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    try:
        number = loader.construct_yaml_float(node) if is_float else loader.construct_yaml_int(node)
    except ValueError:
        raise yaml.constructor.ConstructorError(None, None, "not a usable number", node.start_mark) from None
    if is_float and not math.isfinite(number):
        raise yaml.constructor.ConstructorError(None, None, f"{node.value} is not a number", node.start_mark)
    if not is_float and not _LEAST <= number <= _MOST:
        problem = f"{node.value[:40]} is beyond 64 bits, which no message can carry: quote it"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return number


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


def read_yaml(path: Path, max_bytes: int) -> object:
    """The file's data (None when it is empty).

    Raises YamlFileError when the file cannot be opened, is larger than `max_bytes`, is not UTF-8, is not YAML, nests
    deeper than `MAX_DEPTH`, or uses aliases (a few of which can stand for gigabytes).
    """
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise YamlFileError(f"cannot be read: {error.strerror or error}") from error
    if len(raw) > max_bytes:
        raise YamlFileError(f"larger than {max_bytes} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise YamlFileError(f"not UTF-8 at byte {error.start}: save it as UTF-8") from None
    try:
        _check_shape(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1})" if mark else ""
        raise YamlFileError(f"{error.problem or error.context or 'not YAML'}{where}") from None
    except (yaml.YAMLError, ValueError) as error:
        first_line = str(error).splitlines()[0] if str(error) else "not YAML"
        raise YamlFileError(first_line) from None


def _check_shape(text: str) -> None:
    """Refuse aliases and deep nesting before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise YamlFileError(f"alias *{event.anchor}: write the value out, aliases are not read (line {line})")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlFileError(f"nested deeper than {MAX_DEPTH} (line {line})")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
