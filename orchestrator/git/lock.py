"""One lock for each repository: the kernel's, on the git directory that all its worktrees share.

No file is made for it, so nothing of the repository changes, and every hermux of every user meets there.
git itself takes no such lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import TimedOut

PATIENCE = 600.0
"""Seconds: another spawn may be checking out a large repository."""


@contextmanager
def repository_lock(common: Path, *, timeout: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a repository by its common git directory. Raises TimedOut, OSError."""
    handle = os.open(common, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + timeout
        while not _locked(handle):
            if time.monotonic() >= deadline:
                raise TimedOut(
                    f"another hermux has been at work on {common} for {timeout:g} s",
                    hint="hermux worktree ls",
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
