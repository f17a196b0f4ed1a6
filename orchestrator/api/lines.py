"""The lines of a worker's event feed as they were written, for `events` and for scripts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.store.journal import older
from orchestrator.store.paths import WorkerPaths


def event_lines(paths: WorkerPaths, *, since: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield the events on disk from `since` (seconds since the epoch) on; bad lines are left out."""
    for file in _both(paths.events):
        with file:
            for raw in file:
                line = _parsed(raw) if raw.endswith(b"\n") else {}
                if line and _time(line) >= since and line.get("event") != "feed":
                    yield line


def _both(path: Path) -> list[BinaryIO]:
    """Open the rotated file and the one now, as they belong together: a rotation hides no line."""
    while True:
        now = _opened(path)
        files = [file for file in (_opened(older(path)), now) if file is not None]
        if now is None or _end(path)[1] in (0, os.fstat(now.fileno()).st_ino):
            return files
        for file in files:
            file.close()


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _time(line: dict[str, Any]) -> float:
    found = line.get("t")
    return float(found) if isinstance(found, int | float) else 0.0


def follow(path: Path, *, poll: float = 0.2) -> Iterator[dict[str, Any]]:
    """Yield the lines that are appended from now on, for ever; a rotation by rename is followed."""
    position, inode = _end(path)
    while True:
        time.sleep(poll)
        try:
            now = path.stat()
        except FileNotFoundError:
            continue
        if now.st_ino != inode or now.st_size < position:
            rest = _whole(older(path), position)[0] if now.st_ino != inode and inode else []
            yield from rest
            position, inode = 0, now.st_ino
        lines, position = _whole(path, position)
        yield from lines


def _end(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_ino


def _whole(path: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines from byte `start` on, and where the next one begins."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            raw = file.read()
    except FileNotFoundError:
        return [], start
    end = raw.rfind(b"\n") + 1
    return [line for line in map(_parsed, raw[:end].splitlines()) if line], start + end


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
