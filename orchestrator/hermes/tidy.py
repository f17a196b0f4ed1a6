"""What Hermes leaves in a worker's profile, and how much of it stays.

Measured on 0.19.0: a turn that fails leaves the whole request (65 KB with an empty conversation, more with a
long one) in `sessions/request_dump_*.json`; a pasted text of five lines or 2,000 characters stays in
`pastes/`; a delegation leaves a log a child in `cache/delegation/live/`, which Hermes drops at the next one
after 7 days. Nothing else drops what is named here. Hermes rotates its logs itself: 5 MB and three older
ones of `agent.log`, 2 MB and two of `errors.log`.
Conversations (`state.db`, `sessions/session_*`), memories, skills, checkpoints and models are never named.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from orchestrator.fleet.leftover import Leftover

DAY = 86400.0
MIB = 1 << 20
KIND = "cache"


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of one kind of file stays: the newest `files`, at most `bytes` of them, none over `days` old."""

    folder: str
    pattern: str
    files: int
    bytes: int
    days: float
    why: str
    always: bool = False
    """Also files of the attempt that runs: Hermes writes them and never reads them again."""


_DUMPS = "Hermes wrote it after a failed request and never reads it again"
_PASTES = "its text is in the conversation; the prompt that showed it is gone"
_CACHED = "a copy of what a tool fetched or showed"
BOUNDS = (
    Bound("sessions", "request_dump_*.json", 20, 8 * MIB, 7, _DUMPS, always=True),
    Bound("logs", "*.log.[0-9]*", 4, 8 * MIB, 30, "an older log of Hermes", always=True),
    Bound("pastes", "paste_*.txt", 200, 16 * MIB, 30, _PASTES),
    Bound("cache/delegation/live", "deleg_*", 100, 32 * MIB, 7, "the log of children that are done"),
    *(
        Bound(f"cache/{name}", "*", 500, 64 * MIB, 30, _CACHED)
        for name in (
            "web",
            "screenshots",
            "vision",
            "images",
            "audio",
            "video",
            "videos",
            "documents",
            "terminal-output",
        )
    ),
)
"""Also the documentation of the bounds: docs/files.md says the same."""


def surplus(home: Path, *, now: float, before: float) -> list[Leftover]:
    """Return what is beyond the bounds in a profile's folder, oldest first; times in epoch seconds.

    Files written after `before` (the start of the attempt that runs) may still be in use and are left out,
    but for those that Hermes never reads again. Links are not followed and never returned.
    """
    return [left for bound in BOUNDS for left in _over(home, bound, now, before)]


def _over(home: Path, bound: Bound, now: float, before: float) -> Iterator[Leftover]:
    found = sorted(_entries(home, bound), key=lambda left: left.time, reverse=True)
    size, over = 0, []
    for number, left in enumerate(found):
        size += left.bytes
        used = left.time >= before and not bound.always
        beyond = number >= bound.files or size > bound.bytes or now - left.time > bound.days * DAY
        if beyond and not used:
            over.append(left)
    yield from reversed(over)


def _entries(home: Path, bound: Bound) -> Iterator[Leftover]:
    folder = home
    for step in Path(bound.folder).parts:
        folder /= step
        if folder.is_symlink():
            return
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if not fnmatchcase(path.name, bound.pattern):
            continue
        try:
            status = path.lstat()
            size, newest = (
                _measure(path) if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime)
            )
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            name = f"{bound.folder}/{path.name}"
            yield Leftover(KIND, home, name, size, newest, bound.why, status.st_dev, status.st_ino)


def _measure(folder: Path) -> tuple[int, float]:
    inner = [path.lstat() for path in folder.iterdir()]  # Hermes nests nothing deeper here
    sizes = sum(each.st_size for each in inner if stat.S_ISREG(each.st_mode))
    return sizes, max((each.st_mtime for each in inner), default=folder.lstat().st_mtime)
