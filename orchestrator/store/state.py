"""`state.json`: the last picture that the supervisor drew; readers show its age.

The file's own time is when the picture was last found true: what did not change is not written again.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.store.files import BadFile, read_json, write_text
from orchestrator.store.paths import FleetPaths


@dataclass(frozen=True, slots=True)
class State:
    """The picture and its age in seconds when it was read."""

    data: dict[str, Any]
    time: float
    """When it was last found true, seconds since the epoch."""
    age: float

    @property
    def workers(self) -> dict[str, dict[str, Any]]:
        found = self.data.get("workers")
        return found if isinstance(found, dict) else {}


class StateFile:
    """Writes the picture; only the fleet's supervisor has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left: tuple[int, int, int] | None = None

    def write(self, text: str, now: float) -> None:
        """Replace the picture atomically; raises OSError, and the old one is then still there.

        Not synced: after a power cut the next supervisor finds out what it needs from the other files.
        """
        self._left = None
        write_text(self._path, text, sync=False)
        self._date(now)

    def touch(self, now: float) -> bool:
        """Say that the picture is still true; False if the file is not as this writer left it."""
        if self._left is None or _stamp(self._path) != self._left:
            return False
        self._date(now)
        return True

    def _date(self, now: float) -> None:
        os.utime(self._path, (now, now))
        self._left = _stamp(self._path)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_state(paths: FleetPaths) -> State | None:
    """Return the last picture, None when there is none yet, or none that can be read."""
    try:
        data = read_json(paths.state)
        true = paths.state.stat().st_mtime
    except (BadFile, OSError):
        return None
    if data is None:
        return None
    return State(data, true, max(0.0, time.time() - true))
