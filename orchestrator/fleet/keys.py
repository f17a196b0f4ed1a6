"""The names of keys, as tmux knows them. tmux types a name that it does not know as text: these are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from orchestrator.errors import UsageError

NAMED = (
    "Enter", "Escape", "Space", "Tab", "BTab", "BSpace", "Up", "Down", "Left", "Right", "Home", "End",
    "PageUp", "PgUp", "PPage", "PageDown", "PgDn", "NPage", "IC", "Insert", "DC", "Delete",
    *(f"F{number}" for number in range(1, 13)),
)  # fmt: skip
"""tmux 3.3a, key-string.c."""
_MODIFIERS = re.compile(r"^(?:[CMS]-)+(?=.)")


def check_keys(keys: Sequence[str]) -> None:
    """Raise UsageError for a word that is no key; a single character is one."""
    if not keys:
        raise UsageError("no key was named", hint="for example: Enter, Escape, C-c")
    known = {name.lower() for name in NAMED}
    for key in keys:
        bare = _MODIFIERS.sub("", key)
        if len(bare) == 1 or bare.lower() in known:
            continue
        near = get_close_matches(bare, NAMED, 1) or get_close_matches(bare.title(), NAMED, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{key!r} is no key",
            hint=f"{meant}a key is one character, or a name such as Enter, Escape, C-c, F1",
        )
