"""Keeps the garbage collector's long pauses out of measured turns.

A full collection walks every object alive: 30 to 250 ms with some tens of sessions open, in which no chunk leaves and
no reply is stamped. Collections of young objects take below 1 ms and go on as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000_000


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Within the block no full collection runs of itself; one runs on entry and one on exit.

    Long-lived garbage in reference cycles stays until the exit. A finished turn and its session are freed without the
    collector; whoever keeps their frames longer should clear them.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(before[0], before[1], _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect()
