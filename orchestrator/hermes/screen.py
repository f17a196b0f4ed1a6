"""Where things stand on the screen of Hermes' prompt_toolkit chat: prompt rows, status bar, dialog box.

From the bottom up Hermes draws (cli.py `_build_tui_layout_children`, 0.19.0)

    dialog box · spinner · hint · status bar · rule · input rows (1 to 8) · rule · completion menu

with rules as wide as the pane. Below 64 columns the lower rule is left out. Everything above is
output that scrolls, so it may contain anything, a rule and a prompt symbol too: only the lowest
zone counts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

NARROW = 64
"""Columns below which Hermes draws its minimal chrome."""
FULL_ROWS = 8
"""Input rows that Hermes draws at most; beyond that they scroll."""
MAX_ROWS = FULL_ROWS + 1
"""With one row of image badges."""
MENU_ROWS = 13
"""Twelve completions and a voice line, below the lower rule."""

_RULE = re.compile(r"─{20,}")
_BELOW = re.compile(r"\s|🎤|$")
_STATUS = re.compile(r" ?[^\w\s]\S* \S.* [│·] ")


@dataclass(frozen=True, slots=True)
class Zone:
    """The lowest prompt zone: its `rows`, the index of the first one, and the lines above its rule."""

    rows: tuple[str, ...]
    top: int
    above: tuple[str, ...]

    @property
    def status(self) -> str:
        """The status bar, or "" (Hermes hides it during a resize and under its model picker)."""
        line = self.above[-1] if self.above else ""
        return line if _STATUS.match(line) else ""


def find_zone(screen: str) -> Zone | None:
    """Return the lowest prompt zone of a captured screen; None where there is none that is whole."""
    lines = [line.rstrip() for line in screen.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    rules = [index for index, line in enumerate(lines) if _RULE.fullmatch(line)]
    return _wide_zone(lines, rules) or _narrow_zone(lines, rules)


def _wide_zone(lines: list[str], rules: list[int]) -> Zone | None:
    if len(rules) < 2:
        return None
    top, bottom = rules[-2:]
    whole = NARROW <= _pane_columns(lines) == len(lines[top]) == len(lines[bottom])
    below = lines[bottom + 1 :]
    if not whole or len(below) > MENU_ROWS or not all(_BELOW.match(line) for line in below):
        return None
    return _zone(lines, top, bottom)


def _narrow_zone(lines: list[str], rules: list[int]) -> Zone | None:
    if not rules:
        return None
    top = rules[-1]
    if not len(lines[top]) == _pane_columns(lines) < NARROW:
        return None
    return _zone(lines, top, len(lines))


def _zone(lines: list[str], top: int, bottom: int) -> Zone | None:
    rows = tuple(lines[top + 1 : bottom])
    if not 0 < len(rows) <= MAX_ROWS:
        return None
    return Zone(rows, top + 1, tuple(lines[:top]))


def box_above(lines: tuple[str, ...]) -> list[str]:
    """Return the text lines of the dialog box that stands just above the status bar, or nothing."""
    near = list(lines[-8:-1])
    ends = [index for index, line in enumerate(near) if line.startswith("╰─")]
    if not ends:
        return []
    end = len(lines) - 1 - len(near) + ends[-1]
    starts = [index for index in range(end) if lines[index].startswith("╭─")]
    if not starts:
        return []
    title = lines[starts[-1]].strip("╭╮─ ")
    body = [line.strip().strip("│").rstrip() for line in lines[starts[-1] + 1 : end]]
    return ([title] if title else []) + [line[1:] if line.startswith(" ") else line for line in body]


def _pane_columns(lines: list[str]) -> int:
    """Return how many columns the pane has at least; Hermes' rules are as wide as the pane."""
    return max(map(_columns, lines))


@lru_cache(maxsize=4096)
def _columns(line: str) -> int:
    """Return how many columns a line has at least. Most lines of a screen were there at the last look, too."""
    return len(line) if line.isascii() else sum(1 for char in line if _cells(char))


def cut(line: str, cells: int) -> str:
    """Return the part of a line that stands in its first `cells` terminal cells."""
    used = 0
    for index, char in enumerate(line):
        used += _cells(char)
        if used > cells:
            return line[:index]
    return line


def _cells(char: str) -> int:
    joined = "\u1160" <= char <= "\u11ff" or "\U0001f3fb" <= char <= "\U0001f3ff"  # jamo, skin tones
    if joined or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
