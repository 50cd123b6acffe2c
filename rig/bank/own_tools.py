"""The menu of an imported bank: from a file of function definitions, or derived from the calls that are expected.

Reads what vendors take as tools: a JSON list of `{name, description, parameters}`, bare or inside `{"type": "function",
"function": …}`. Pure but for reading that file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rig.bank.items import PARAM_TYPES, Tool

MAX_TOOLS = 128
MAX_TOOLS_BYTES = 1024 * 1024

ToolData = dict[str, Any]
"""A tool as an item's file holds it."""


class BankImportError(ValueError):
    """What was to be imported cannot be; one line per problem: file, row or tool, what to do."""

    def __init__(self, where: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{where}: {problem}" for problem in self.problems))


def read_tools(path: Path) -> list[ToolData]:
    """The tools of a JSON file. Raises BankImportError naming every problem."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TOOLS_BYTES + 1)
        if len(raw) > MAX_TOOLS_BYTES:
            raise BankImportError(str(path), [f"is larger than {MAX_TOOLS_BYTES // 1024} KiB"])
        data = json.loads(raw)
    except OSError as error:
        raise BankImportError(str(path), [f"cannot be read ({error.strerror})"]) from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, BankImportError):
            raise
        raise BankImportError(str(path), [f"is no JSON: {error}"]) from None
    entries = data.get("tools") if isinstance(data, dict) else data
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_TOOLS:
        raise BankImportError(str(path), [f"must be a list of 1 to {MAX_TOOLS} tools"])
    tools, problems = [], []
    for at, entry in enumerate(entries):
        try:
            tools.append(_tool(entry))
        except ValidationError as error:
            problems += [f"[{at}].{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        except ValueError as error:
            problems.append(f"[{at}]: {error}")
    names = [tool["name"] for tool in tools]
    problems += [f"{name!r} is defined twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems:
        raise BankImportError(str(path), problems)
    return tools


def _tool(entry: object) -> ToolData:
    """Raises ValueError where a schema asks for more than a bank's parameter can say."""
    if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
        entry = entry["function"]
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError('is no tool: write {"name": …, "description": …, "parameters": …}')
    schema = entry.get("parameters") or {}
    fields = schema.get("properties") or {} if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        raise ValueError(f"{entry['name']}: parameters must be a JSON schema of type object")
    required = schema.get("required") or []
    params = [{**_param(name, told), "required": name in required} for name, told in fields.items()]
    tool = {"name": entry["name"], "description": entry.get("description") or _words(entry["name"]), "params": params}
    Tool.model_validate(tool)
    return tool


def _param(name: str, told: object) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise ValueError(f"{name}: must be a JSON schema")
    kinds = told.get("type", "string")
    kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    if len(kinds) != 1 or kinds[0] not in PARAM_TYPES:
        raise ValueError(f"{name}: type must be one of {', '.join(PARAM_TYPES)}")
    kept = {key: told[key] for key in ("description", "enum", "items", "properties") if told.get(key) is not None}
    return {"name": name, "type": kinds[0], **kept}


def derived_tools(calls: Iterable[tuple[int, str, Mapping[str, Any]]]) -> tuple[list[ToolData], list[str]]:
    """Tools with the parameters that expected calls (row, tool, argument → values that are right) show; and problems.

    A parameter is required where every call of the tool has it.
    """
    seen: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for row, tool, arguments in calls:
        seen.setdefault(tool, []).append((row, arguments))
    tools, problems = [], []
    for name, uses in seen.items():
        params = []
        for parameter in dict.fromkeys(one for _, arguments in uses for one in arguments):
            kinds = {_kind(value) for _, arguments in uses for value in arguments.get(parameter, ())}
            if kinds == {"integer", "number"}:
                kinds = {"number"}
            if len(kinds) > 1:
                rows = ", ".join(str(row) for row, arguments in uses if parameter in arguments)
                problems.append(f"rows {rows}: {name}.{parameter} is of several types: {', '.join(sorted(kinds))}")
                continue
            required = all(parameter in arguments for _, arguments in uses)
            params.append({"name": parameter, "type": kinds.pop(), "required": required})
        tools.append({"name": name, "description": _words(name), "params": params})
    return tools, problems


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _words(name: str) -> str:
    """`book_ride` → `Book ride.`"""
    return f"{name.replace('_', ' ').replace('-', ' ').strip().capitalize() or name}."
