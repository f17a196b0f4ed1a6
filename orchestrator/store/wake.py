"""The FIFO by which commands and plugins tell the supervisor to look again, and at whom.

A line names the worker whose files changed; an empty one, or anything else, means all. Writers never wait
and never fail: what the supervisor is not told of, it finds itself within a second or so.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def poke(path: Path, worker: str = "") -> None:
    """Wake the supervisor that reads this FIFO, for a worker or for all; every error is ignored.

    ENXIO = there is no supervisor. One write of less than PIPE_BUF bytes is never mixed with another.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISFIFO(os.fstat(handle).st_mode):
                os.write(handle, f"{worker}\n".encode())
        finally:
            os.close(handle)


def open_wake(path: Path) -> int:
    """Create the FIFO if need be and return a non-blocking descriptor to read it by.

    It is opened for reading and writing, so that it never reports an end of file.
    """
    try:
        made = path.lstat()
    except FileNotFoundError:
        os.mkfifo(path, 0o600)
    else:
        if not stat.S_ISFIFO(made.st_mode):
            path.unlink()
            os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def drain(handle: int) -> set[str]:
    """Empty the FIFO and return the lines that were in it, without their ends."""
    told = b""
    with suppress(BlockingIOError):
        while part := os.read(handle, 1 << 16):
            told += part
    return set(told.decode(errors="replace").splitlines())
