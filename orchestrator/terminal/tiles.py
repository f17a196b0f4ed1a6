"""How many tiles a terminal holds and where each lies. Pure.

A tile is a view of a worker's 120x40 screen; below about 60x15 it is not read any more. Sizes are in
cells, and a tile's title counts to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST = (60, 16)
"""Columns and rows of the smallest tile, its title included; a smaller terminal holds one tile."""
FULL = (120, 41)
"""A tile that shows all of a worker's screen."""
MOST = 3
"""Columns, and rows, of tiles on one page."""


@dataclass(frozen=True, slots=True)
class Room:
    """A window of tmux for tiles."""

    columns: int
    rows: int

    @property
    def capacity(self) -> int:
        """How many tiles a page holds, 1 to 9."""
        return _fits(self.columns, LEAST[0]) * _fits(self.rows, LEAST[1])


def pages(count: int, room: Room) -> int:
    """Return how many pages `count` tiles take, at least 1."""
    return max(1, -(-count // room.capacity))


def grid(count: int, room: Room) -> tuple[int, int]:
    """Return columns and rows for `count` tiles (at most the room's capacity).

    The shape is taken that shows most of each worker; where that is equal, the one with fewest empty places.
    """
    shapes = [
        (across, down)
        for across in range(1, _fits(room.columns, LEAST[0]) + 1)
        for down in range(1, _fits(room.rows, LEAST[1]) + 1)
        if across * down >= count and across <= count
    ]
    return min(shapes, key=lambda shape: (-_shown(shape, room), shape[0] * shape[1]))


def layout(panes: Sequence[str], room: Room) -> str:
    """Return the layout of tmux (as `#{window_layout}` prints it) for pane ids, row by row."""
    across = grid(len(panes), room)[0]
    rows = [panes[n : n + across] for n in range(0, len(panes), across)]
    cells, top = [], 0
    for height, row in zip(_shares(room.rows, len(rows)), rows, strict=True):
        cells.append(_row(row, room.columns, height, top))
        top += height + 1
    size = f"{room.columns}x{room.rows},0,0"
    tree = cells[0] if len(cells) == 1 else f"{size}[{','.join(cells)}]"
    return f"{_checksum(tree):04x},{tree}"


def _row(panes: Sequence[str], columns: int, height: int, top: int) -> str:
    cells, left = [], 0
    for width, pane in zip(_shares(columns, len(panes)), panes, strict=True):
        cells.append(f"{width}x{height},{left},{top},{pane.removeprefix('%')}")
        left += width + 1
    return cells[0] if len(cells) == 1 else f"{columns}x{height},0,{top}{{{','.join(cells)}}}"


def _shares(whole: int, parts: int) -> list[int]:
    """Return the sizes of `parts` cells with a line between each two, as equal as can be."""
    each, over = divmod(whole - (parts - 1), parts)
    return [each + (place < over) for place in range(parts)]


def _fits(whole: int, least: int) -> int:
    return max(1, min(MOST, (whole + 1) // (least + 1)))


def _shown(shape: tuple[int, int], room: Room) -> float:
    """Return which part of a worker's screen a tile shows, along the worse of both directions."""
    return min(room.columns / shape[0] / FULL[0], room.rows / shape[1] / FULL[1])


def _checksum(text: str) -> int:
    """Return tmux' own checksum of a layout (layout-custom.c)."""
    total = 0
    for character in text.encode():
        total = ((total >> 1) + ((total & 1) << 15) + character) & 0xFFFF
    return total
