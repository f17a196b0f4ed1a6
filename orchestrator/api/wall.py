"""The wall: all running workers of a fleet, tiled on this terminal and kept current until the person leaves."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from orchestrator.api.picture import Picture, read_picture
from orchestrator.api.select import select
from orchestrator.errors import NotReady, TerminalError, UnknownWorker, UsageError
from orchestrator.terminal.tiles import pages
from orchestrator.terminal.wall import Tile, Wall
from orchestrator.terminal.wall_config import NEXT, PREVIOUS, WAITING

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet

EVERY = 0.5
"""Seconds between two looks at the picture; keys and a change of size are noticed at once."""
NEEDS_A_PERSON = ("waiting", "held", "failed", "draft")
COLOURS = {
    "busy": "colour39",
    "background": "colour39",
    "ready": "colour34",
    "waiting": "colour214",
    "draft": "colour214",
    "failed": "colour196",
    "held": "colour196",
    "backoff": "colour196",
}
ENDS = (signal.SIGTERM, signal.SIGHUP)


def check_terminal(env: Mapping[str, str]) -> None:
    """Raise UsageError for a terminal that cannot place text on a screen."""
    if env.get("TERM") == "dumb":
        raise UsageError(
            "the wall needs a terminal that can place text, and TERM is dumb",
            hint="TERM=xterm-256color hermux attach --wall, or without a wall: hermux ls -w",
        )


def watch(fleet: Fleet, pattern: str = "", *, read_only: bool = False) -> None:
    """Show the running workers that `pattern` means (all by default) until the person leaves.

    No worker is resized, and keys reach one only in its opened tile; with `read_only` not even there.
    Raises UsageError (terminal, pattern), NotReady when none runs, TerminalError.
    """
    check_terminal(fleet.env)
    if not running(read_picture(fleet.paths), pattern):
        raise NotReady(
            f"no worker runs in fleet {fleet.name}",
            hint="hermux start '*' starts all, hermux spawn a new one",
        )
    config = fleet.paths.root / ("wall-read-only.conf" if read_only else "wall.conf")
    wall = Wall(fleet.server(), config, fleet=fleet.name, read_only=read_only)
    before = {number: signal.signal(number, _leave) for number in ENDS}
    try:
        wall.open()
        Hall(wall, lambda: read_picture(fleet.paths), pattern).run()
    finally:
        wall.close()
        for number, handler in before.items():
            signal.signal(number, handler)


class Hall:
    """Which page of the wall is shown, and what stands on it."""

    def __init__(self, wall: Wall, look: Callable[[], Picture], pattern: str = "") -> None:
        self._wall, self._look, self._pattern = wall, look, pattern
        self._page = 0

    def run(self) -> None:
        """Keep the wall current until the person leaves."""
        asked: list[str] | None = []
        while asked is not None:
            picture = self._look()
            names = running(picture, self._pattern)
            try:
                self._obey(asked, names, picture)
                self._show(names, picture)
            except TerminalError:
                if self._wall.wait(EVERY) is None:  # the person left meanwhile
                    return
                raise
            asked = self._wall.wait(EVERY)

    def _obey(self, asked: Sequence[str], names: Sequence[str], picture: Picture) -> None:
        for word in asked:
            if word == NEXT:
                self._page += 1
            elif word == PREVIOUS:
                self._page -= 1
            elif word == WAITING:
                self._go_to(next_waiting(names, picture, after=self._wall.selected), names, picture)

    def _go_to(self, worker: str, names: Sequence[str], picture: Picture) -> None:
        if worker:
            self._page = names.index(worker) // self._wall.room.capacity
            self._show(names, picture)
            self._wall.select(worker)

    def _show(self, names: Sequence[str], picture: Picture) -> None:
        room = self._wall.room
        count = pages(len(names), room)
        self._page %= count
        first = self._page * room.capacity
        tiles = [tile(name, picture.workers[name]) for name in names[first : first + room.capacity]]
        summary = _summary(names, picture, f"page {self._page + 1}/{count}" if count > 1 else "")
        nobody = f"no worker runs in fleet {picture.fleet}; one that starts appears here"
        self._wall.show(tiles, summary=summary, nobody=nobody)


def running(picture: Picture, pattern: str = "") -> list[str]:
    """Return the workers that have a screen: those that run, are held, or wait for their next start."""
    names = [
        name
        for name, worker in picture.workers.items()
        if worker.get("pane") or (worker.get("want") == "run" and worker.get("attempt"))
    ]
    if not pattern:
        return names
    try:
        chosen = select([pattern], list(picture.workers), fleet=picture.fleet, groups=picture.groups)
    except UnknownWorker:
        return []
    return [name for name in names if name in chosen]


def tile(name: str, worker: Mapping[str, Any]) -> Tile:
    """Return the title of a worker's tile: its state and what it waits for or does."""
    word = str(worker.get("word") or "")
    waiting = worker.get("waiting") or {}
    text = waiting.get("text") or worker.get("why") or (worker.get("doing") if word == "busy" else "")
    line = " ".join(str(text or "").removeprefix(f"{word}: ").split())
    return Tile(name, word, "".join(c for c in line if c.isprintable())[:200], COLOURS.get(word, "default"))


def next_waiting(names: Sequence[str], picture: Picture, *, after: str = "") -> str:
    """Return the next worker behind `after`, round the fleet, that needs a person; "" for none."""
    start = names.index(after) + 1 if after in names else 0
    around = [*names[start:], *names[:start]]
    return next((name for name in around if picture.workers[name].get("word") in NEEDS_A_PERSON), "")


def _summary(names: Sequence[str], picture: Picture, page: str) -> str:
    calling = [name for name in names if picture.workers[name].get("word") in NEEDS_A_PERSON]
    told = [page or f"{len(names)} worker{'' if len(names) == 1 else 's'}"]
    if calling:
        told.append(f"{len(calling)} wait{'s' if len(calling) == 1 else ''}: {calling[0]}")
    if picture.warning:
        told.append("no supervisor" if picture.supervisor is None else "the supervisor is silent")
    return " | ".join(filter(None, told))


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
