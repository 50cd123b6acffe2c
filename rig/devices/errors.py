"""What can go wrong with a measurement of devices."""

from __future__ import annotations


class DelayError(Exception):
    """The delay could not be measured; one line that says why and what to do."""
