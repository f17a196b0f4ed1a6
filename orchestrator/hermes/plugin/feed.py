"""Appends lines to `events.jsonl` and pokes the fleet's `wake`; never blocks."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from typing import Any

from .owner import Owner

MAX_LINE = 65536
"""Bytes. A longer line is reduced to what identifies the event."""
IDENTITY = ("v", "t", "pid", "attempt", "event", "session", "platform", "turn", "sha256", "bytes")


def encode(line: dict[str, Any]) -> bytes:
    """Return a line of at most `MAX_LINE` bytes, with its line end."""
    data = _dump(line)
    if len(data) <= MAX_LINE:
        return data
    return _dump({**{key: line[key] for key in IDENTITY if key in line}, "cut": True})


def _dump(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


class FeedWriter:
    """The file is opened for each line, so that a rotation (a rename) needs no signal."""

    def __init__(self, owner: Owner) -> None:
        self._path = owner.directory / "events.jsonl"
        self._wake = owner.wake
        self._line = f"{owner.directory.name}\n".encode()

    def append(self, line: dict[str, Any]) -> None:
        """Write a line with one `write()` (O_APPEND keeps lines of several threads whole)."""
        data = encode(line)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, data)
        finally:
            os.close(file)
        self.poke()

    def poke(self) -> None:
        """Wake the supervisor for this worker, if one listens and if `wake` is the FIFO that it should be."""
        if self._wake is None:
            return
        with suppress(OSError):
            pipe = os.open(self._wake, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if stat.S_ISFIFO(os.fstat(pipe).st_mode):
                    os.write(pipe, self._line)
            finally:
                os.close(pipe)
