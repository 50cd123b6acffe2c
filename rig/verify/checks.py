"""The checks of `rig verify`, each with what it found. Reads a run folder and its bank; changes and asks nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from captures.capture import Capture
from captures.cassette import CassetteError, read_cassette
from captures.latency import VOID_LIMIT_S, latencies
from captures.run_folder import RunFolder, RunFolderError
from rig.bank.loader import BankError, load_bank
from rig.bank.models import Bank
from rig.config import ConfigError
from rig.replay.derive import derive, differences
from rig.replay.source import ReplayError, StoredRun
from rig.scoring.digest import bank_digest
from rig.verify.hashes import cassette_sha256

MOST_NAMED = 5
"""Findings that a check names; it counts them all."""


class Result(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_POSSIBLE = "not possible"
    NOTED = "noted"
    """Nothing is wrong, and a reader should know."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    result: Result
    told: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """A run, verified."""

    run: str
    files: dict[str, str]
    """SHA-256 of `run.json` and `captures.jsonl`."""
    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """1 when a check failed, 2 when one was not possible, else 0."""
        results = {check.result for check in self.checks}
        return 1 if Result.FAILED in results else 2 if Result.NOT_POSSIBLE in results else 0


def verify(path: Path, bank_path: Path | None = None) -> Verification:
    """All checks of the run in `path`. Raises RunFolderError when there is none to verify."""
    folder = RunFolder.open(path)
    reading = folder.read()
    captures = reading.captures
    finished = folder.finished()
    bank = _bank(folder, bank_path)
    checks = [
        _lines(reading.torn is not None, len(captures)),
        _items(folder, bank),
        _clips(folder, bank),
        _cassettes(folder, captures),
        _replies(folder, captures),
        _derivation(path, finished),
        _completeness(folder, finished),
        _pacing(folder, finished),
        _calibration(folder),
    ]
    files = {name: _sha256(path / name) for name in ("run.json", "captures.jsonl") if (path / name).is_file()}
    return Verification(str(path), files, tuple(checks))


def _bank(folder: RunFolder, given: Path | None) -> Bank | str:
    """The run's bank, or why it cannot be had."""
    named = folder.run_json.get("bank")
    where = given or (named.get("path") if isinstance(named, dict) else None)
    if where is None:
        return "run.json names no bank; give --bank"
    try:
        return load_bank(where)
    except BankError as error:
        return f"the bank cannot be loaded: {str(error).splitlines()[0]}"


def _lines(torn: bool, count: int) -> Check:
    if torn:
        told = f"{count} lines whole; the last one is torn (a run that was killed): the next rig run moves it aside"
        return Check("lines", Result.NOTED, told)
    return Check("lines", Result.PASSED, f"{count} lines, all whole")


def _items(folder: RunFolder, bank: Bank | str) -> Check:
    described = folder.run_json.get("bank")
    stored = described.get("digest") if isinstance(described, dict) else None
    if isinstance(bank, str):
        return Check("items", Result.NOT_POSSIBLE, bank)
    if stored is None:
        return Check("items", Result.NOT_POSSIBLE, "the run keeps no digest of its items")
    if stored == bank_digest(bank):
        return Check("items", Result.PASSED, f"{len(bank.items)} items as they were ({stored[:12]}…)")
    told = "the bank's items are not those of the run: scores would be of other golds"
    return Check("items", Result.FAILED, told, (f"run {stored[:16]}…, bank {bank_digest(bank)[:16]}…",))


def _clips(folder: RunFolder, bank: Bank | str) -> Check:
    if isinstance(bank, str):
        return Check("clips", Result.NOT_POSSIBLE, bank)
    described = folder.run_json.get("bank")
    described = described if isinstance(described, dict) else {}
    stored: dict[tuple[str, str], str] = {}
    now: dict[tuple[str, str], tuple[str, Path | None]] = {}
    for key, entries in (("clips", bank.clips), ("reply_clips", bank.reply_clips)):
        for name, sha256 in (described.get(key) or {}).items():
            stored[key, name] = str(sha256)
        for (item, variant), entry in entries.items():
            now[key, f"{item}/{variant}"] = (entry.sha256, bank.clip_path(entry))
    planned = set(described.get("items") or ())
    findings = []
    count = 0
    for (key, name), sha256 in stored.items():
        if name.partition("/")[0] not in planned:
            continue
        count += 1
        found = now.get((key, name))
        if found is None or found[0] != sha256:
            findings.append(f"{name}: the manifest names another clip than the run played")
        elif found[1] is None or _sha256(found[1]) != sha256:
            findings.append(f"{name}: the file is missing or not what its manifest names")
    return _listed("clips", findings, f"{count} clips, each the file that was played")


