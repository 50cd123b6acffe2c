"""Where the tool calls of an agent are seen that its connection does not carry: a webhook of ours, a log of its own.

What was seen reaches a session as received frames, so that cassettes hold it and it can be read anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from captures.frames import InFrame


class ToolChannel(Protocol):
    """Hands each request on to the session whose call it belongs to. Used on the event loop only."""

    def attach(self, call_id: str, on_frame: Callable[[InFrame], None]) -> None:
        """From now on requests of this call go to `on_frame`, stamped as they arrive.

        Raises:
            ValueError: the call is attached already.
        """
        ...

    def detach(self, call_id: str) -> None:
        """No more requests of this call; safe to call twice."""
        ...
