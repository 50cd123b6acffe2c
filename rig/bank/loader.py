"""Reads a bank from its folder and names every problem of every file at once.

It checks each file by itself, and that ids are unique; `rig.bank.lint` checks what the files say together. Clips are
listed, not opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rig.bank.models import Annotation, Bank, BankInfo, ClipEntry, Followup, Item, Problem
from rig.bank.yaml_file import YamlFileError, read_yaml

MAX_ITEM_BYTES = 256 * 1024
MAX_TABLE_BYTES = 8 * 1024 * 1024
"""For annotations and the audio manifest, which hold all items in one file."""
MAX_ITEM_FILES = 10_000

NOT_ITEMS = frozenset({"annotations.yaml", "bank.yaml", "manifest.yaml", "recipes.yaml", "rulings.yaml"})
_Model = TypeVar("_Model", bound=BaseModel)


PACKAGED_BANK = "demo"
"""The bank that comes with the rig; the name goes before a folder of that name."""


class BankError(ValueError):
    """A bank that cannot be used. `problems` holds all that is wrong with it (warnings too); the text lists them."""

    def __init__(self, bank: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        errors = sum(problem.level == "error" for problem in self.problems)
        lines = [f"bank {bank}: {errors} {'problem' if errors == 1 else 'problems'}", *map(str, self.problems)]
        super().__init__("\n  ".join(lines))


def load_bank(path_or_name: str | Path, engine: str | None = None) -> Bank:
    """Read the bank in a folder, or the packaged one named `demo` (a folder of that name is `./demo`).

    `engine` picks among several manifest entries of one variant. Raises BankError naming every problem.
    """
    bank = read_bank(path_or_name, engine)
    if bank.unread:
        raise BankError(str(path_or_name), bank.warnings)
    return bank


def read_bank(path_or_name: str | Path, engine: str | None = None) -> Bank:
    """The same of what can be read: errors are among the bank's `warnings`, and their files are `unread`.

    For checks that go on past a broken file, never for a run. Raises BankError where there is no folder.
    """
    own = path_or_name == PACKAGED_BANK
    root = Path(str(files("rig.bank").joinpath(PACKAGED_BANK))) if own else Path(path_or_name)
    if not root.is_dir():
        raise BankError(str(path_or_name), [Problem(str(root), "", "no such folder: name a bank's folder, or demo")])
    reader = _Reader(root)
    info = reader.info()
    items, sources = reader.items(info.canary)
    annotations = reader.annotations()
    clips = reader.clips(engine)
    return Bank(
        root=root,
        info=info.model_copy(update={"origin": "own"}) if own else info,
        items=tuple(sorted(items, key=lambda item: item.id)),
        annotations=annotations,
        clips={key[:2]: entry for key, entry in clips.items() if key[2] == 1},
        reply_clips={key[:2]: entry for key, entry in clips.items() if key[2] == 2},
        sources=sources,
        warnings=tuple(reader.problems),
        unread=frozenset(problem.file for problem in reader.problems if problem.level == "error"),
    )


class _Reader:
    """Reads the files of one folder and collects what is wrong with them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []

    def info(self) -> BankInfo:
        data = self._data("bank.yaml", MAX_ITEM_BYTES)
        return (self._model(BankInfo, data, "bank.yaml") if data is not None else None) or BankInfo()

    def items(self, canary: str | None) -> tuple[list[Item], dict[str, str]]:
        """The readable items, and the file of each by id. Each must hold the bank's `canary`, where it has one."""
        items: list[Item] = []
        sources: dict[str, str] = {}
        for name in self._item_files():
            data = self._data(name, MAX_ITEM_BYTES)
            if data is None:
                continue
            item = self._model(Item, self._without_unknown_followup(data, name), name)
            if item is None:
                continue
            if item.id in sources:
                self._error(name, "id", f"{item.id} is already the id of {sources[item.id]}: ids are unique")
                continue
            sources[item.id] = name
            items.append(item)
            if canary is not None and item.canary != canary:
                self._error(name, "canary", "is missing or another than the bank's (bank.yaml: canary)")
        return items, sources

    def _without_unknown_followup(self, data: object, name: str) -> object:
        """Without a `followup` of a shape that we do not know: other banks use the key in their own ways."""
        if not isinstance(data, Mapping) or data.get("followup") is None:
            return data
        try:
            Followup.model_validate(data["followup"])
        except ValidationError as error:
            fields = ", ".join(dict.fromkeys(_field(detail["loc"], "followup") for detail in error.errors()))
            message = f"not a second turn as known here, not read (see {fields})"
            self.problems.append(Problem(name, "followup", message, "warning"))
            return {key: value for key, value in data.items() if key != "followup"}
        return data

    def _item_files(self) -> list[str]:
        names: list[str] = []
        for path in self.root.rglob("*.yaml"):
            relative = path.relative_to(self.root)
            hidden = any(part.startswith(".") for part in relative.parts)
            if not hidden and path.name not in NOT_ITEMS and path.is_file():
                names.append(relative.as_posix())
            if len(names) > MAX_ITEM_FILES:
                self._error(".", "", f"more than {MAX_ITEM_FILES} item files: is this a bank's folder?")
                return []
        if not names:
            self._error(".", "", "no item files (*.yaml) here: name the folder that holds them")
        return sorted(names)

    def annotations(self) -> dict[str, Annotation]:
        """Item id → annotation, from a mapping of ids (at the top, or under `items`)."""
        name = "annotations.yaml"
        data = self._data(name, MAX_TABLE_BYTES)
        if isinstance(data, Mapping) and isinstance(data.get("items"), Mapping):
            data = data["items"]
        if data is None:
            return {}
        if not isinstance(data, Mapping):
            self._error(name, "", "must map item ids to annotations")
            return {}
        found: dict[str, Annotation] = {}
        for item_id, entry in data.items():
            if annotation := self._model(Annotation, entry, name, str(item_id)):
                found[str(item_id)] = annotation
        return found

    def clips(self, engine: str | None) -> dict[tuple[str, str, int], ClipEntry]:
        """(item id, variant id, turn) → the entry of the chosen engine."""
        name = "audio/manifest.yaml"
        data = self._data(name, MAX_TABLE_BYTES)
        if isinstance(data, Mapping):
            data = data.get("clips", data.get("entries", data))
        if data is None:
            return {}
        if not isinstance(data, list):
            self._error(name, "", "must be a list of entries (item_id, variant_id, sha256, engine)")
            return {}
        entries = [self._model(ClipEntry, entry, name, f"[{index}]") for index, entry in enumerate(data)]
        served: dict[tuple[str, str, int], list[ClipEntry]] = {}
        for entry in entries:
            if entry is not None and engine in (None, entry.engine):
                served.setdefault((entry.item_id, entry.variant_id, entry.turn), []).append(entry)
        if not served and engine is not None:
            known = ", ".join(sorted({entry.engine for entry in entries if entry is not None})) or "none"
            self._error(name, "engine", f"no clip of engine {engine!r}; there are: {known}")
        for (item_id, variant_id, _), choice in served.items():
            if len(choice) > 1:
                engines = ", ".join(entry.engine or "unnamed" for entry in choice)
                self._error(name, "engine", f"{item_id}/{variant_id} has several clips ({engines}): choose an engine")
        return {key: choice[0] for key, choice in served.items()}

    def _data(self, name: str, max_bytes: int) -> object:
        """The file's data; None where it is absent, empty or (then reported) unreadable."""
        path = self.root / name
        if not path.exists():
            return None
        try:
            return read_yaml(path, max_bytes)
        except YamlFileError as error:
            self._error(name, "", str(error))
            return None

    def _model(self, model: type[_Model], data: object, name: str, prefix: str = "") -> _Model | None:
        try:
            found = model.model_validate(data)
        except ValidationError as error:
            for detail in _causes(error.errors(include_url=False, include_context=False)):
                self._error(name, _field(detail["loc"], prefix), _message(detail))
            return None
        if model is not ClipEntry:
            self.problems += [
                Problem(name, field, "unknown key, not read", "warning") for field in _unknown_keys(found, prefix)
            ]
        return found

    def _error(self, name: str, field: str, message: str) -> None:
        self.problems.append(Problem(name, field, message))


