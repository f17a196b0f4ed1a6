"""A fault, and a blow: what one dealing of it is to come to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.selftest.stage import Stage


def _nothing() -> None:
    """Do nothing: what was hit comes back by itself."""


def _always() -> bool:
    return True


def _fine() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Blow:
    """One fault that was dealt."""

    noticed: Callable[[], bool] | None = None
    """Whether hermux has seen it; None = there is nothing to notice, work goes on."""
    heal: Callable[[], None] = _nothing
    """What a person, or the world, does about it afterwards; nothing where hermux has to do it alone."""
    recovered: Callable[[], bool] = _always
    """Whether all is as before; that every worker is up in its own conversation is asked in any case."""
    wrong: Callable[[], str] = _fine
    """What must not have happened beside messages and leftovers, "" if it has not."""
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the table. `strike` deals it to a worker, or returns why it cannot be provoked here."""

    name: str
    does: str
    strike: Callable[[Stage, str], Blow | str]
