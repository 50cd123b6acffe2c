"""Published per-cell records → captures, and a run folder of them.

Reads two spellings: the development split's rows (`item`, `variant`, `cond`, `calls`, `text`) and the paper release's
`records.jsonl` (`item_id`, `variant_id`, `condition`, `tool_calls`, `response_text`). Published scores are not taken
over: credit is computed from the calls. Published times are kept under `echoed` and never become marks, since their
clips were not paced by us and their origins are not ours: no imported time enters a latency table.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from captures.capture import Capture, Condition, Ending, ErrorInfo, ObservedCall
from captures.run_folder import RunFolder
from captures.scrub import Scrubber
from captures.writer import AttemptRecord, CaptureWriter
from rig.bank.models import Bank
from rig.config import TARGET_NAME, Role
from rig.scoring.digest import bank_digest

ADAPTER = "imported"
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_PROBLEMS = 20

_TIMES = ("latency_s", "first_tool_s", "first_audio_s", "done_s")


class RecordsError(ValueError):
    """Records that cannot be imported. One line per problem: file, line, what is wrong, what to do."""


class _Call(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    tool: str | None = None
    args: Any = None
    """An object; anything else is kept as an unreadable call."""


class _Row(BaseModel):
    """One record in either spelling; keys that neither scores nor identifies are not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    item: str = Field(validation_alias=AliasChoices("item", "item_id"), min_length=1)
    variant: str = Field(validation_alias=AliasChoices("variant", "variant_id"))
    condition: Condition = Field(validation_alias=AliasChoices("cond", "condition"))
    calls: tuple[_Call, ...] = Field(validation_alias=AliasChoices("calls", "tool_calls"))
    text: str | None = Field(validation_alias=AliasChoices("text", "response_text"))
    error: str | None = ""
    repeat: int = Field(default=0, ge=0)
    stimulus_sha256: str = ""
    driver: str = ""
    metrics: dict[str, Any] = Field(default_factory=dict)
    latency_s: FiniteFloat | None = None
    first_tool_s: FiniteFloat | None = None
    first_audio_s: FiniteFloat | None = None
    done_s: FiniteFloat | None = None


def import_records(paths: Sequence[Path], bank: Bank, name: str, role: str) -> list[Capture]:
    """The captures that `paths` (JSON lines) hold of target `name`, in the order of the rows.

    `role` is one of the config's roles. A row whose `error` is not empty becomes an infrastructure error: counted,
    never scored. A probe row without an answer stays without one: not applicable.

    Raises:
        RecordsError: all that is wrong with the files (at most 20 problems), or an unknown role.
    """
    _checked_name(name)
    _checked_role(role)
    captures: list[Capture] = []
    problems: list[str] = []
    seen: dict[tuple[str, str | None, Condition, int], str] = {}
    for path in paths:
        for where, row in _rows(path, problems):
            problem = _unknown(row, bank)
            capture = _capture(row, name)
            key = (capture.item_id, capture.variant_id, capture.condition, capture.repeat)
            if problem is None and key in seen:
                problem = f"a second row of the cell at {seen[key]}: keep one, or number them with `repeat`"
            if problem is None:
                seen[key] = where
                captures.append(capture)
            else:
                problems.append(f"{where}: {problem}")
    if problems:
        left = len(problems) - MAX_PROBLEMS
        raise RecordsError("\n".join(problems[:MAX_PROBLEMS] + ([f"… and {left} more problems"] if left > 0 else [])))
    if not captures:
        raise RecordsError(f"{', '.join(map(str, paths)) or 'no file'}: no records; name a file of JSON lines")
    return captures


def import_run(
    paths: Sequence[Path], bank: Bank, name: str, role: str, out: Path, bank_path: str | None = None
) -> RunFolder:
    """Import records into a new run folder `out`. `bank_path`: what `run.json` names the bank by (default its folder).

    Blocks; must not be called from a running event loop.

    Raises:
        RecordsError: the records cannot be imported; nothing is written then.
        RunFolderError, WriterError: `out` cannot be written.
    """
    captures = import_records(paths, bank, name, role)
    folder = RunFolder.create(out, _run_json(paths, bank, name, role, captures, bank_path))
    anyio.run(_write, folder, captures)
    return folder


async def _write(folder: RunFolder, captures: Sequence[Capture]) -> None:
    async with CaptureWriter(folder, Scrubber(())) as writer:
        for capture in captures:
            await writer.put(AttemptRecord(capture))


