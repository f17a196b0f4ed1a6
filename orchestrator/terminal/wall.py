"""A wall: a throw-away tmux server whose panes are clients of the fleet's, each on one worker.

It has a socket name of its own, deleted as soon as both of its clients are attached; nothing else can
reach it, and it ends with them. They die with this process (Linux: at once; elsewhere the person's client
stays until it is left). The tiles never size a worker: see `Server.watch_argv`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import TerminalError
from orchestrator.terminal import command
from orchestrator.terminal.binary import find_tmux
from orchestrator.terminal.environment import attach_env, server_env
from orchestrator.terminal.process import Process
from orchestrator.terminal.server import Server
from orchestrator.terminal.tiles import Room, layout
from orchestrator.terminal.wall_config import (
    COLOUR,
    SESSION,
    SUMMARY,
    TEXT,
    WORD,
    WORKER,
    write_wall_config,
)
from orchestrator.terminal.wire import Wire, die_with_parent

SOCKET = "hermux_wall_"
"""Followed by our pid. No fleet has such a name: theirs hold no `_`."""
NOBODY = "(none)"
OPEN_WITHIN = 20.0
AGAIN = 1.0
"""Seconds before a tile whose client ended is started once more."""
_ATTACH = ("-C", "attach-session", "-f", "no-output,ignore-size", "-t", f"={SESSION}:")
_PANES = "#{pane_id} #{pane_dead} #{pane_active} #{@worker}"
_WINDOW = "#{window_width} #{window_height} #{key-table} #{window_layout}"
_NOBODY = ["/bin/sh", "-c", 'printf "\\033[?25l\\n  %s\\n" "$1"; exec sleep 999999999', "sh"]
_FIRST = ["/bin/sh", "-c", ': > "$1"; exec sleep 999999999', "sh"]
_RENAMED = ("%window-renamed ", "%unlinked-window-renamed ")


@dataclass(frozen=True, slots=True)
class Tile:
    """What the title of a worker's tile says; `colour` is one of tmux' names."""

    worker: str
    word: str
    text: str = ""
    colour: str = "default"


@dataclass(frozen=True, slots=True)
class _Pane:
    pane_id: str
    dead: bool
    active: bool
    worker: str


class Wall:
    """One wall on this process's terminal, from `open` to `close`. Methods raise TerminalError."""

    def __init__(self, server: Server, config: Path, *, fleet: str, read_only: bool = False) -> None:
        self._fleet_server = server
        self._config = config
        self._fleet, self._read_only = fleet, read_only
        scrubbed = server_env(server.caller)
        self._env = attach_env(scrubbed)
        self._socket = f"{SOCKET}{os.getpid()}"
        self._client: subprocess.Popen[bytes] | None = None
        self._wire: Wire | None = None
        self._server: Process | None = None
        self._said: dict[str, Tile] = {}
        self._summary = ""
        self._tried: dict[str, float] = {}

    def open(self) -> None:
        """Put the terminal on an empty wall; raises TerminalError when tmux does not take it."""
        folder = self._fleet_server.socket_folder
        sweep(folder)
        write_wall_config(self._config, fleet=self._fleet, read_only=self._read_only, env=self._env)
        there = folder / self._socket
        stands = there.with_suffix(".up")
        start = ["new-session", "-s", SESSION, "--", *_FIRST, str(stands)]
        prefix = die_with_parent(self._env, signal.SIGTERM)
        self._client = subprocess.Popen([*prefix, *self._argv(*start)], env=self._env, cwd="/")
        try:
            self._connect(stands, time.monotonic() + OPEN_WITHIN)
        finally:
            for path in (there, stands):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    @property
    def room(self) -> Room:
        """The size that tiles have now."""
        columns, rows, *_ = self._window()
        return Room(int(columns), int(rows))

    @property
    def opened(self) -> bool:
        """Whether one tile has the whole window, or is about to have it."""
        return self._window()[2] != SESSION

    @property
    def selected(self) -> str:
        """The worker of the selected tile, "" where there is none."""
        return next((pane.worker for pane in self._panes() if pane.active), "")

    def wait(self, seconds: float) -> list[str] | None:
        """Return what keys asked for, at the latest after `seconds`; None when the person has left."""
        import select

        wire = self._talk()
        with suppress(TerminalError):
            select.select([wire], [], [], seconds)
            notices = wire.notices()
            if self._client is not None and self._client.poll() is None:
                names = [line.split(" ", 2)[2] for line in notices if line.startswith(_RENAMED)]
                return [name for name in names if name]
        return None

    def show(self, tiles: Sequence[Tile], *, summary: str = "", nobody: str = "") -> None:
        """Show exactly these workers, in this order; an open tile stays open while its worker is shown.

        Without any, the text `nobody`. Asked again with nothing changed, it changes nothing.
        """
        self._titles(tiles, summary)
        columns, rows, table, shape = self._window()
        if table != SESSION:
            active = next((pane for pane in self._panes() if pane.active), None)
            if active and not active.dead and active.worker in {tile.worker for tile in tiles}:
                return
            self._run(["set-option", "-g", "key-table", SESSION])
        self._fill([tile.worker for tile in tiles], nobody)
        self._titles(tiles, summary)
        order = [pane.pane_id for pane in self._panes()]
        wanted = layout(order, Room(int(columns), int(rows)))
        if wanted != shape:
            self._run(["select-layout", "-t", f"={SESSION}:", wanted])

    def select(self, worker: str) -> None:
        """Select a worker's tile."""
        for pane in self._panes():
            if pane.worker == worker:
                self._run(["select-pane", "-t", pane.pane_id])

    def close(self) -> int:
        """Take the wall down, wait until its server is gone, and return the exit code of its client."""
        client, code = self._client, 0
        if self._wire:
            self._wire.close()
        if client is not None:
            if client.poll() is None:
                client.terminate()
            code = client.wait()
        if self._server and not self._server.wait_gone(2.0):
            self._server.signal(signal.SIGKILL)
        return code

    def _connect(self, stands: Path, deadline: float) -> None:
        """Attach the control client when the first pane says that the session stands.

        One that comes earlier finds no session, and its leaving ends a server that has none yet.
        """
        assert self._client is not None
        while self._client.poll() is None and time.monotonic() < deadline:
            if not stands.exists():
                time.sleep(0.01)
                continue
            wire = Wire(self._argv(*_ATTACH), env=self._env)
            try:
                answer = wire.ask(["display-message -p '#{pid}'"], timeout=2.0)[0]
                self._wire, self._server = wire, Process.of(int(answer.lines[0]))
                return
            except (TerminalError, IndexError, ValueError):
                wire.close()
                time.sleep(0.02)
        raise TerminalError("tmux does not open the wall in this terminal", hint="try: TERM=xterm-256color")

    def _fill(self, workers: Sequence[str], nobody: str) -> None:
        """Have one live pane for each worker, in order, or one for nobody."""
        wanted = workers or [NOBODY]
        spare = [pane for pane in self._panes() if pane.worker not in wanted]
        panes = {pane.worker: pane.pane_id for pane in self._panes() if pane not in spare}
        for worker in wanted:
            if worker not in panes:
                pane_id = spare.pop(0).pane_id if spare else self._split()
                panes[worker] = pane_id
                self._start(pane_id, worker, nobody)
        for pane in spare:
            if pane.pane_id not in panes.values():
                self._run(["kill-pane", "-t", pane.pane_id])
        for pane in self._panes():
            if pane.dead and time.monotonic() - self._tried.get(pane.pane_id, 0.0) > AGAIN:
                self._start(pane.pane_id, pane.worker, nobody)
        self._sort([panes[worker] for worker in wanted])

    def _split(self) -> str:
        made = self._run(
            ["select-layout", "-t", f"={SESSION}:", "tiled"],
            ["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", f"={SESSION}:", "--", *_NOBODY, "…"],
        )
        return made[0]

    def _start(self, pane_id: str, worker: str, nobody: str) -> None:
        argv = [*_NOBODY, nobody]
        if worker != NOBODY:
            argv = self._fleet_server.watch_argv(worker, read_only=self._read_only, tile=True)
            argv = ["env", "-u", "TMUX", "-u", "TMUX_PANE", *argv]
        self._tried[pane_id] = time.monotonic()
        self._run(
            ["respawn-pane", "-k", "-t", pane_id, "--", *argv],
            ["select-pane", "-d", "-t", pane_id],
            ["set-option", "-p", "-t", pane_id, WORKER, worker],
        )

    def _sort(self, order: Sequence[str]) -> None:
        """Bring the panes into this order, by swaps."""
        now = [pane.pane_id for pane in self._panes()]
        for place, pane_id in enumerate(order):
            other = now[place]
            if other != pane_id:
                self._run(["swap-pane", "-d", "-s", pane_id, "-t", other])
                now[now.index(pane_id)], now[place] = other, pane_id

    def _titles(self, tiles: Iterable[Tile], summary: str) -> None:
        """Tell what has changed since it was told last."""
        by_name = {tile.worker: tile for tile in tiles}
        commands: list[command.Words] = []
        for pane in self._panes():
            tile = by_name.get(pane.worker, Tile("", ""))
            if self._said.get(pane.pane_id) != tile:
                self._said[pane.pane_id] = tile
                facts = {WORD: tile.word, TEXT: tile.text.replace("#", "##"), COLOUR: tile.colour}
                commands += [["set-option", "-p", "-t", pane.pane_id, *fact] for fact in facts.items()]
        if summary != self._summary:
            self._summary = summary
            commands.append(["set-option", "-g", SUMMARY, summary.replace("#", "##")])
        if commands:
            self._run(*commands)

    def _panes(self) -> list[_Pane]:
        rows = [line.split(" ", 3) for line in self._run(["list-panes", "-t", f"={SESSION}:", "-F", _PANES])]
        return [_Pane(pane_id, dead == "1", active == "1", worker) for pane_id, dead, active, worker in rows]

    def _window(self) -> list[str]:
        return self._run(["display-message", "-p", "-t", f"={SESSION}:", _WINDOW])[0].split(" ")

    def _run(self, *commands: command.Words) -> list[str]:
        answers = self._talk().ask([command.join(words) for words in commands], timeout=5.0)
        for words, answer in zip(commands, answers, strict=True):
            if not answer.ok:
                raise TerminalError(f"tmux {words[0]}: {' '.join(answer.lines) or 'refused'}")
        return list(answers[-1].lines)

    def _talk(self) -> Wire:
        if self._wire is None:
            raise TerminalError("the wall is not open")
        return self._wire

    def _argv(self, *words: str) -> list[str]:
        tmux = str(find_tmux(self._env).path)
        return [tmux, "-u", "-L", self._socket, "-f", str(self._config), *words]


def sweep(folder: Path) -> None:
    """Delete what walls left that were killed while they opened: their process is gone."""
    for path in folder.glob(f"{SOCKET}*"):
        pid = path.stem.removeprefix(SOCKET)
        if pid.isdigit() and Process.of(int(pid)) is None:
            path.unlink(missing_ok=True)
