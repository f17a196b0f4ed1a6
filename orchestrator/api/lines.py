"""The lines of a worker's event feed as they were written, for `events` and for scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.store.journal import older
from orchestrator.store.paths import WorkerPaths


def event_lines(paths: WorkerPaths, *, since: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield the events on disk from `since` (seconds since the epoch) on; bad lines are left out."""
    for file in (older(paths.events), paths.events):
        for line in _whole(file, 0)[0]:
            if float(line.get("t") or 0.0) >= since and line.get("event") != "feed":
                yield line


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