def _run_json(
    paths: Sequence[Path], bank: Bank, name: str, role: str, captures: Sequence[Capture], bank_path: str | None
) -> dict[str, Any]:
    conditions = {capture.condition for capture in captures}
    sources = [{"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()} for path in paths]
    return {
        "format": 1,
        "imported": {"files": sources},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "targets": {
            name: {
                "role": _checked_role(role),
                "adapter": ADAPTER,
                "model": captures[0].echoed.get("driver", ""),
                "family": None,
                "embedded_agent": None,
                "capabilities": {
                    "text_twin": Condition.TEXT_TWIN in conditions,
                    "probe": any(
                        capture.condition is Condition.PROBE and capture.reply_text.strip() for capture in captures
                    ),
                },
            }
        },
        "bank": {
            "name": bank.name,
            "version": bank.version,
            "path": bank_path or str(bank.root.resolve()),
            "items": sorted({capture.item_id for capture in captures}),
            "digest": bank_digest(bank),
        },
    }


def _checked_name(name: str) -> str:
    if not re.fullmatch(TARGET_NAME, name):
        raise RecordsError(f"name {name!r}: use letters, digits, dots, dashes and underscores, at most 64")
    return name


def _checked_role(role: str) -> str:
    try:
        return Role(role).value
    except ValueError:
        raise RecordsError(f"role {role!r} is not one of {', '.join(Role)}") from None


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[str, _Row]]:
    """(file and line, row) of each readable line; the others go to `problems`."""
    try:
        if path.exists() and not path.is_file():
            problems.append(f"{path}: is no file; name a file of JSON lines")
            return
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            problems.append(f"{path}: larger than {MAX_FILE_BYTES} bytes: is this a file of records?")
            return
        lines = content.split(b"\n")
    except OSError as error:
        problems.append(f"{path}: cannot be read ({error.strerror})")
        return
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES:
            problems.append(f"{where}: longer than {MAX_LINE_BYTES} bytes: is this a file of JSON lines?")
            continue
        try:
            yield where, _Row.model_validate(json.loads(line))
        except ValidationError as error:
            problems += [
                f"{where}: {'.'.join(map(str, detail['loc'])) or 'the line'}: {detail['msg']}"
                for detail in error.errors(include_url=False, include_input=False)
            ]
        except (ValueError, RecursionError) as error:
            problems.append(f"{where}: not JSON ({error})")


def _unknown(row: _Row, bank: Bank) -> str | None:
    """What of the row the bank does not have."""
    try:
        item = bank.item(row.item)
    except KeyError:
        return f"bank {bank.name} has no item {row.item!r}"
    known = {variant.variant_id for variant in item.variants}
    if row.condition is not Condition.TEXT_TWIN and row.variant not in known:
        return f"{item.id} has no variant {row.variant!r}"
    if row.condition is Condition.PROBE and item.perception_probe is None:
        return f"{item.id} has no probe"
    return None


def _capture(row: _Row, name: str) -> Capture:
    variant = None if row.condition is Condition.TEXT_TWIN else row.variant
    cell = json.dumps([ADAPTER, name, row.item, variant, row.condition, row.stimulus_sha256, row.repeat])
    answered = Ending.CALLED if row.calls else Ending.DECLINED
    return Capture(
        identity=hashlib.sha256(cell.encode()).hexdigest()[:32],
        target=name,
        item_id=row.item,
        variant_id=variant,
        condition=row.condition,
        repeat=row.repeat,
        finished=not row.error,
        started_ns=0,
        adapter=ADAPTER,
        wire_version=0,
        parser_version=0,
        ending=Ending.INFRASTRUCTURE_ERROR if row.error else answered,
        ending_detail="imported",
        error=ErrorInfo(kind="imported", code="", message=row.error) if row.error else None,
        calls=tuple(_observed(call, index) for index, call in enumerate(row.calls)),
        reply_text=row.text or "",
        echoed=_echoed(row),
    )


def _observed(call: _Call, index: int) -> ObservedCall:
    return ObservedCall(
        call_id=f"imported-{index}",
        name=call.tool,
        arguments_json=call.args if isinstance(call.args, str) else json.dumps(call.args),
        arguments=call.args if isinstance(call.args, dict) else None,
        output_index=index,
    )


def _echoed(row: _Row) -> dict[str, Any]:
    """What was published about the cell and is not scored: the driver, and its times, which are not comparable."""
    given: Mapping[str, Any] = row.metrics | row.model_dump(include=set(_TIMES), exclude_none=True)
    times = {key: given[key] for key in _TIMES if isinstance(given.get(key), int | float)}
    return ({"driver": row.driver} if row.driver else {}) | ({"published_s": times} if times else {})
