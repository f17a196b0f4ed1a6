"""Every file of a folder as it lies there: raw bytes, no filter, nothing that an index says about it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

GIT = ".git"
LINKED = 0
"""In place of the ctime of a file with several names: deleting one of them changes it."""
REGULAR, EXECUTABLE, LINK = "100644", "100755", "120000"


@dataclass(frozen=True, slots=True)
class File:
    """A regular file or a symbolic link."""

    mode: str
    """As git writes it: 100644, 100755, 120000."""
    permissions: int
    size: int
    mark: tuple[int, ...]
    """Changes with every write: inode, size, mtime, ctime."""


@dataclass(slots=True)
class Walk:
    """What is in a folder, by paths relative to it."""

    files: dict[str, File] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    """Folders with nothing in them."""
    git: list[str] = field(default_factory=list)
    """`.git` of nested repositories, and names that git would refuse: files, links and folders."""
    special: list[str] = field(default_factory=list)
    """FIFOs, sockets and devices: they hold no content."""
    size: int = 0
    """Bytes on disk."""

    @property
    def nested(self) -> list[str]:
        """The nested repositories."""
        return [path.rpartition("/")[0] for path in self.git if path.endswith(f"/{GIT}")]


def walk(root: Path, *, skip: str = GIT) -> Walk:
    """Look at everything below `root`, but for its own entry `skip`. Raises OSError."""
    found = Walk()
    _into(root, "", found, skip)
    return found


def _into(root: Path, below: str, found: Walk, skip: str) -> None:
    with os.scandir(root / below) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    kept = [entry for entry in entries if below or entry.name != skip]
    if not entries and below:
        found.empty.append(below)
    for entry in kept:
        path = f"{below}/{entry.name}" if below else entry.name
        status = entry.stat(follow_symlinks=False)
        found.size += status.st_blocks * 512
        if _refused(entry.name, status):
            found.git.append(path)
            found.size += size_of(root / path) if stat.S_ISDIR(status.st_mode) else 0
        elif stat.S_ISDIR(status.st_mode):
            _into(root, path, found, skip)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            found.files[path] = file_of(status)
        else:
            found.special.append(path)


def _refused(name: str, status: os.stat_result) -> bool:
    """Whether git's index takes no such name: `.git` in any case, and a link called .gitmodules."""
    small = name.lower()
    return small == GIT or (small == ".gitmodules" and stat.S_ISLNK(status.st_mode))


def file_of(status: os.stat_result) -> File:
    """Return what matters of a file's status."""
    plain = EXECUTABLE if status.st_mode & stat.S_IXUSR else REGULAR
    mode = LINK if stat.S_ISLNK(status.st_mode) else plain
    changed = status.st_ctime_ns if status.st_nlink == 1 else LINKED
    mark = (status.st_ino, status.st_size, status.st_mtime_ns, changed)
    return File(mode, stat.S_IMODE(status.st_mode), status.st_size, mark)


def size_of(folder: Path) -> int:
    """Return the bytes on disk of everything in a folder."""
    total = 0
    for path in everything(folder):
        total += path.lstat().st_blocks * 512
    return total


def everything(path: Path) -> Iterator[Path]:
    """Yield a path and, of a folder, all that is in it, parents first; links are not followed."""
    yield path
    if path.is_dir() and not path.is_symlink():
        for name in sorted(os.listdir(path)):  # noqa: PTH208
            yield from everything(path / name)


def content(path: Path) -> bytes:
    """Return what git stores of a file or link."""
    if path.is_symlink():
        return os.fsencode(os.readlink(path))  # noqa: PTH115
    return path.read_bytes()


def blob_id(path: Path, algorithm: str) -> str:
    """Return the id that git gives to the raw bytes of a file or link: `sha1` or `sha256`. Raises OSError."""
    if path.is_symlink():
        raw = content(path)
        return hashlib.new(algorithm, b"blob %d\0" % len(raw) + raw).hexdigest()
    with path.open("rb") as file:
        digest = hashlib.new(algorithm, b"blob %d\0" % os.fstat(file.fileno()).st_size)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
