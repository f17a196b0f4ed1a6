"""The machine's memory for admission: read when somebody is to be started, workers measured now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from orchestrator.fleet.admission import MB, Host
from orchestrator.fleet.outcome import Traces
from orchestrator.fleet.worker import Worker
from orchestrator.health.memory import read_host, resident
from orchestrator.health.oom import in_kernel_log, oom_kills
from orchestrator.hermes.launch import read_pid
from orchestrator.store.paths import FleetPaths
from orchestrator.store.settings import Settings

HOST_EVERY = 0.25
MEASURE_EVERY = 10.0
"""Seconds. Measuring eight workers takes 1 ms, so it is kept off the way from a death to the next start."""


class Memory:
    """Remembers only the last readings."""

    def __init__(self, paths: FleetPaths, settings: Callable[[], Settings]) -> None:
        self._paths = paths
        self._settings = settings
        self._host: Host | None = None
        self._read = 0.0
        self._used: dict[str, int] = {}
        self._measured = 0.0
        self._kills: int | None = None

    def measure(self, fleet: Mapping[str, Worker], now: float) -> None:
        """Note the resident size of each live worker's Hermes, where that is due."""
        if 0 <= now - self._measured < MEASURE_EVERY:  # less than none: the clock was put back
            return
        self._measured = now
        self._kills = oom_kills()
        pids = {
            name: read_pid(self._paths.worker(name).attempt(worker.attempt))
            for name, worker in fleet.items()
            if worker.life is not None
        }
        self._used = {name: size for name, pid in pids.items() if pid and (size := resident(pid))}

    def traces(self, worker: Worker, now: float) -> Traces:
        """Return what is known of a worker that was just killed; each of the kernel's kills counts once."""
        before, after = self._kills, oom_kills()
        more = after - before if before is not None and after is not None else 0
        pid = read_pid(self._paths.worker(worker.name).attempt(worker.attempt))
        # The log is long, so no kill is sought in it that the counter does not have.
        said = in_kernel_log(pid) if pid and (more > 0 or after is None) else ""
        if self._kills is not None and more > 0:
            self._kills += 1
        return Traces(max(0, more), said, self._used.get(worker.name, 0), now - self._measured)

    def host(self, fleet: Mapping[str, Worker], now: float) -> Host | None:
        """Return the memory while a worker is to be started, else None: then nobody asks."""
        if all(worker.life is not None or not worker.wanted for worker in fleet.values()):
            return None
        if not 0 <= now - self._read <= HOST_EVERY:
            own = self._settings().memory
            self._read = now
            self._host = read_host(keep_free=own.headroom_mb * MB, per_worker=own.worker_mb * MB)
        return replace(self._host, used=self._used) if self._host else None
