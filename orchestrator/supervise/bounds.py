"""Keeps what lies around a worker within bounds while it works: Hermes' leftovers and old attempts.

A moment after each start, when Hermes boots and nobody waits for the disk; and where a worker runs for long,
after a delivery, at most once an hour.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from orchestrator.fleet.leftover import Leftover
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.hermes import home, tidy
from orchestrator.store import sweep
from orchestrator.store.paths import FleetPaths, WorkerPaths

log = logging.getLogger("hermux")
ATTEMPTS = 50
"""Attempts of which pid, exit and last screen are kept."""
EVERY = 3600.0


class Bounds:
    """Remembers only when it looked last, so that a delivery costs nothing."""

    def __init__(self, paths: FleetPaths) -> None:
        self._paths = paths
        self._looked: dict[str, float] = {}

    def launched(self, spec: WorkerSpec, root: Path, *, began: float) -> None:
        """Tidy up after a start; `began` is a moment before it, in epoch seconds."""
        self._looked[spec.name] = time.monotonic()
        self._tidy(spec, root, began)

    def delivered(self, spec: WorkerSpec, root: Path, *, launched: float) -> None:
        """Tidy up if that is an hour ago; `launched` is when the attempt began, in epoch seconds."""
        now = time.monotonic()
        if now - self._looked.setdefault(spec.name, now) >= EVERY:
            self._looked[spec.name] = now
            self._tidy(spec, root, launched)

    def _tidy(self, spec: WorkerSpec, root: Path, before: float) -> None:
        over = old_attempts(self._paths.worker(spec.name), ATTEMPTS)
        if not spec.user_profile and home.is_ours(root, spec.hermes_profile):
            folder = home.profile_dir(root, spec.hermes_profile)
            over += tidy.surplus(folder, now=time.time(), before=before)
        for left in over:
            try:
                sweep.delete(left)
            except OSError as error:
                log.warning("%s: %s cannot be deleted: %s", spec.name, left.path, error)


def old_attempts(paths: WorkerPaths, keep: int) -> list[Leftover]:
    """Return the folders of all attempts but the newest `keep`."""
    numbers = sorted(int(name) for name in sweep.names(paths.dir, "attempts") if name.isdigit())
    found = [
        sweep.look("attempt", paths.dir, f"attempts/{n}", "older than the newest ones")
        for n in numbers[:-keep]
    ]
    return [left for left in found if left is not None]
