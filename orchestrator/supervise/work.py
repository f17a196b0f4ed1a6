"""Whether the processes of a worker's tools work: measured only where a turn has been silent for a while."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from orchestrator.fleet.observation import Worked
from orchestrator.fleet.stall import in_doubt
from orchestrator.fleet.worker import Worker
from orchestrator.hermes.launch import read_pid
from orchestrator.store.paths import FleetPaths
from orchestrator.supervise.processes import of_worker

EVERY = 5.0
"""Seconds between two measurements; each reads the environment of every process once, some milliseconds."""
SHARE = 0.01
"""Of one core: what waits, such as an idle server of tools, uses less."""


@dataclass(frozen=True, slots=True)
class _Used:
    at: float
    """By the monotonic clock."""
    seconds: float
    written: int


class Work:
    """Remembers the last measurement of each worker that is in doubt."""

    def __init__(self, paths: FleetPaths) -> None:
        self._paths = paths
        self._used: dict[str, _Used] = {}
        self._looked = 0.0

    def seen(self, fleet: Mapping[str, Worker]) -> list[Worked]:
        """Return the workers whose tools worked since the last look."""
        now = time.monotonic()
        doubtful = {name: worker for name, worker in fleet.items() if in_doubt(worker)}
        if not doubtful or now - self._looked < EVERY:
            return []
        self._looked = now
        before, self._used = self._used, {name: self._measure(worker) for name, worker in doubtful.items()}
        return [
            Worked(name, worker.attempt)
            for name, worker in doubtful.items()
            if name in before and _more(before[name], self._used[name])
        ]

    def _measure(self, worker: Worker) -> _Used:
        import psutil  # 40 ms, and seldom needed

        own = {
            worker.life.pid if worker.life else 0,
            read_pid(self._paths.worker(worker.name).attempt(worker.attempt)),
        }
        seconds, written = 0.0, 0
        for process in of_worker(self._paths.worker(worker.name).dir):
            if process.pid in own:
                continue
            with suppress(psutil.Error):
                tool = psutil.Process(process.pid)
                seconds += sum(
                    tool.cpu_times()[:4]
                )  # user, system, and those of children that were waited for
                if hasattr(tool, "io_counters"):
                    written += getattr(tool.io_counters(), "write_chars", 0)
        return _Used(time.monotonic(), seconds, written)


def _more(before: _Used, after: _Used) -> bool:
    return after.written > before.written or after.seconds - before.seconds >= SHARE * (after.at - before.at)
