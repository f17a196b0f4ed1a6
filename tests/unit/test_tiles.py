"""How many tiles fit, how they are laid out, and what a worker's title says."""

from __future__ import annotations

import re

import pytest

from orchestrator.api.picture import Picture
from orchestrator.api.wall import next_waiting, running, tile
from orchestrator.cli.show import Column, blocks, too_wide
from orchestrator.terminal.tiles import LEAST, Room, grid, layout, pages


@pytest.mark.parametrize(
    "columns, rows, capacity",
    [(80, 23, 1), (20, 5, 1), (121, 23, 2), (130, 39, 4), (200, 59, 9), (500, 200, 9), (80, 50, 3)],
)
def test_capacity(columns: int, rows: int, capacity: int) -> None:
    assert Room(columns, rows).capacity == capacity


@pytest.mark.parametrize("columns", range(20, 320, 23))
@pytest.mark.parametrize("rows", range(5, 120, 13))
def test_every_page_is_filled_without_a_gap(columns: int, rows: int) -> None:
    """tmux refuses a layout whose cells do not add up."""
    room = Room(columns, rows)
    for count in range(1, room.capacity + 1):
        text = layout([f"%{n + 3}" for n in range(count)], room)
        leaves = re.findall(r"(\d+)x(\d+),\d+,\d+,(\d+)", text)
        assert [int(pane) for *_, pane in leaves] == [n + 3 for n in range(count)]
        across = grid(count, room)[0]
        assert sum(int(width) + 1 for width, *_ in leaves[:across]) - 1 == columns
        if count > 1:
            least = (min(columns, LEAST[0]), min(rows, LEAST[1]))
            assert all(int(w) >= least[0] and int(h) >= least[1] for w, h, _ in leaves)


def test_a_layout_is_as_tmux_prints_it() -> None:
    """Taken from `#{window_layout}` of tmux 3.3a."""
    assert layout(["%0", "%1"], Room(200, 51)) == "d7bb,200x51,0,0{100x51,0,0,0,99x51,101,0,1}"


@pytest.mark.parametrize("count, expected", [(0, 1), (1, 1), (9, 1), (10, 2), (19, 3)])
def test_pages(count: int, expected: int) -> None:
    assert pages(count, Room(200, 59)) == expected


def picture(**words: str) -> Picture:
    workers = {name: {"want": "run", "pane": "%1", "word": word} for name, word in words.items()}
    return Picture("default", 1.0, 0.0, {"pid": 1}, workers)


def test_who_has_a_tile() -> None:
    shown = picture(a="ready", b="ready", c="held")
    shown.workers["b"] |= {"want": "stopped", "pane": ""}
    shown.workers["c"] |= {"pane": "", "attempt": 6}
    assert running(shown) == ["a", "c"]
    assert running(shown, "c*") == ["c"] and running(shown, "nobody") == []


def test_the_next_that_needs_a_person_goes_round() -> None:
    shown = picture(a="waiting", b="ready", c="draft")
    names = list(shown.workers)
    assert [next_waiting(names, shown, after=name) for name in ("", "a", "b", "c")] == ["a", "c", "c", "a"]
    assert next_waiting(["b"], shown) == ""


def test_a_title_has_no_control_characters() -> None:
    shown = tile("a", {"word": "waiting", "waiting": {"text": "rm \x1b[31m -rf\n#[fg=red]"}})
    assert (shown.word, shown.text) == ("waiting", "rm [31m -rf #[fg=red]")


def test_a_table_that_would_lose_columns_becomes_blocks() -> None:
    columns = (Column("NAME"), Column("STATE"), Column("CWD", least=8, optional=True))
    rows = [["w-1", "ready", "/a/long/path"], ["w-2", "held", ""]]
    assert too_wide(columns, rows, 15) and not too_wide(columns, rows, 60)
    assert not too_wide(columns, rows, None)
    assert blocks(columns, rows) == "w-1\n  state  ready\n  cwd    /a/long/path\nw-2\n  state  held"
