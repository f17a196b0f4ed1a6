"""What was asked and answered, a file a turn, mode 0600, bounded in size and number.

A file is written when the turn begins (`done` false, no answer) and replaced when it has its answer, so
that a turn which a kill cut off still says what was asked.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_USER = 256 * 1024
MAX_ANSWER = 4 * 1024 * 1024
KEPT = 200
"""Files; the oldest go first, and at most `BATCH` more lie there for a while."""
BATCH = 20


def save_turn(path: Path, facts: dict[str, Any], *, user: str, answer: str | None) -> None:
    """Write a turn's file atomically and drop the oldest files; `answer` None = it has none yet."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    short_user, cut_user = _within(user, MAX_USER)
    short_answer, cut_answer = _within(answer or "", MAX_ANSWER)
    content = {
        "schema": 1,
        **facts,
        "done": answer is not None,
        "user": short_user,
        "answer": short_answer,
        "truncated": cut_user or cut_answer,
        "user_cut": cut_user,
        "answer_cut": cut_answer,
    }
    data = json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)
    scratch.replace(path)
    _prune(path.parent)


def _within(text: str, limit: int) -> tuple[str, bool]:
    """Return the beginning of `text` that fits into `limit` bytes of UTF-8, and whether it was cut."""
    data = text.encode("utf-8", "replace")
    return data[:limit].decode("utf-8", "ignore"), len(data) > limit


def _prune(folder: Path) -> None:
    """Drop the oldest files, a batch at a time: looking at every file's time costs some ms."""
    files = list(folder.glob("*.json"))
    if len(files) < KEPT + BATCH:
        return
    with suppress(OSError):
        files.sort(key=lambda file: file.stat().st_mtime)
        for file in files[:-KEPT]:
            file.unlink(missing_ok=True)
