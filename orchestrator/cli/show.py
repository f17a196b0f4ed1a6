"""Printing: data to stdout, talk to stderr; plain tables that fit the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `least` is the width it may shrink to; those that may vanish go first, the last of them first."""

    title: str
    least: int = 0
    """0 = never shortened."""
    optional: bool = False
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Return a table with one header line. `width` in columns; None = as wide as it comes.

    Columns without any content are left out. Too wide: shrinks columns that may shrink, widest first, then
    leaves optional ones out.
    """
    kept = [n for n, column in enumerate(columns) if not column.optional or any(row[n] for row in rows)]
    while True:
        widths = _widths(columns, rows, kept, width)
        droppable = [n for n in kept if columns[n].optional]
        if width is None or _total(widths) <= width or not droppable:
            break
        kept.remove(droppable[-1])
    header = [columns[n].title for n in kept]
    body = [[row[n] for n in kept] for row in rows]
    chosen = [columns[n] for n in kept]
    return "\n".join(_line(chosen, line, widths) for line in [header, *body])


def too_wide(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> bool:
    """Return whether a table of that width would leave columns out that hold something."""
    kept = [n for n, column in enumerate(columns) if not column.optional or any(row[n] for row in rows)]
    return width is not None and _total(_widths(columns, rows, kept, width)) > width


def blocks(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return each row as lines of its own: the first cell, and below it a line for each that is not empty."""
    titles = [column.title.lower() for column in columns]
    pad = max(len(title) for title in titles)
    parts = []
    for row in rows:
        lines = [f"  {title:<{pad}}  {cell}" for title, cell in zip(titles[1:], row[1:], strict=True) if cell]
        parts.append("\n".join([row[0], *lines]))
    return "\n".join(parts)


def out(text: str) -> None:
    """Print data."""
    sys.stdout.write(text + "\n")


def out_line(text: str) -> None:
    """Print a line of data at once, for readers that follow."""
    out(text)
    sys.stdout.flush()


def out_json(value: object) -> None:
    """Print one JSON document."""
    out(json.dumps(value, ensure_ascii=False, indent=2))


def out_json_line(value: object) -> None:
    """Print one JSON object as a line, at once."""
    out_line(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def runnable(text: str, fleet: str) -> str:
    """Return advice whose commands run as printed: they name the fleet where it is not the usual one."""
    if not fleet or fleet == os.environ.get("HERMUX_FLEET", "default"):
        return text
    return re.sub(r"\bhermux (?=[a-z])", f"hermux -F {fleet} ", text)


def talk(text: str) -> None:
    """Tell a person something on stderr."""
    sys.stdout.flush()
    sys.stderr.write(text + "\n")


def talker(quiet: bool) -> Callable[[str, str], None]:
    """Return what API calls report progress to."""

    def say(name: str, text: str) -> None:
        if not quiet:
            talk(f"{name} {text}" if name else text)

    return say


def terminal_width() -> int | None:
    """Return the width of the terminal that stdout is, None when it is none."""
    if not sys.stdout.isatty():
        return None
    try:
        return int(os.environ.get("COLUMNS", "")) or None
    except ValueError:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None


def text_width(text: str) -> int:
    """Return how many columns a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cell(mark) for mark in text)


def one_line(value: Any) -> str:
    """Return a text for a table cell: no line ends, no control characters."""
    text = " ".join(str(value if value is not None else "").split())
    return "".join(mark if mark.isprintable() else "·" for mark in text)


def _cell(mark: str) -> int:
    if unicodedata.combining(mark) or mark in "\u200b\u200d\ufe0e\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(mark) in "WF" else 1


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int], width: int | None
) -> list[int]:
    widths = [max([text_width(columns[n].title), *(text_width(row[n]) for row in rows)]) for n in kept]
    if width is None:
        return widths
    least = [columns[n].least or widths[place] for place, n in enumerate(kept)]
    while (over := _total(widths) - width) > 0:
        room = [now - small for now, small in zip(widths, least, strict=True)]
        most = max(room, default=0)
        if most <= 0:
            break
        place = room.index(most)
        widths[place] -= min(over, most)
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = [
        _fit(cell, width, column.right) for cell, width, column in zip(cells, widths, columns, strict=True)
    ]
    return GAP.join(shown).rstrip()


def _fit(text: str, width: int, right: bool) -> str:
    if text_width(text) > width:
        cut = ""
        for mark in text:
            if text_width(cut + mark) > width - 1:
                break
            cut += mark
        text = cut + "…"
    pad = " " * (width - text_width(text))
    return pad + text if right else text + pad
