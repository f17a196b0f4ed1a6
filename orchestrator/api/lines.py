"""The lines of a file that grows and is rotated, as they were written: for `events`, `logs` and scripts."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.store.journal import older

Line = dict[str, Any]
Mark = tuple[int, int]
"""How far a file has been read: bytes, and its inode; (0, 0) = there is none yet."""
POLL = 0.2
"""Seconds between two looks at whether a followed file has grown."""


def lines(
    path: Path,
    *,
    clock: str,
    keep: Callable[[Line], bool],
    since: float = 0.0,
    tail: int | None = None,
    follow: bool = False,
) -> Iterator[Line]:
    """Yield the lines on disk, oldest first, and with `follow` those that come, for ever: each line once.

    `clock` is the field with a line's time, seconds since the epoch; only lines from `since` on that `keep`
    is true of are taken, and with `tail` only the last so many of those on disk. Bad lines are left out.
    """
    files, mark = _both(path)
    found = (line for line in _read(files, mark) if _time(line, clock) >= since and keep(line))
    yield from found if tail is None else deque(found, maxlen=tail)
    if follow:
        yield from filter(keep, _follow(path, mark))


def _both(path: Path) -> tuple[list[BinaryIO], Mark]:
    """Open the rotated file and the one now, as they belong together: a rotation hides no line."""
    while True:
        now = _opened(path)
        mark = _end(path)
        files = [file for file in (_opened(older(path)), now) if file is not None]
        if now is None or mark[1] in (0, os.fstat(now.fileno()).st_ino):
            return files, mark
        for file in files:
            file.close()


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _read(files: list[BinaryIO], mark: Mark) -> Iterator[Line]:
    for file in files:
        with file:
            newest = os.fstat(file.fileno()).st_ino == mark[1]
            at = 0
            for raw in file:
                at += len(raw)
                if newest and at > mark[0]:  # `_follow` brings it
                    break
                if raw.endswith(b"\n") and (line := _parsed(raw)):
                    yield line


def _time(line: Line, clock: str) -> float:
    found = line.get(clock)
    return float(found) if isinstance(found, int | float) else 0.0


def _follow(path: Path, mark: Mark) -> Iterator[Line]:
    position, inode = mark
    while True:
        try:
            now = path.stat()
        except FileNotFoundError:
            time.sleep(POLL)
            continue
        if now.st_ino != inode or now.st_size < position:
            rest = _whole(older(path), position)[0] if now.st_ino != inode and inode else []
            yield from rest
            position, inode = 0, now.st_ino
        new, position = _whole(path, position)
        yield from new
        time.sleep(POLL)


def _end(path: Path) -> Mark:
    """Return where the last whole line ends."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            size = found.st_size
            while size:
                step = min(size, 1 << 16)
                file.seek(size - step)
                newline = file.read(step).rfind(b"\n")
                if newline >= 0:
                    return size - step + newline + 1, found.st_ino
                size -= step
    except FileNotFoundError:
        return 0, 0
    return 0, found.st_ino


def _whole(path: Path, start: int) -> tuple[list[Line], int]:
    """Return the whole lines from byte `start` on, and where the next one begins."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            raw = file.read()
    except FileNotFoundError:
        return [], start
    end = raw.rfind(b"\n") + 1
    return [line for line in map(_parsed, raw[:end].splitlines()) if line], start + end


def _parsed(raw: bytes) -> Line:
    try:
        found = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
