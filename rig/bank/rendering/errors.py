"""What the commands around rendering report to a user in one line."""

from __future__ import annotations


class RenderError(ValueError):
    """A bank, file or installation that cannot be rendered with as it is; the message says what to mend."""
