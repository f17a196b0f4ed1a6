"""JSON files that are whole or absent: written beside the target, then renamed over it."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.errors import NotReady

LARGEST = 64 << 20
"""Bytes; the largest file of ours is a message of a few megabytes."""


class BadFile(NotReady):
    """A file of ours that cannot be read as what it should be; the message names it."""


def write_text(path: Path, text: str, *, mode: int = 0o600, sync: bool = True) -> None:
    """Replace a file atomically. With `sync` it survives a power cut once this returns.

    Raises OSError (full disk, read-only file system); the old content is then still there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(text.encode())
            file.flush()
            if sync:
                os.fsync(handle)
        os.replace(temporary, path)  # noqa: PTH105 (Path.replace costs an object a call)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if sync:
        sync_directory(path.parent)


def write_json(path: Path, obj: object, *, mode: int = 0o600, sync: bool = True) -> None:
    """Replace a JSON file atomically; see `write_text`."""
    write_text(path, json.dumps(obj, ensure_ascii=False, separators=(",", ":")) + "\n", mode=mode, sync=sync)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, None if there is no such file; raises BadFile otherwise."""
    try:
        text = _regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}") from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not JSON: {error}", hint="restore it from a backup") from error
    if not isinstance(found, dict):
        raise BadFile(f"{path} holds no JSON object", hint="restore it from a backup")
    return found


def _regular(path: Path) -> bytes:
    """Return the content of a regular file; a FIFO or a device would stop the reader for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise BadFile(f"{path} is no regular file")
        if status.st_size > LARGEST:
            raise BadFile(f"{path} is larger than {LARGEST >> 20} MiB")
        return file.read()


def sync_directory(path: Path) -> None:
    """Make renames in a directory survive a power cut; file systems that cannot are left alone."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
