"""A table of utterances and expected calls becomes the items of a bank. Reads the table and no audio.

One row is one variant. Rows with the same `id` are variants of one item: the same words, spoken or surrounded
otherwise. Every problem is named with its row, as a spreadsheet counts them (the header is row 1).
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rig.bank.items import Item
from rig.bank.loader import NOT_ITEMS
from rig.bank.own_tools import MAX_TOOLS, BankImportError, ToolData, derived_tools
from rig.bank.rendering.deliveries import delivery_of
from rig.bank.rendering.voices import VOICES

MAX_BYTES = 8 * 1024 * 1024
MAX_ROWS = 5000
MAX_PROBLEMS = 50
MAX_VALUE = 2000
"""Characters of one cell."""
REQUIRED = ("utterance", "tool")
OPTIONAL = ("arguments", "wav", "id", "variant", "emotion", "speaker", "scenario", "policy", "sector", "voice")
NO_CALL = "none"
OF_THE_ITEM = ("utterance", "scenario", "policy", "sector", "voice")
"""Columns that are the same in all rows of an item."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `arguments`: name → values that count as right."""

    number: int
    item_id: str
    variant_id: str
    tool: str | None
    arguments: Mapping[str, tuple[Any, ...]]
    wav: Path | None
    cells: Mapping[str, str]

    def __str__(self) -> str:
        return f"row {self.number}"


@dataclass(frozen=True, slots=True)
class OwnItem:
    """An item as its file holds it, and where it came from."""

    item: Item
    data: Mapping[str, Any]
    rows: tuple[Row, ...]
    recipe: Mapping[str, Any]

    @property
    def recorded(self) -> bool:
        """Whether every variant has a recording."""
        return all(row.wav is not None for row in self.rows)


def read_items(
    path: Path, tools: list[ToolData] | None, *, prefix: str, scenario: str, voice: str
) -> tuple[list[OwnItem], list[str]]:
    """The items of a table, and what a reader should know of them. `prefix` begins the ids that the table lacks.

    `tools`: the menu; None derives it from the calls that the rows expect.

    Raises:
        BankImportError: the table cannot be read, or rows are wrong; every one is named, up to fifty.
    """
    problems: list[str] = []
    rows = list(_rows(path, tools, prefix, problems))
    if tools is None:
        calls = [(row.number, row.tool, row.arguments) for row in rows if row.tool is not None]
        tools, mixed = derived_tools(calls)
        problems += mixed
        if len(tools) > MAX_TOOLS:
            problems.append(f"{len(tools)} tools: an agent is offered at most {MAX_TOOLS}")
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.item_id, []).append(row)
    items = []
    for group in grouped.values():
        found = _item(group, tools, scenario, voice, problems)
        if found is not None:
            items.append(found)
    if not rows and not problems:
        problems.append("no rows under the header")
    if problems:
        more = [f"and {len(problems) - MAX_PROBLEMS} more problems"] if len(problems) > MAX_PROBLEMS else []
        raise BankImportError(str(path), [*problems[:MAX_PROBLEMS], *more])
    return items, [
        f"{_numbers(one.rows)}: the right action is the same on all variants, so {one.item.id} is an invariant "
        "control, out of every headline"
        for one in items
        if one.item.is_control
    ]


def _rows(path: Path, tools: list[ToolData] | None, prefix: str, problems: list[str]) -> Iterator[Row]:
    known = None if tools is None else {tool["name"]: tool for tool in tools}
    for number, cells in _cells(path, problems):
        wrong = [f"{name} is empty" for name in REQUIRED if not cells.get(name)]
        wrong += [f"{name} holds characters that are not text" for name, text in cells.items() if not _is_text(text)]
        wrong += [
            f"{name} is longer than {MAX_VALUE} characters" for name, text in cells.items() if len(text) > MAX_VALUE
        ]
        tool = None if cells.get("tool", "").casefold() == NO_CALL else cells.get("tool", "")
        if tool and known is not None and tool not in known:
            wrong.append(f"tool {tool!r} is not among the tools: {', '.join(known)}")
        arguments: dict[str, tuple[Any, ...]] = {}
        try:
            arguments = _arguments(cells.get("arguments", ""), known.get(tool or "") if known else None)
        except ValueError as error:
            wrong.append(f"arguments: {error}")
        if tool is None and arguments:
            wrong.append("arguments are given although the tool is none")
        wrong += _unknown_delivery(cells)
        item_id = cells.get("id") or f"{prefix}-{number - 1:04d}"
        if f"{item_id}.yaml" in NOT_ITEMS:
            wrong.append(f"id {item_id!r} is the name of another file of a bank: choose another")
        wav = path.parent / cells["wav"] if cells.get("wav") else None
        if wrong:
            problems += [f"row {number}: {one}" for one in wrong]
            continue
        yield Row(number, item_id, cells.get("variant") or "spoken", tool, arguments, wav, cells)


