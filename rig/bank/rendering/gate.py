"""A gate: one measured value of a clip and the limits that it must keep. What is measured is `gates`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Gate(BaseModel):
    """One measured value and the limits that it must keep."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def passed(self) -> bool:
        """True within both limits."""
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    @property
    def limits(self) -> str:
        """The limits in words."""
        limits = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        limits += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        return " and ".join(limits)

    def __str__(self) -> str:
        return f"{self.value:.3g}, must be {self.limits}"


def gate(value: float, *, at_least: float | None = None, at_most: float | None = None) -> Gate:
    """A gate with its figures rounded to three decimals, as the manifest stores them."""
    low, high = (None if limit is None else round(limit, 3) for limit in (at_least, at_most))
    return Gate(value=round(value, 3), at_least=low, at_most=high)
