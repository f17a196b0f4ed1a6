"""Whom a turn of the loop concerns, so that an idle worker costs nothing but a look each second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.fleet.looking import PATIENT, patience
from orchestrator.fleet.worker import Worker

EVERYONE_EVERY = 1.0
"""Seconds after which every worker is looked at, whether somebody told of it or not."""


@dataclass(frozen=True, slots=True)
class Turn:
    """`workers` are looked at and decided upon in any case; with `everyone` the others are, too."""

    workers: frozenset[str]
    everyone: bool


class Turns:
    """Gathers between two turns who is to be looked at in the next one."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._last = 0.0

    def name(self, workers: Iterable[str]) -> None:
        """Have workers looked at; a name that none has (a line for all, or of an older plugin) means all."""
        self._named.update(workers)

    def next(self, fleet: Mapping[str, Worker], now: float) -> Turn:
        """Begin a turn: who was named, who is in the middle of something, and everyone where it is time."""
        everyone = not self._named <= fleet.keys() or not 0 <= now - self._last < EVERYONE_EVERY
        if everyone:
            self._last = now
        midway = {name for name, worker in fleet.items() if patience(worker, now) < PATIENT}
        named, self._named = self._named, set()
        return Turn(frozenset(named | midway), everyone)
