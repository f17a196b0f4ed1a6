"""The environments that tmux is run with: scrubbed for the server, repaired for a person's client."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from orchestrator.terminal.terminfo import first_known, known

_KEPT = frozenset(("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "TMUX_TMPDIR"))
_KEPT_PREFIXES = ("LC_", "XDG_")
UTF8 = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"


def server_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return what the server, and so every pane, inherits: no key of the caller's among it.

    A locale without UTF-8 is repaired, since wide characters would become `_`.
    """
    kept = {name: value for name, value in env.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    if not _utf8(kept):
        kept.pop("LC_ALL", None)
        kept["LC_CTYPE"] = UTF8
    return kept


def attach_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a person's client: not nested, with a TERM that this machine knows."""
    repaired = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
    term = repaired.get("TERM", "")
    if term == "dumb" or not known(term, env):
        repaired["TERM"] = first_known(("xterm-256color", "screen-256color", "xterm", "linux", "vt100"), env)
    return repaired


def _utf8(env: Mapping[str, str]) -> bool:
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return "utf-8" in locale.lower() or "utf8" in locale.lower()
