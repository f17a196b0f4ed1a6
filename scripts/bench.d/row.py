"""One row of the report: a promise, our values, the peers' values of the same run, and the verdict."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one contestant, in `unit`, in the order in which they were measured."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles; of fewer than four values the least and the greatest."""
        if len(self.values) < 4:
            return min(self.values), max(self.values)
        low, _, high = statistics.quantiles(self.values, n=4)
        return low, high

    def __str__(self) -> str:
        """Return e.g. `8.4 ms (8.1–9.0)`."""
        low, high = self.spread
        return f"{number(self.median)} {self.unit} ({number(low)}–{number(high)})"


@dataclass(frozen=True, slots=True)
class Row:
    """A promise: `limit` is an upper bound of our median, or of our median over the first peer's."""

    name: str
    what: str
    ours: Series
    peers: Sequence[Series]
    limit: float | None = None
    limit_is_ratio: bool = True
    notes: Sequence[str] = ()
    also: Sequence[tuple[str, bool, str]] = ()
    """Further promises of the row: what was measured, whether that keeps it, and the promise."""

    @property
    def ratios(self) -> list[float]:
        """Our median over each peer's."""
        return [self.ours.median / peer.median if peer.median else float("inf") for peer in self.peers]

    @property
    def judged(self) -> float:
        return self.ratios[0] if self.limit_is_ratio else self.ours.median

    @property
    def kept(self) -> bool:
        return all(kept for _, kept, _ in self.also) and (self.limit is None or self.judged <= self.limit)

    @property
    def promise(self) -> str:
        if self.limit is None:
            return "none"
        first = f"≤ {self.limit:g} ×" if self.limit_is_ratio else f"≤ {self.limit:g} {self.ours.unit}"
        return "; ".join([first, *(promise for _, _, promise in self.also)])

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return "shown"
        missed = [what for what, kept, _ in self.also if not kept]
        return "kept" if self.kept else " ".join(["MISSED", *missed])


def number(value: float) -> str:
    """Return a value in three digits, or whole where it has more."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
