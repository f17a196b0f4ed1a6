"""Whose events these are: the worker's own Hermes process, from the environment of its launch script."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MIN_SECRET = 8
"""Characters; a shorter key would also blank ordinary words ("none", "test")."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A worker's folder, the attempt that this process is, and what must never be written."""

    directory: Path
    wake: Path | None
    attempt: int
    secrets: tuple[str, ...] = ()


def find_owner(env: Mapping[str, str] = os.environ, *, pid: int | None = None) -> Owner | None:
    """Return the worker that this process is, or None outside one.

    A Hermes started by a tool of the worker inherits its environment but not its terminal session
    (Hermes gives tools sessions of their own), and so is none.
    """
    directory = Path(env.get("HERMUX_DIR") or "/nonexistent")
    if not directory.is_dir():
        return None
    attempt = _number(env.get("HERMUX_ATTEMPT", ""))
    if not _same_terminal(directory / "attempts" / str(attempt) / "pid", pid or os.getpid()):
        return None
    wake = env.get("HERMUX_WAKE")
    return Owner(
        directory=directory,
        wake=Path(wake) if wake else None,
        attempt=attempt,
        secrets=_secrets(env.get("OPENAI_API_KEY", "")),
    )


def _secrets(key: str) -> tuple[str, ...]:
    """Return the key and the form that it takes inside JSON, where that differs."""
    return tuple({key, json.dumps(key)[1:-1]}) if len(key) >= MIN_SECRET else ()


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _same_terminal(pid_file: Path, pid: int) -> bool:
    """Whether `pid` is the process of the file or shares its session; True when that is unknowable."""
    try:
        launched = int(pid_file.read_text())
        return launched == pid or os.getsid(launched) == os.getsid(pid)
    except (OSError, ValueError):
        return True
