"""Which terminal types this machine knows: terminfo(5) read as files, so no library state is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_SYSTEM = (
    "/etc/terminfo",
    "/lib/terminfo",
    "/usr/lib/terminfo",
    "/usr/share/terminfo",
    "/usr/share/misc/terminfo",
)
_PREFIXES = (
    "/usr/local/share/terminfo",
    "/opt/homebrew/share/terminfo",
    "/run/current-system/sw/share/terminfo",
)


def known(term: str, env: Mapping[str, str]) -> bool:
    """Return whether a description of `term` lies where ncurses looks for it."""
    if not term or "/" in term or "\0" in term:
        return False
    names = (term[0], f"{ord(term[0]):x}")
    return any((folder / name / term).is_file() for folder in _folders(env) for name in names)


def first_known(terms: tuple[str, ...], env: Mapping[str, str]) -> str:
    """Return the first of `terms` that is known here, or the last one where none is."""
    return next((term for term in terms if known(term, env)), terms[-1])


def _folders(env: Mapping[str, str]) -> list[Path]:
    own = [env.get("TERMINFO", ""), str(Path(env["HOME"]) / ".terminfo") if env.get("HOME") else ""]
    more = env.get("TERMINFO_DIRS", "").split(":")
    return [Path(folder) for folder in (*own, *more, *_SYSTEM, *_PREFIXES) if folder]
