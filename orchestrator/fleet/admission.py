"""Whether there is memory for one more worker, and whether it is one worker's turn to be rolled. Pure.

A worker needs `PER_WORKER` until workers of this fleet have been measured, then what the largest of
them has. One that has just been started has not reached its size yet: the rest is promised to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from orchestrator.fleet.worker import Phase, Worker

MB = 1_000_000
PER_WORKER = 500 * MB
"""Bytes for a worker of which nothing is known: idle it takes 115 MB, users report 500 MB after real use."""
LEAST_PER_WORKER = 200 * MB
GROWS_FOR = 60.0
"""Seconds up after which a worker counts as measured."""


def headroom(total: int) -> int:
    """Return the bytes that are kept free on a machine with `total`: a tenth, 512 MB to 4 GB."""
    return min(max(total // 10, 512 * MB), 4096 * MB)


@dataclass(frozen=True, slots=True)
class Host:
    """The machine's memory at one moment, in bytes. `limit` is what may be used: RAM, or a cgroup's."""

    available: int
    limit: int
    headroom: int
    per_worker: int = PER_WORKER
    used: Mapping[str, int] = field(default_factory=dict)
    """Resident bytes of each live worker's Hermes."""


class Room:
    """The memory that is left for starts, as one call of `decide` gives it away."""

    def __init__(self, host: Host | None, workers: Iterable[Worker], now: float) -> None:
        self._host = host
        self._need = PER_WORKER
        self._promised: dict[str, int] = {}
        if host is not None:
            alive = [worker for worker in workers if worker.life is not None]
            grown = [host.used.get(w.name, 0) for w in alive if _grown(w, now)]
            self._need = max(max(grown), LEAST_PER_WORKER) if grown else host.per_worker
            for worker in alive:
                if not _grown(worker, now):
                    self._promise(worker.name, host.used.get(worker.name, 0))

    def _promise(self, name: str, used: int) -> None:
        self._promised[name] = max(0, self._need - used)

    def refuses(self, name: str) -> str:
        """Return why this worker cannot be started now, with the arithmetic; "" = it can."""
        host = self._host
        if host is None:
            return ""
        others = {other: size for other, size in self._promised.items() if other != name}
        left = host.available - sum(others.values()) - self._need
        if left >= host.headroom:
            return ""
        promised = f" - {_size(sum(others.values()))} promised to {len(others)} that grow" if others else ""
        return (
            f"waits for memory: {_size(host.available)} available{promised} - {_size(self._need)} for this "
            f"worker = {_size(left)}, and {_size(host.headroom)} stay free"
        )

    def take(self, name: str) -> None:
        """Give a worker its memory."""
        self._promise(name, 0)


def may_roll(worker: Worker, others: Iterable[Worker]) -> bool:
    """Whether a worker that is to be rolled may go now: no other one is on its way, or failed to come up."""
    return not any(_rolling(other) for other in others if other.name != worker.name)


def _rolling(worker: Worker) -> bool:
    if not worker.roll or not worker.wanted:
        return False
    away = worker.phase in (Phase.STOPPING, Phase.STOPPED, Phase.STARTING, Phase.BACKOFF, Phase.PENDING)
    return away or (worker.phase is Phase.HELD and worker.attempt > worker.roll)


def _grown(worker: Worker, now: float) -> bool:
    return worker.phase is Phase.UP and worker.life is not None and now - worker.life.launched >= GROWS_FOR


def _size(number: int) -> str:
    """Return bytes in GB to a tenth, or in MB below one GB; minus stays."""
    return f"{number / 1e9:.1f} GB" if abs(number) >= 1e9 else f"{number / 1e6:.0f} MB"
