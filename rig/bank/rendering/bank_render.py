"""Renders a whole bank: only what changed, on several cores, with every failure named; then rewrites the manifest.

A clip that fails a gate, or cannot be made, is not shipped. People's rulings go before the gates.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from captures.lock import FolderLockedError, folder_lock
from rig.bank.models import Bank, Item
from rig.bank.rendering.clip import ClipRenderer, RenderedClip
from rig.bank.rendering.levels import RATE_HZ
from rig.bank.rendering.manifest import Manifest, RenderedEntry, pcm_sha256, read_manifest, write_clip, write_manifest
from rig.bank.rendering.recipes import ItemRecipe, read_recipes
from rig.bank.rendering.rulings import ClipKey, Ruling, read_rulings
from rig.bank.rendering.sources import source_sha256
from rig.bank.rendering.voices import SynthesisError, engine_of
from rig.bank.rendering.words import Recogniser, read_lexicon


@dataclass(slots=True)
class BankRendering:
    """What a run did."""

    rendered: list[RenderedEntry] = field(default_factory=list)
    unchanged: int = 0
    added: int = 0
    """Clips added by hand, which were left alone."""
    withheld: list[str] = field(default_factory=list)
    """Clips that a ruling keeps back."""
    failures: list[str] = field(default_factory=list)
    """One line per clip that failed and is not in the manifest."""
    seconds: float = 0.0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """The clips of one item that must be rendered, in one process, since they share their neutral speech."""

    item: Item
    recipe: ItemRecipe
    wanted: tuple[tuple[str, int], ...]
    """Variant id and turn."""


@dataclass(frozen=True, slots=True)
class _Made:
    key: ClipKey
    clip: RenderedClip | None
    error: str = ""


def render_bank(
    bank: Bank, only: Set[str] = frozenset(), *, force: bool = False, console: Console, processes: int | None = None
) -> BankRendering:
    """Render the bank's clips into `audio/`. `processes`: at most so many, by default one per core.

    Raises ValueError for a wrong recipe, lexicon, manifest or ruling file, an unknown item, or another run at work on
    the same bank. Interrupted, it keeps what was done.
    """
    recipes = read_recipes(bank.root / "recipes.yaml").items
    if unknown := sorted((set(only) | set(recipes)) - {item.id for item in bank.items}):
        raise ValueError(f"no item {', '.join(unknown)} in the bank: mend the option or recipes.yaml")
    folder = bank.root / "audio"
    folder.mkdir(exist_ok=True)
    lexicon_path = bank.root / "lexicon.txt"
    lexicon = tuple(read_lexicon(lexicon_path).items()) if lexicon_path.exists() else ()
    with _alone(bank.root):
        run = _Run(bank, recipes, read_rulings(bank), read_manifest(folder), folder, console)
        jobs = run.jobs(only, force=force)
        try:
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task("rendering", total=sum(len(job.wanted) for job in jobs))
                for made in _all_made(jobs, lexicon, processes or os.cpu_count() or 1):
                    run.take(made)
                    progress.advance(task)
        finally:
            run.write()
    return run.result


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Holds the bank: two runs at once would remove each other's clips. The lock lies elsewhere: banks are shipped."""
    name = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_lock(Path(tempfile.gettempdir()) / f"rig-bank-render-{name}.lock"))
        except FolderLockedError:
            raise ValueError(f"{root}: another `rig bank render` is at work on this bank; wait for it") from None
        yield