def _cells(path: Path, problems: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Row number and its cells by column, without outer space; empty rows are left out."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise BankImportError(str(path), [f"is larger than {MAX_BYTES // 2**20} MiB"])
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise BankImportError(str(path), [f"cannot be read ({error.strerror})"]) from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BankImportError(str(path), [f"line {line} is not UTF-8: save it as CSV UTF-8"]) from None
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip().casefold() for name in next(reader, [])]
        _check_header(path, header)
        for number, values in enumerate(reader, 2):
            if number > MAX_ROWS + 1:
                raise BankImportError(str(path), [f"more than {MAX_ROWS} rows: split it"])
            if not any(value.strip() for value in values):
                continue
            if len(values) > len(header):
                problems.append(
                    f"row {number}: {len(values)} cells, the header has {len(header)}: quote cells with {delimiter!r}"
                )
                continue
            yield number, {name: value.strip() for name, value in zip(header, values, strict=False)}
    except csv.Error as error:
        raise BankImportError(str(path), [f"line {reader.line_num}: {error}"]) from None


def _check_header(path: Path, header: list[str]) -> None:
    known = (*REQUIRED, *OPTIONAL)
    problems = [f"column {name!r} is missing" for name in REQUIRED if name not in header]
    problems += [f"column {name!r} is unknown" for name in header if name not in known]
    problems += [f"column {name!r} stands there {n} times" for name, n in Counter(header).items() if n > 1]
    if problems:
        raise BankImportError(str(path), [*problems, f"the first row names columns, of these: {', '.join(known)}"])


def _arguments(text: str, tool: ToolData | None) -> dict[str, tuple[Any, ...]]:
    """Name → values that are right: the one given, or each of a list (of lists where the parameter is an array)."""
    if not text:
        return {}
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f'{error.msg} at character {error.pos + 1}; write JSON like {{"seats": 2}}') from None
    if not isinstance(data, dict):
        raise ValueError('must be a JSON object like {"seats": 2}')
    arrays = {param["name"] for param in tool["params"] if param["type"] == "array"} if tool else set()
    found: dict[str, tuple[Any, ...]] = {}
    for name, value in data.items():
        several = isinstance(value, list) and (name not in arrays or all(isinstance(one, list) for one in value))
        found[name] = tuple(value) if several else (value,)
        if not found[name] or None in found[name]:
            raise ValueError(
                f"{name}: give a value, or a list of values that are right; leave out what may be anything"
            )
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _unknown_delivery(cells: Mapping[str, str]) -> Iterator[str]:
    """Of a rendered row; a recording may be labelled in any words."""
    if cells.get("voice") and cells["voice"] not in VOICES:
        yield f"voice {cells['voice']!r} is unknown; there are: {', '.join(sorted(VOICES))}"
    if cells.get("wav"):
        return
    try:
        delivery_of(cells.get("emotion") or "neutral", None, cells.get("speaker") or None)
    except ValueError as error:
        yield str(error)


def _item(rows: list[Row], tools: list[ToolData], scenario: str, voice: str, problems: list[str]) -> OwnItem | None:
    """None where something is wrong, which is then among `problems`."""
    first, before = rows[0].cells, len(problems)
    for row in rows[1:]:
        for name in OF_THE_ITEM:
            if row.cells.get(name, "") != first.get(name, ""):
                problems.append(f"{row}: {name} differs from that of {rows[0]}, of the same item {row.item_id}")
    for variant_id, count in Counter(row.variant_id for row in rows).items():
        if count > 1:
            problems.append(
                f"{_numbers(rows)}: variant {variant_id!r} of {rows[0].item_id} {count} times: give each its own name"
            )
    golds = {json.dumps([row.tool, row.arguments], sort_keys=True) for row in rows}
    policy = first.get("policy") or None
    data: dict[str, Any] = {
        "id": rows[0].item_id,
        **({"design": "invariant_control"} if len(rows) > 1 and len(golds) == 1 else {}),
        "policy_mode": "implicit" if policy is None else "explicit",
        "domain": (first.get("sector") or "own").casefold().replace(" ", "_"),
        "transcript": first["utterance"],
        "scenario": first.get("scenario") or scenario,
        "explicit_policy": policy,
        "tools": tools,
        "variants": [_variant(row) for row in rows],
    }
    try:
        item = Item.model_validate(data)
    except ValidationError as error:
        for part in error.errors():
            place = part["loc"]
            row = rows[int(place[1])] if len(place) > 1 and place[0] == "variants" else rows[0]
            problems.append(f"{row}: {'.'.join(map(str, place))}: {part['msg']}")
        return None
    recipe = {"voice": first.get("voice") or voice, "seed": zlib.crc32(item.id.encode()) % 1000}
    return OwnItem(item, data, tuple(rows), recipe) if len(problems) == before else None


def _variant(row: Row) -> dict[str, Any]:
    return {
        "variant_id": row.variant_id,
        "emotion": row.cells.get("emotion") or "neutral",
        **({"speaker": row.cells["speaker"]} if row.cells.get("speaker") else {}),
        "gold": {"tool": row.tool, "args": {name: list(values) for name, values in row.arguments.items()}},
        "source": "tts" if row.wav is None else "recorded",
    }


def _is_text(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


def _numbers(rows: list[Row] | tuple[Row, ...]) -> str:
    return f"row{'s' if len(rows) > 1 else ''} {', '.join(str(row.number) for row in rows)}"
