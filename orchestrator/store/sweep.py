"""Finding and deleting what is left over, without ever following a symbolic link.

A folder that is trusted is opened as it is; below it each step is opened by name with O_NOFOLLOW, and what
is deleted at the end is the very file that was looked at before. So a link that somebody puts there
meanwhile, or another file of the same name, is left alone.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.fleet.leftover import Leftover

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def look(kind: str, below: Path, name: str, why: str) -> Leftover | None:
    """Return a file or folder as it is now; None when it is gone, or a link is on the way to it."""
    try:
        with _folder_of(below, name) as (folder, last):
            status = os.stat(last, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                size, newest = _measure(folder, last)
            elif stat.S_ISREG(status.st_mode):
                size, newest = status.st_size, status.st_mtime
            else:
                return None
    except OSError:
        return None
    return Leftover(kind, below, name, size, newest, why, status.st_dev, status.st_ino)


def names(below: Path, folder: str) -> list[str]:
    """Return what is in a folder, in the order of its names; nothing when a link is on the way to it."""
    try:
        with _folder_of(below, f"{folder}/." if folder else ".") as (handle, _):
            return sorted(os.listdir(handle))  # noqa: PTH208 (a descriptor)
    except OSError:
        return []


def delete(left: Leftover) -> bool:
    """Delete a leftover if it is still the same one; whether it is gone because of this. Raises OSError."""
    try:
        with _folder_of(left.below, left.name) as (folder, last):
            status = os.stat(last, dir_fd=folder, follow_symlinks=False)
            if (status.st_dev, status.st_ino) != (left.device, left.inode):
                return False
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(last, dir_fd=folder)
            elif status.st_mtime > left.time:
                return False
            else:
                os.unlink(last, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _folder_of(below: Path, name: str) -> Iterator[tuple[int, str]]:
    """Open the folder that holds `below/name`; raises OSError for a link or `..` on the way."""
    *steps, last = Path(name).parts if name != "." and not name.endswith("/.") else (*Path(name).parts, ".")
    if ".." in (*steps, last) or Path(name).is_absolute():
        raise FileNotFoundError(name)
    handle = os.open(below, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in steps:
            inner = os.open(step, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, last
    finally:
        os.close(handle)


def _measure(folder: int, name: str) -> tuple[int, float]:
    """Return the bytes of all files in a folder, and when the newest of them was written."""
    size, newest = 0, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    for _, inner, files, handle in os.fwalk(name, dir_fd=folder, follow_symlinks=False):
        for each in (*inner, *files):
            status = os.stat(each, dir_fd=handle, follow_symlinks=False)
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            newest = max(newest, status.st_mtime)
    return size, newest
