"""`hermux ls` on a fleet of eight beside an empty typer command of the same interpreter."""

from __future__ import annotations

import sys
import time

from home import HERMUX, Home
from row import Row, Series

LIMIT = 1.15
EMPTY = """\
import sys
import typer

app = typer.Typer()


@app.command()
def one() -> None:
    pass


@app.command()
def two() -> None:
    pass


if __name__ == "__main__":
    sys.exit(app())
"""


def measure(home: Home, *, quick: bool) -> Row:
    """Alternate the two after one unmeasured run of each."""
    empty = home.path / "empty.py"
    empty.write_text(EMPTY)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(11 if quick else 41):
        theirs.append(_timed(home, sys.executable, str(empty), "one"))
        ours.append(_timed(home, str(HERMUX), "ls"))
    return Row(
        "ls",
        "hermux ls of eight workers",
        Series("hermux ls", "ms", tuple(ours[1:])),
        [Series("an empty typer command, one of two", "ms", tuple(theirs[1:]))],
        limit=LIMIT,
    )


def _timed(home: Home, *argv: str) -> float:
    began = time.perf_counter()
    home.run(*argv)
    return 1000 * (time.perf_counter() - began)
