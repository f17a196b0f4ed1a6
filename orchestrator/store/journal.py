"""`journal.jsonl`: every transition and action, a JSON object a line, oldest first."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends lines; a file over `max_bytes` becomes `<name>.1.jsonl`, replacing the one before."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 16 * 1024 * 1024,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`redact` is applied to every text that is written, for keys that may stand in it."""
        self.path = path
        self.max_bytes = max_bytes
        self.redact = redact
        self._handle = -1
        self._size = 0

    def write(self, **fields: Any) -> None:
        """Append one line, `v` and `time` (seconds since the epoch) added unless given; raises OSError."""
        line = self._redacted({"v": 1, "time": time.time(), **fields})
        raw = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")
        if self._handle < 0:
            self._open()
        if self._size + len(raw) > self.max_bytes and self._size:
            self._rotate()
        self._size += os.write(self._handle, raw)

    def close(self) -> None:
        """Close the file; a later `write` opens it again."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _open(self) -> None:
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._handle).st_size
        if self._size and os.pread(self._handle, 1, self._size - 1) != b"\n":
            self._size += os.write(self._handle, b"\n")  # a power cut, or a full disk, tore the last line

    def _rotate(self) -> None:
        self.close()
        self.path.replace(older(self.path))
        self._open()

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, dict):
            return {key: self._redacted(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._redacted(each) for each in value]
        return value


def older(path: Path) -> Path:
    """Return the name of the rotated file: `journal.jsonl` → `journal.1.jsonl`."""
    return path.with_name(f"{path.stem}.1{path.suffix}")


def read(path: Path, *, since: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield the lines of both files from `since` (seconds since the epoch) on; bad lines are left out."""
    for file in (older(path), path):
        try:
            lines = file.open("rb")
        except FileNotFoundError:
            continue
        with lines:
            yield from _since(lines, since)


def _since(lines: Iterator[bytes], since: float) -> Iterator[dict[str, Any]]:
    for raw in lines:
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and float(line.get("time") or 0.0) >= since:
            yield line
