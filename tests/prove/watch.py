"""Follows a fleet's `state.json` so closely that a kill can be aimed at a step of an operation."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

EVERY = 0.003
"""Seconds between two looks; the file is parsed only when it was replaced."""


class Watch(threading.Thread):
    """`worker()` is the newest picture; `entered()` counts the Enters that were about to be pressed."""

    def __init__(self, state: Path) -> None:
        super().__init__(daemon=True)
        self._path = state
        self._workers: dict[str, dict[str, Any]] = {}
        self._enters: dict[str, list[tuple[str, float]]] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()

    def run(self) -> None:
        """Follow the file until `end`."""
        seen = (0, 0)
        while not self._ended.wait(EVERY):
            try:
                status = self._path.stat()
                stamp = (status.st_ino, status.st_mtime_ns)
                if stamp != seen:
                    seen = stamp
                    self._take(json.loads(self._path.read_bytes())["workers"])
            except (OSError, ValueError):
                continue

    def end(self) -> None:
        """Stop following."""
        self._ended.set()
        self.join()

    def worker(self, name: str) -> dict[str, Any]:
        """Return a worker's entry, {} before there is one."""
        return self._workers.get(name, {})

    def enters(self, name: str) -> int:
        """Return how many messages have come to the step `entered` so far."""
        return len(self._enters.get(name, ()))

    def entered(self, name: str, before: int, timeout: float) -> bool:
        """Wait for the next Enter after the first `before` ones; False when none comes."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self.enters(name) <= before:
                if not self._changed.wait(deadline - time.monotonic()):
                    return False
        return True

    def _take(self, workers: dict[str, dict[str, Any]]) -> None:
        with self._changed:
            self._workers = workers
            for name, entry in workers.items():
                op = entry["operation"]
                if op is not None and op["step"] == "entered":
                    known = self._enters.setdefault(name, [])
                    if (op["message"], op["since"]) not in known[-1:]:
                        known.append((op["message"], op["since"]))
            self._changed.notify_all()