def _causes(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """All errors but those of a list that is too short only because some of its elements are wrong."""
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(other["loc"][: len(detail["loc"])] == detail["loc"] for other in details if other is not detail)
    ]


def _field(location: tuple[int | str, ...], prefix: str = "") -> str:
    """`variants[0].gold.tool`, as one would write it."""
    path = prefix
    for part in location:
        name = part if isinstance(part, int) or part.isprintable() else repr(part)
        path += f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
    return path


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return "is missing"
    found = repr(detail["input"])
    shown = found if len(found) <= 60 else f"{found[:57]}..."
    is_scalar = isinstance(detail["input"], bool | int | float) and detail["type"] == "string_type"
    return f"{detail['msg']} (found {shown}{': quote it' if is_scalar else ''})"


def _unknown_keys(model: BaseModel, prefix: str) -> Iterator[str]:
    """Paths of all keys, at any depth, that the models do not know."""
    for key in model.model_extra or {}:
        yield _field((str(key),), prefix)
    for name in type(model).model_fields:
        value = getattr(model, name)
        for location, inner in _models_in(value, (name,)):
            yield from _unknown_keys(inner, _field(location, prefix))


def _models_in(value: object, location: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], BaseModel]]:
    if isinstance(value, BaseModel):
        yield location, value
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _models_in(inner, (*location, index))
