"""Faults for the next requests, whatever they ask: set over HTTP, used up one by one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from threading import Lock

from orchestrator.rehearsal.script import ScriptError, Step, checked

FAULT_FIELDS: dict[str, type | tuple[type, ...]] = {
    "count": int,
    "status": int,
    "error": str,
    "retry_after": (int, float),
    "latency": (int, float),
    "cut": bool,
    "malformed": str,
}
MOST = 100_000
"""Faults that can wait at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request; fields that are not set leave the answer as it is."""

    status: int = 0
    error: str = ""
    retry_after: float | None = None
    """Seconds, the `Retry-After` header of a `status`."""
    latency: float = 0.0
    """Seconds before the first byte, added to the step's own delay."""
    cut: bool = False
    """The connection ends in the middle of the answer."""
    malformed: str = ""

    def apply(self, step: Step) -> Step:
        """Return `step` with this fault in it."""
        malformed = self.malformed or ("midstream_drop" if self.cut else "")
        if malformed:
            step = replace(step, status=0, malformed=malformed)
        if self.status:
            step = replace(step, status=self.status, error=self.error, retry_after=self.retry_after)
        return replace(step, delay=step.delay + self.latency)


def parse_faults(data: object) -> tuple[Fault, int]:
    """Read `{"count": N, …}` (count 1 if absent); raise ScriptError."""
    fields = dict(checked(data, FAULT_FIELDS, "fault"))
    count = fields.pop("count", 1)
    if not 1 <= count <= MOST:
        raise ScriptError(f"fault: count is 1 to {MOST}")
    return Fault(**fields), count


class Faults:
    """The faults that wait, in the order in which they were set. Safe for threads."""

    def __init__(self) -> None:
        self._waiting: deque[Fault] = deque(maxlen=MOST)
        self._lock = Lock()

    def add(self, fault: Fault, count: int) -> int:
        """Let `fault` happen to `count` requests, after those that wait already; return how many wait."""
        with self._lock:
            self._waiting.extend([fault] * count)
            return len(self._waiting)

    def take(self) -> Fault | None:
        """Use up the next fault."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        """Forget what waits."""
        with self._lock:
            self._waiting.clear()