def _cassettes(folder: RunFolder, captures: list[Capture]) -> Check:
    findings = []
    hashed = count = 0
    for capture in captures:
        if capture.cassette is None:
            continue
        count += 1
        try:
            meta, _ = read_cassette(folder.path / capture.cassette)
        except (CassetteError, OSError) as error:
            findings.append(f"{_name(capture)}: {error}")
            continue
        if meta.get("identity") != capture.identity or meta.get("attempt") != capture.attempt:
            findings.append(f"{_name(capture)}: {capture.cassette} is of another attempt")
        elif capture.cassette_sha256 is not None:
            hashed += 1
            if cassette_sha256(folder.path / capture.cassette) != capture.cassette_sha256:
                findings.append(f"{_name(capture)}: {capture.cassette} is not the one that was written")
    if not count:
        return Check("cassettes", Result.NOT_POSSIBLE, "the run keeps no frames (imported?)")
    older = f", {count - hashed} from before hashes were kept" if hashed < count else ""
    return _listed("cassettes", findings, f"{count} cassettes whole, {hashed} with the hash of the day{older}")


def _replies(folder: RunFolder, captures: list[Capture]) -> Check:
    named = [one for one in captures if one.reply_audio is not None and one.reply_audio.file is not None]
    findings = [
        f"{_name(one)}: {one.reply_audio.file} is missing"
        for one in named
        if one.reply_audio is not None and not (folder.path / str(one.reply_audio.file)).is_file()
    ]
    fine = f"{len(named)} replies as files" if named else "no answer had sound"
    return _listed("replies", findings, fine)


def _derivation(path: Path, finished: dict[str, Capture]) -> Check:
    try:
        stored = StoredRun(path)
    except (ReplayError, ConfigError, BankError, RunFolderError) as error:
        return Check("derivation", Result.NOT_POSSIBLE, str(error).splitlines()[0])
    findings, failed = [], []
    for capture in finished.values():
        try:
            derived = derive(stored.call(capture), stored.client(capture.target), stored.prepared.resolved.config)
        except (ReplayError, CassetteError) as error:
            failed.append(f"{_name(capture)}: {error}")
            continue
        found = differences(capture, derived)
        if found:
            findings.append(f"{_name(capture)}: {', '.join(one.field for one in found)}")
    if findings:
        return _listed("derivation", findings, "", "captures differ from what their frames say")
    if failed:
        told = f"{len(failed)} of {len(finished)} captures cannot be derived from their frames"
        return Check("derivation", Result.NOT_POSSIBLE, told, tuple(failed[:MOST_NAMED]))
    return Check("derivation", Result.PASSED, f"{len(finished)} captures follow from their frames")


def _completeness(folder: RunFolder, finished: dict[str, Capture]) -> Check:
    planned = folder.run_json.get("planned")
    if not isinstance(planned, dict):
        return Check("completeness", Result.NOT_POSSIBLE, "run.json holds no plan (imported?)")
    done = Counter((capture.target, str(capture.condition)) for capture in finished.values())
    findings = [
        f"{target}, {condition}: {done[target, condition]} of {count} cells"
        for target, conditions in planned.items()
        for condition, count in conditions.items()
        if done[target, condition] < count
    ]
    total = sum(sum(conditions.values()) for conditions in planned.values())
    return _listed("completeness", findings, f"all {total} planned cells are finished", "cells are missing")


def _pacing(folder: RunFolder, finished: dict[str, Capture]) -> Check:
    limit_s = float(folder.run_json.get("void_limit_s") or VOID_LIMIT_S)
    paced = [capture for capture in finished.values() if capture.pacing is not None and capture.pacing.chunks]
    if not paced:
        return Check("pacing", Result.NOTED, "nothing was streamed in real time")
    void = [capture for capture in paced if any(latency.void for latency in latencies(capture, limit_s))]
    unpaced = sum(capture.pacing is not None and capture.pacing.pace != 1 for capture in paced)
    told = f"{len(paced)} paced captures, {len(void)} void for latency by our own timing"
    if unpaced:
        return Check("pacing", Result.NOTED, f"{told}; {unpaced} were not in real time: no latency of theirs counts")
    return Check("pacing", Result.NOTED if void else Result.PASSED, told, tuple(_name(c) for c in void[:MOST_NAMED]))


def _calibration(folder: RunFolder) -> Check:
    found: Any = folder.run_json.get("calibration")
    if not isinstance(found, dict):
        told = "none was on this machine: run rig calibrate before runs whose latencies matter"
        return Check("calibration", Result.NOTED, told)
    if found.get("rig_version") != folder.run_json.get("rig_version"):
        told = f"of {found.get('made')}, by another version ({found.get('rig_version')}): calibrate again"
        return Check("calibration", Result.NOTED, told)
    return Check("calibration", Result.PASSED, f"of {found.get('made')}, by the same version")


def _listed(name: str, findings: list[str], fine: str, wrong: str = "") -> Check:
    if not findings:
        return Check(name, Result.PASSED, fine)
    told = f"{len(findings)} findings" + (f": {wrong}" if wrong else "")
    return Check(name, Result.FAILED, told, tuple(findings[:MOST_NAMED]))


def _name(capture: Capture) -> str:
    where = f"{capture.item_id}/{capture.variant_id}" if capture.variant_id else capture.item_id
    return f"{capture.target}, {where}, {capture.condition}"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for block in _blocks(file.read):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _blocks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while block := read(1 << 20):
        yield block
