"""A lock that the kernel holds: it ends with the process, however that dies (flock(2))."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from orchestrator.errors import TimedOut
from orchestrator.version import __version__

_GLANCE = 0.1
"""Seconds for which `try_acquire` tries again: `holder` of another process holds it for microseconds."""


class FileLock:
    """An exclusive lock on a file, which is never removed.

    The file tells who holds it, `{pid, start, version}` with `start` in seconds since the epoch, but
    only the kernel's answer counts: a file left by a dead holder locks nothing.
    """

    def __init__(self, path: Path, *, timeout: float = 10.0) -> None:
        """`timeout` is how many seconds `with` waits for another holder before it raises TimedOut."""
        self.path = path
        self.timeout = timeout
        self._handle = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._handle >= 0

    def fileno(self) -> int:
        """Return the descriptor that carries the lock, for handing it on; -1 when not held."""
        return self._handle

    def try_acquire(self, *, patience: float = _GLANCE) -> bool:
        """Take the lock if nobody holds it within `patience` seconds."""
        deadline = time.monotonic() + patience
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while not _lock(handle, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                os.close(handle)
                return False
            time.sleep(0.005)
        self._handle = handle
        self._sign()
        return True

    def release(self) -> None:
        """Give the lock up; nothing happens when it is not held."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def in_place(self) -> bool:
        """Whether the file at the path is still the one that this object has locked."""
        try:
            there, ours = self.path.stat(), os.fstat(self._handle)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def holder(self) -> dict[str, Any] | None:
        """Return who holds the lock, None when nobody does.

        A holder that has not signed yet is returned as `{"pid": 0, "start": 0.0, "version": ""}`.
        """
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _lock(handle, fcntl.LOCK_SH):
                return None
            return _signature(os.pread(handle, 4096, 0))
        finally:
            os.close(handle)

    def _sign(self) -> None:
        text = json.dumps({"pid": os.getpid(), "start": time.time(), "version": __version__}) + "\n"
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, text.encode(), 0)

    def __enter__(self) -> FileLock:
        if not self.try_acquire(patience=self.timeout):
            pid = (self.holder() or {}).get("pid", 0)
            raise TimedOut(
                f"{self.path} has been locked for {self.timeout:g} s by process {pid}",
                hint=f"look at it with: ps -p {pid}",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _lock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signature(raw: bytes) -> dict[str, Any]:
    unsigned = {"pid": 0, "start": 0.0, "version": ""}
    try:
        found = json.loads(raw)
    except ValueError:
        return unsigned
    return unsigned | found if isinstance(found, dict) else unsigned
