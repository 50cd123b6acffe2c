"""What a run has cost so far, from prices in a dated file or the config. An estimate; the vendor's bill is the truth.

Tokens are read from the usage that the vendor sent with the answer; time from the capture's own marks. An attempt whose
cost cannot be told is counted as such, never as free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from captures.capture import Capture, LaterTurn, Mark
from rig.config import Price


class _PriceFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str
    currency: str
    models: dict[str, Price]


@cache
def known_prices() -> Mapping[str, Price]:
    """Prices by model, as shipped (`prices.yaml` beside this module, with its date and sources)."""
    text = files("rig.engine").joinpath("prices.yaml").read_text(encoding="utf-8")
    return _PriceFile.model_validate(yaml.safe_load(text)).models


def cost_of(capture: Capture, price: Price) -> float | None:
    """Cost of one attempt in the price's currency; None when it cannot be told (no usage, no session time)."""
    parts = []
    later = _later_turns(capture)
    turns: list[Capture | LaterTurn] = [capture, *later]
    if price.input_audio_per_minute or price.output_audio_per_minute:
        for turn in turns:
            sent_s = turn.pacing.chunks * turn.pacing.chunk_ms / 1000 if turn.pacing else 0.0
            parts.append(price.input_audio_per_minute * sent_s / 60)
            parts.append(
                price.output_audio_per_minute * (turn.reply_audio.received_s if turn.reply_audio else 0.0) / 60
            )
    if price.per_session_minute:
        start_ns, end_ns = capture.marks.get(Mark.CONNECT_END), capture.marks.get(Mark.ANSWER_END)
        if start_ns is None or end_ns is None:
            return None
        end_ns = max([end_ns, *(ns for turn in later for ns in turn.marks.values())])
        parts.append(price.per_session_minute * (end_ns - start_ns) / 60e9)
    if price.by_token:
        # A later turn without usage was cut short: what is known counts.
        tokens = [_tokens(capture.usage or {}), *(_tokens(turn.usage) for turn in later if turn.usage)]
        if None in tokens:
            return None
        rates = {
            "input_audio": price.input_audio_per_million,
            "input_text": price.input_text_per_million,
            "output_audio": price.output_audio_per_million,
            "output_text": price.output_text_per_million,
        }
        parts += [
            sum(counts[kind] * rate / 1e6 for kind, rate in rates.items()) for counts in tokens if counts is not None
        ]
    return sum(parts) if parts else None


def _later_turns(capture: Capture) -> list[LaterTurn]:
    second, cut_in = capture.second_turn, capture.barge_in
    turns = [second.after_result, second.answer] if second else []
    turns += [cut_in.answer] if cut_in else []
    return [turn for turn in turns if turn is not None]


class Spending:
    """The run's spending against a ceiling."""

    def __init__(self, prices: Mapping[str, Price], ceiling: float | None, earlier: Iterable[Capture] = ()) -> None:
        """`prices` by target name; `earlier`: attempts that the folder holds already."""
        self._prices = prices
        self._ceiling = ceiling
        self.spent = 0.0
        self.unknown = 0
        """Attempts whose cost could not be told."""
        for capture in earlier:
            self.add(capture)

    def add(self, capture: Capture) -> None:
        """Count one attempt."""
        price = self._prices.get(capture.target)
        if price is None or Mark.SESSION_READY not in capture.marks:
            return
        cost = cost_of(capture, price)
        if cost is None:
            self.unknown += 1
        else:
            self.spent += cost

    @property
    def reached(self) -> bool:
        """True once the ceiling is reached."""
        return self._ceiling is not None and self.spent >= self._ceiling


def _tokens(usage: Mapping[str, Any]) -> dict[str, float] | None:
    """Token counts in the spellings that vendors use: totals per direction, and a part of them that is audio."""
    found: dict[str, float] = {}
    for direction, totals, details in (
        (
            "input",
            ("input_tokens", "prompt_tokens", "promptTokenCount"),
            ("input_token_details", "prompt_tokens_details", "promptTokensDetails"),
        ),
        (
            "output",
            ("output_tokens", "completion_tokens", "responseTokenCount", "candidatesTokenCount"),
            ("output_token_details", "completion_tokens_details", "candidatesTokensDetails"),
        ),
    ):
        total = next((usage[name] for name in totals if isinstance(usage.get(name), int | float)), None)
        if total is None:
            return None
        audio = _audio_tokens(next((usage[name] for name in details if usage.get(name)), None))
        if direction == "output" and isinstance(thought := usage.get("thoughtsTokenCount"), int | float):
            total += thought  # Gemini counts them beside the answer and charges them as output
        found[f"{direction}_audio"] = audio
        found[f"{direction}_text"] = max(0, total - audio)
    return found


def _audio_tokens(detail: object) -> float:
    """The audio's share: under one key, or of a list with an entry per modality (Gemini)."""
    if isinstance(detail, list):
        entries = [entry for entry in detail if isinstance(entry, Mapping) and entry.get("modality") == "AUDIO"]
        counts = [entry.get("tokenCount") for entry in entries]
    else:
        counts = [detail.get("audio_tokens")] if isinstance(detail, Mapping) else []
    return sum(count for count in counts if isinstance(count, int | float))
