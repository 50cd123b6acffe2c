"""Agents that speak first: how long their greeting is waited for before the caller speaks. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adapters.target_settings import StrictSettings

Seconds = Annotated[float, Field(ge=0.1, le=120, strict=False)]


class Greeting(StrictSettings):
    """How an agent that speaks first is waited for."""

    wait_s: Seconds = 3.0
    """Nothing within this: it does not greet."""
    quiet_s: Seconds = 0.7
    """So long after the last of the greeting has been heard, the caller speaks."""
    max_s: Seconds = 20.0
    """Of all of it; then the caller speaks all the same."""


GreetingSetting = Greeting | Literal["none"]


def longest_s(setting: GreetingSetting) -> float:
    """The longest that a greeting may hold up the caller."""
    return setting.max_s if isinstance(setting, Greeting) else 0.0


class Waiting:
    """One session's wait for the end of the greeting. Times are monotonic ns."""

    def __init__(self, setting: GreetingSetting) -> None:
        self._setting = setting
        self._started_ns: int | None = None
        self._heard_until_ns: int | None = None
        self.over = False

    def begin(self, t_ns: int) -> None:
        """The line is open."""
        self._started_ns = t_ns

    def heard(self, until_ns: int) -> None:
        """Something audible came, or will be heard, up to then."""
        self._heard_until_ns = until_ns

    def cut(self, t_ns: int) -> None:
        """What was still to be heard was taken back."""
        if self._heard_until_ns is not None:
            self._heard_until_ns = min(self._heard_until_ns, t_ns)

    def due_ns(self) -> int | None:
        """When the caller may speak, by what is known so far; None before `begin` and once it is over."""
        if self._started_ns is None or self.over:
            return None
        setting = self._setting
        if not isinstance(setting, Greeting):
            return self._started_ns
        if self._heard_until_ns is None:
            return self._started_ns + round(setting.wait_s * 1e9)
        latest_ns = self._started_ns + round(setting.max_s * 1e9)
        return min(self._heard_until_ns + round(setting.quiet_s * 1e9), latest_ns)

    def is_over(self, now_ns: int) -> bool:
        """True once: at or after the moment from which the caller may speak."""
        due_ns = self.due_ns()
        if due_ns is None or now_ns < due_ns:
            return False
        self.over = True
        return True
