"""Taking a fleet over from the supervisor that runs, of whatever version: workers go on meanwhile.

TERM has it end between two turns of its loop, with everything recorded. One that does not end is killed,
which loses nothing either: what it was in the middle of stands in `state.json` and is carried on.
"""

from __future__ import annotations

import logging
import signal
import time

from orchestrator.store.lock import FileLock
from orchestrator.terminal.process import Process

log = logging.getLogger("hermux")
PATIENCE = 10.0
"""Seconds for the safe point: a turn of the loop that waits for a silent tmux takes at most that long."""


def take_over(lock: FileLock, *, patience: float = PATIENCE, rounds: int = 3) -> bool:
    """Take the lock from whoever holds it; False when somebody else had it after each of the rounds."""
    for _ in range(rounds):
        if lock.try_acquire(patience=0):
            return True
        _end(lock, patience)
        if lock.try_acquire():
            return True
    return False


def _end(lock: FileLock, patience: float) -> None:
    """Have the holder end. It is its holder for sure: while the kernel says so, its pid is nobody else's."""
    holder = lock.holder() or {}
    process = Process.of(int(holder.get("pid") or 0))
    if process is None or (lock.holder() or {}).get("pid") != process.pid:
        return
    log.info("supervisor %d (hermux %s) is asked to hand over", process.pid, holder.get("version"))
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 2.0)):
        process.signal(number)
        deadline = time.monotonic() + seconds
        while process.alive():
            if time.monotonic() >= deadline:
                log.warning("supervisor %d did not end within %.0f s", process.pid, seconds)
                break
            if lock.holder() is None:
                return
            time.sleep(0.005)
        else:
            return
