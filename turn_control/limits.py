"""What a turn may take: time, silence and memory. Nothing that an agent sends is unbounded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one turn."""

    turn_s: float = 30.0
    """From the end of the caller's turn to the end of the answer."""
    quiet_s: float = 1.0
    """Silence after a complete call that ends the answer of a peer which waits for the call's result."""
    trailing_silence_s: float = 10.0
    """Longest silence sent after the clip while the peer's own turn detection makes up its mind."""
    max_reply_bytes: int = 32 * 1024 * 1024
    """Reply audio kept; more is dropped with a warning."""
    max_text_chars: int = 1_000_000
    """Kept of each text (reply, transcripts, one call's arguments); more is dropped with a warning."""
    max_calls: int = 64
    max_warnings: int = 50
