"""Reads what the plugin wrote: `events.jsonl` line by line, and the answers in `turns/`.

An offset counts bytes over the whole life of a feed: each file begins with (or lacks, = 0) a line
`{"event": "feed", "base": N}`, N being the offset of its first byte. Offsets only grow; a rotation
leaves a gap, so that lines which a hook was still writing into the old file keep offsets of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.fleet.events import Event, EventName
from orchestrator.hermes.plugin.text import file_safe

FEED = "events.jsonl"
PREVIOUS = "events.1.jsonl"
LIMIT = 16 << 20
"""Bytes of a file of the feed; with the file before, a worker's events take twice this."""
ROTATION_GAP = 1 << 20
"""Bytes between the end of a file, when it is rotated, and the base of the next."""
_KNOWN = frozenset(EventName)
COMMON = frozenset({"v", "t", "pid", "attempt", "event", "session", "platform", "turn"})


def parse(line: bytes, offset: int) -> Event | None:
    """Return the event of a line, None for an event of a name unknown here; raise ValueError for rubbish."""
    raw = json.loads(line)
    if not isinstance(raw, dict) or "event" not in raw:
        raise ValueError("no event")
    if raw["event"] not in _KNOWN:
        return None
    try:
        return Event(
            name=EventName(raw["event"]),
            time=float(raw["t"]),
            pid=int(raw["pid"]),
            attempt=int(raw["attempt"]),
            session=str(raw.get("session") or ""),
            platform=str(raw.get("platform") or ""),
            turn=str(raw.get("turn") or ""),
            data={key: value for key, value in raw.items() if key not in COMMON},
            offset=offset,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error


@dataclass(slots=True)
class _Segment:
    """One file of the feed, held open: a rename does not take it away."""

    file: BinaryIO
    base: int
    position: int = 0
    inode: int = 0

    def lines(self) -> Iterator[tuple[bytes, int]]:
        """Yield whole lines from `position` on, with the offset just after each; a torn last one stays."""
        self.file.seek(self.position)
        for line in self.file:
            if not line.endswith(b"\n"):
                return
            self.position += len(line)
            yield line, self.base + self.position

    def end(self) -> int:
        """Return the offset of the file's end as it is now."""
        return self.base + os.fstat(self.file.fileno()).st_size

    def is_still(self, path: Path) -> bool:
        """Whether `path` names this file, or nothing, and what was read is still in it."""
        try:
            now = path.stat()
        except FileNotFoundError:
            return True
        return now.st_ino == self.inode and now.st_size >= self.position


@dataclass(slots=True)
class Feed:
    """An incremental reader. One reader a worker; it never writes.

    `bad` counts lines that were no event, which are skipped. A file that is missing is an empty feed.
    """

    path: Path
    offset: int = 0
    bad: int = 0
    _current: _Segment | None = field(default=None, repr=False)
    _previous: _Segment | None = field(default=None, repr=False)
    """The file before, kept open: a line may still be on its way into it."""
    _retired: list[_Segment] = field(default_factory=list, repr=False)
    """Files before that, newest first, read once more at this call."""

    @classmethod
    def at(cls, path: Path, offset: int) -> Feed:
        """Return a reader that goes on after `offset`, also when the file was rotated since."""
        feed = cls(path, offset)
        feed._previous = _open(path.with_name(PREVIOUS), after=offset)
        return feed

    def read(self) -> list[Event]:
        """Return the events since the last call, oldest first; raise OSError when the file can't be read.

        Files are read newest first: what a writer put into an old one before its first line in the new
        one is then there, and each writer's events keep their order over a rotation.
        """
        self._follow()
        parts = [
            self._collect(segment)
            for segment in (self._current, self._previous, *self._retired)
            if segment is not None
        ]
        for segment in self._retired:
            segment.file.close()
        self._retired.clear()
        return [event for part in reversed(parts) for event in part]

    def behind(self) -> bool:
        """Whether something was written since the last `read`; a torn last line counts. Reads nothing."""
        if self._current is None:
            return self.path.exists()
        return (
            self._current.end() > self._current.base + self._current.position
            or not self._current.is_still(self.path)
        )

    def close(self) -> None:
        """Close the files; a later `read` opens them again where it was."""
        for segment in (self._previous, self._current):
            if segment is not None:
                segment.file.close()
        self._previous = self._current = None

    def _collect(self, segment: _Segment) -> list[Event]:
        events = []
        for line, offset in segment.lines():
            self.offset = max(self.offset, offset)
            try:
                event = parse(line, offset)
            except ValueError:
                self.bad += 1
                continue
            if event is not None:
                events.append(event)
        return events

    def _follow(self) -> None:
        """Open the file that `path` names now, if it is another one than before."""
        if self._current is not None and self._current.is_still(self.path):
            return
        fresh = _open(self.path, after=self.offset)
        if fresh is None:
            return
        read = self.offset if self._current is None else max(self.offset, self._current.end())
        if fresh.base < read and (self._current is not None or fresh.end() < read):
            # Not a rotation of ours: emptied, or deleted and begun anew. All of it is new.
            fresh.base, fresh.position = read + ROTATION_GAP, 0
        self._shelve()
        self._current = fresh

    def _shelve(self) -> None:
        """Keep the file read so far for lines still to come, and one rotated since that was never read."""
        if self._current is None:
            return
        between = _open(self.path.with_name(PREVIOUS), after=self._current.end())
        if between is not None and between.base >= self._current.end():
            self._retire(self._current)
            self._current = between
        elif between is not None:
            between.file.close()
        self._retire(self._previous)
        self._previous = self._current

    def _retire(self, segment: _Segment | None) -> None:
        """Have a file read a last time."""
        if segment is not None:
            self._retired.append(segment)


def _open(path: Path, *, after: int) -> _Segment | None:
    """Open a file of the feed just after the offset `after`; None where there is none."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    base = _base(file)
    status = os.fstat(file.fileno())
    return _Segment(file, base, min(max(0, after - base), status.st_size), status.st_ino)


def _base(file: BinaryIO) -> int:
    """Return the offset of a file's first byte: what its first line says, else 0."""
    line = file.readline(65536)
    try:
        raw = json.loads(line)
        return int(raw["base"]) if raw.get("event") == "feed" else 0
    except (ValueError, TypeError, KeyError, AttributeError):
        return 0


def rotate(path: Path, max_bytes: int) -> bool:
    """Move a feed beyond `max_bytes` to `events.1.jsonl` and start a new one; return whether it did.

    The path is never absent, so a hook that writes meanwhile lands in the old or in the new file.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    if size <= max_bytes:
        return False
    with path.open("rb") as file:
        base = _base(file) + size + ROTATION_GAP
    fresh, old = path.with_suffix(".new"), path.with_suffix(".old")
    header = {"v": 1, "event": "feed", "base": base}
    fresh.write_text(json.dumps(header) + "\n")
    fresh.chmod(0o600)
    old.unlink(missing_ok=True)
    old.hardlink_to(path)
    old.replace(path.with_name(PREVIOUS))
    fresh.replace(path)
    return True


def iter_events(worker_dir: Path, *, since: float = 0.0) -> Iterator[Event]:
    """Yield a worker's events that are on disk, oldest first, from the time `since` (epoch seconds).

    A rotation meanwhile neither hides nor repeats an event.
    """
    for segment in _both(worker_dir):
        with segment.file:
            for line, offset in segment.lines():
                try:
                    event = parse(line, offset)
                except ValueError:
                    continue
                if event is not None and event.time >= since:
                    yield event


def _both(worker_dir: Path) -> list[_Segment]:
    """Open the file before and the file now, as they belong together."""
    while True:
        now = _open(worker_dir / FEED, after=0)
        before = _open(worker_dir / PREVIOUS, after=0)
        found = [segment for segment in (before, now) if segment is not None]
        if now is None or now.is_still(worker_dir / FEED):
            return found
        for segment in found:
            segment.file.close()


def read_turn(worker_dir: Path, turn: str) -> dict[str, Any] | None:
    """Return what a turn's file holds (`user`, `answer`, `truncated`, `tools`, …), None if it is gone."""
    try:
        content = json.loads((worker_dir / "turns" / file_safe(turn)).read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
