"""One thing that the doctor looked at: what was seen, and what to type where something is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.errors import HermuxError


class State(StrEnum):
    """How a check ended. Only `FAIL` makes the doctor's exit code 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    name: str
    state: State
    seen: str
    """One line."""
    next: str = ""
    """What to type or change; "" only where nothing is wrong."""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.state is State.FAIL


class Trouble(HermuxError):
    """What a check found wrong; `hint` is the next step."""


def ok(name: str, seen: str) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, State.OK, seen)


def warn(name: str, seen: str, next: str) -> Check:
    """Return a check that found what may become trouble."""
    return Check(name, State.WARN, seen, next)


def fail(name: str, seen: str, next: str) -> Check:
    """Return a check that failed."""
    return Check(name, State.FAIL, seen, next)


def skipped(name: str, why: str) -> Check:
    """Return a check that was not made because an earlier one failed."""
    return Check(name, State.SKIPPED, why)


def timed(name: str, look: Callable[[], Check]) -> Check:
    """Return the check that `look` makes, with its seconds; a HermuxError or OSError of it is a failure."""
    begun = time.monotonic()
    try:
        found = look()
    except HermuxError as error:
        found = fail(name, str(error), error.hint or "hermux doctor --json  (then look at the line above)")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        found = fail(name, f"{where}{error.strerror or error}", "free space, or check the permissions there")
    return replace(found, seconds=round(time.monotonic() - begun, 3))
