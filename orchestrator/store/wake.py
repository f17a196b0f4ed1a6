"""The FIFO by which commands and plugins tell the supervisor to look again.

Writers never wait and never fail: a supervisor that is not there reads the files when it comes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def poke(path: Path) -> None:
    """Wake the supervisor that reads this FIFO; every error is ignored (ENXIO = there is none)."""
    with suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISFIFO(os.fstat(handle).st_mode):
                os.write(handle, b"!")
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


def drain(handle: int) -> bool:
    """Empty the FIFO and tell whether anything was in it."""
    woken = False
    with suppress(BlockingIOError):
        while os.read(handle, 4096):
            woken = True
    return woken
