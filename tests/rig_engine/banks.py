"""A small bank on disk, with clips made sample by sample; independent of what reads them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

BOOKING: dict[str, Any] = {
    "id": "booking",
    "policy_mode": "explicit",
    "domain": "retail",
    "transcript": "A table for four at half past seven, please.",
    "scenario": "You take bookings for a restaurant.",
    "explicit_policy": "If the caller cannot be heard well, ask again.",
    "tools": [
        {
            "name": "book_table",
            "description": "Books a table.",
            "params": [
                {"name": "party", "type": "integer", "required": True},
                {"name": "time", "type": "string", "required": True},
            ],
        },
        {"name": "cancel_order", "description": "Cancels an order.", "params": []},
    ],
    "variants": [
        {
            "variant_id": "clear",
            "emotion": "neutral",
            "gold": {"tool": "book_table", "args": {"party": [4], "time": ["19:30"]}},
        },
        {
            "variant_id": "noisy",
            "emotion": "neutral",
            "scene": {"kind": "slot_noise", "asset": "synth:white_noise", "slot": "half past seven", "seed": 1},
            "gold": {"tool": "ask_clarifying_question"},
        },
    ],
    "perception_probe": {
        "question": "How was the time?",
        "options": ["clear", "masked by noise"],
        "gold_by_variant": {"clear": "clear", "noisy": "masked by noise"},
    },
}


def wav(samples: Any, rate_hz: int = 24_000, channels: int = 1) -> bytes:
    """A plain PCM16 WAV file."""
    data = np.asarray(samples, dtype="<i2").tobytes()
    block = 2 * channels
    head = struct.pack("<HHIIHH", 1, channels, rate_hz, rate_hz * block, block, 16)
    return _riff(head, data)


def wav_with(head: bytes, data: bytes) -> bytes:
    """A WAV file with a format chunk of one's own."""
    return _riff(head, data)


def _riff(head: bytes, data: bytes) -> bytes:
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def tone(seconds: float, rate_hz: int = 24_000, hz: float = 400.0, level: int = 8_000) -> Any:
    """A tone, int16."""
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return (level * np.sin(2 * np.pi * hz * t)).astype("<i2")


def write_bank(
    root: Path,
    clips: Mapping[str, bytes] | None = None,
    items: tuple[dict[str, Any], ...] = (BOOKING,),
    speech_end_s: float | None = None,
) -> Path:
    """A bank of `items`, each variant with the clip of its id (`clear`: 0.3 s of tone by default)."""
    clips = {"clear": wav(tone(0.3))} if clips is None else clips
    (root / "items").mkdir(parents=True)
    (root / "audio").mkdir()
    (root / "bank.yaml").write_text(yaml.safe_dump({"name": "small", "version": "1", "origin": "own"}))
    manifest = []
    for item in items:
        (root / "items" / f"{item['id']}.yaml").write_text(yaml.safe_dump(item))
        for variant in item["variants"]:
            clip = clips.get(variant["variant_id"])
            if clip is None:
                continue
            name = hashlib.sha256(clip).hexdigest()
            (root / "audio" / f"{name}.wav").write_bytes(clip)
            entry = {"item_id": item["id"], "variant_id": variant["variant_id"], "sha256": name, "engine": "test"}
            manifest.append(entry if speech_end_s is None else entry | {"speech_end_s": speech_end_s})
    (root / "audio" / "manifest.yaml").write_text(yaml.safe_dump(manifest))
    return root