class _Run:
    """Keeps the books of one run."""

    def __init__(
        self,
        bank: Bank,
        recipes: Mapping[str, ItemRecipe],
        rulings: Mapping[ClipKey, Ruling],
        manifest: Manifest,
        folder: Path,
        console: Console,
    ) -> None:
        self.result = BankRendering(added=len(manifest.added))
        self._bank, self._recipes, self._rulings, self._folder = bank, recipes, rulings, folder
        self._console = console
        self._added = manifest.added
        self._added_keys = manifest.added_keys
        self._entries = {entry.key: entry for entry in manifest.rendered}
        self._sources: dict[ClipKey, str] = {}
        self._ours = {entry.sha256 for entry in manifest.rendered}

    def jobs(self, only: Set[str], *, force: bool) -> list[_Job]:
        """What must be rendered; forgets entries of clips that the bank no longer has."""
        jobs: list[_Job] = []
        known: set[ClipKey] = set()
        for item in self._bank.items:
            wanted: list[tuple[str, int]] = []
            for variant in item.variants:
                for turn in (1, 2) if item.followup else (1,):
                    key = (item.id, variant.variant_id, turn)
                    known.add(key)
                    if key not in self._added_keys and (not only or item.id in only) and self._must(key, force=force):
                        wanted.append(key[1:])
            if wanted:
                jobs.append(_Job(item, self._recipes[item.id], tuple(wanted)))
        self._entries = {key: entry for key, entry in self._entries.items() if key in known}
        return jobs

    def _must(self, key: ClipKey, *, force: bool) -> bool:
        ruling = self._rulings.get(key)
        if ruling and ruling.verdict == "withhold" and ruling.pcm_sha256 is None:
            self._withhold(key, ruling)
            return False
        item = self._bank.item(key[0])
        if item.id not in self._recipes:
            self._fail(key, "recipes.yaml has no entry for this item: add its voice and seed")
            return False
        old = self._entries.get(key)
        recipe = self._recipes[item.id]
        try:
            engine, here = self._engine(recipe.voice, old)
            self._sources[key] = source_sha256(item, item.variant(key[1]), key[2], recipe, engine)
        except (ValueError, SynthesisError) as error:
            self._fail(key, str(error))
            return False
        if (force and here) or old is None or old.source_sha256 != self._sources[key]:
            return True
        if not (self._folder / f"{old.sha256}.flac").exists():
            return True
        self.result.unchanged += 1
        self._judge(old)
        return False

    @staticmethod
    def _engine(voice: str, old: RenderedEntry | None) -> tuple[str, bool]:
        """The synthesiser, and whether it is here: if not, it is the one that made the clip there is, which stays."""
        try:
            return engine_of(voice), True
        except SynthesisError:
            if old is None or old.voice != voice:
                raise
            return old.engine, False

    def take(self, made: _Made) -> None:
        """A clip that a process made, or why it could not."""
        if made.clip is None:
            self._fail(made.key, made.error)
            return
        item_id, variant_id, turn = made.key
        clip, pcm = made.clip, made.clip.pcm
        sha256 = write_clip(self._folder, pcm)
        self._ours.add(sha256)
        entry = RenderedEntry(
            item_id=item_id,
            variant_id=variant_id,
            turn=2 if turn == 2 else 1,
            sha256=sha256,
            engine=clip.engine,
            pcm_sha256=pcm_sha256(pcm),
            rate_hz=RATE_HZ,
            duration_s=round(pcm.size / RATE_HZ, 4),
            speech_end_s=round(clip.speech_end_s, 4),
            voice=self._recipes[item_id].voice,
            wer=round(clip.wer, 4),
            wer_delivered=None if clip.wer_delivered is None else round(clip.wer_delivered, 4),
            approximate="; ".join(clip.reasons) or False,
            gates=clip.gates,
            source_sha256=self._sources[made.key],
        )
        if self._judge(entry):
            self.result.rendered.append(entry)
            self._say(f"rendered {_name(made.key)}: {entry.duration_s:.2f} s, word error rate {entry.wer:.2f}")

    def _judge(self, entry: RenderedEntry) -> bool:
        """Put the entry into the manifest if its gates, or a ruling on it, let it; True if it is there."""
        ruling = self._rulings.get(entry.key)
        if ruling is not None and not ruling.applies_to(entry.pcm_sha256):
            ruling = None
        if ruling and ruling.verdict == "withhold":
            self._withhold(entry.key, ruling)
            return False
        if entry.failed and ruling is None:
            self._fail(entry.key, "; ".join(entry.failed))
            return False
        self._entries[entry.key] = entry.model_copy(update={"ruling": ruling})
        return True

    def _withhold(self, key: ClipKey, ruling: Ruling) -> None:
        self._entries.pop(key, None)
        self.result.withheld.append(f"{_name(key)}: {ruling}")
        self._say(f"[yellow]withheld[/] {escape(self.result.withheld[-1])}")

    def _fail(self, key: ClipKey, why: str) -> None:
        self._entries.pop(key, None)
        self.result.failures.append(f"{_name(key)}: {why}")
        self._say(f"[red]failed[/] {escape(self.result.failures[-1])}")

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False)

    def write(self) -> None:
        """Write the manifest and add up what is there."""
        if stale := write_manifest(self._folder, self._entries.values(), self._added, ours=self._ours):
            self._say(f"removed {len(stale)} files that no entry names any more")
        named = {entry.sha256 for entry in self._entries.values()} | {row["sha256"].lower() for row in self._added}
        if unnamed := sum(path.stem.lower() not in named for path in self._folder.glob("*.flac")):
            self._say(f"[yellow]kept[/] {unnamed} FLAC files that the manifest did not name: remove those not needed")
        self.result.size_bytes = sum(path.stat().st_size for path in self._folder.glob("*.flac"))
        self.result.seconds = sum(entry.duration_s for entry in self._entries.values())
        size_mb, most_mb = self.result.size_bytes / 1e6, self._bank.info.most_audio_mb
        if most_mb is not None and size_mb > most_mb:
            self.result.failures.append(
                f"audio/: {size_mb:.1f} MB of clips, bank.yaml allows {most_mb:g} (most_audio_mb)"
            )
            self._say(f"[red]failed[/] {self.result.failures[-1]}")


def _name(key: ClipKey) -> str:
    return f"{key[0]}/{key[1]}" + (" (turn 2)" if key[2] == 2 else "")


def _all_made(jobs: Sequence[_Job], lexicon: tuple[tuple[str, str], ...], processes: int) -> Iterator[_Made]:
    """Every clip of the jobs, as it is made; in this process where one is enough."""
    work = partial(_make, lexicon=lexicon)
    if min(processes, len(jobs)) <= 1:
        for job in jobs:
            yield from work(job)
        return
    # Spawned, not forked: the parent has threads of its own (progress, ONNX).
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(jobs)), mp_context=context) as pool:
        # The longest first, so that no core waits for the other at the end.
        pending = [pool.submit(work, job) for job in sorted(jobs, key=lambda job: -len(job.wanted))]
        try:
            for future in as_completed(pending):
                yield from future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@lru_cache(maxsize=1)
def _recogniser(lexicon: tuple[tuple[str, str], ...]) -> Recogniser:
    """The last one stays: it takes half a second to load, and much memory."""
    return Recogniser(dict(lexicon))


def _make(job: _Job, *, lexicon: tuple[tuple[str, str], ...]) -> list[_Made]:
    renderer = ClipRenderer(_recogniser(lexicon))
    made: list[_Made] = []
    for variant_id, turn in job.wanted:
        key = (job.item.id, variant_id, turn)
        render = renderer.render_reply if turn == 2 else renderer.render
        try:
            made.append(_Made(key, render(job.item, job.item.variant(variant_id), job.recipe)))
        except (ValueError, SynthesisError) as error:
            made.append(_Made(key, None, str(error)))
    return made
