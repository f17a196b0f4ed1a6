"""Whose events these are: the worker's own Hermes process, from the environment of its launch script."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEY = "OPENAI_API_KEY"
FURTHER_KEY = re.compile(r"AUXILIARY_HERMUX_\w+_API_KEY")
"""Keys of fallback models and inherited tools."""
PROXY_LOGIN = re.compile(r"(?:\w+://)?([^/@:]*:([^/@]*))@")
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
        secrets=_secrets(env),
    )


def _secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return keys and proxy passwords, and the form that they take inside JSON, where that differs."""
    found = [value for name, value in env.items() if name == KEY or FURTHER_KEY.fullmatch(name)]
    for name, value in env.items():
        login = PROXY_LOGIN.match(value) if name.lower().endswith("_proxy") else None
        found += [login[1], login[2]] if login else []
    long = [text for text in found if len(text) >= MIN_SECRET]
    return tuple(dict.fromkeys([*long, *(json.dumps(text)[1:-1] for text in long)]))


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _same_terminal(pid_file: Path, pid: int) -> bool:
    """Whether `pid` is the process of the file or shares its session; True when that is unknowable."""
    try:
        launched = int(pid_file.read_text())
        return launched == pid or os.getsid(launched) == os.getsid(pid)
    except (OSError, ValueError):
        return True
