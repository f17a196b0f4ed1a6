"""`hermux attach` and `hermux peek`: a worker's screen, by tmux itself."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from orchestrator.api import Fleet, Worker
from orchestrator.cli.options import FleetName, Json, WorkerName, open_fleet
from orchestrator.cli.show import out, out_json
from orchestrator.errors import NotReady, TerminalError, UsageError


def attach(
    worker: Annotated[
        str,
        typer.Argument(metavar="[W]", help="a worker; may be left out where one runs", show_default=False),
    ] = "",
    wall: Annotated[
        bool, typer.Option("--wall", help="all running workers (or those W means), tiled")
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", "-r", help="keys do nothing but leave")] = False,
    fleet: FleetName = "",
) -> None:
    """Put this terminal on a worker's screen, or on all; the status line there shows the key that leaves.

    Also from inside another tmux, and by tmux alone: tmux -L hermux attach -t =coder-1. A wall and a reader
    leave the workers' size as it is; otherwise the worker has the size of this terminal meanwhile.
    """
    opened = open_fleet(fleet)
    if wall:
        _need_terminal("hermux ls -w")
        opened.wall(worker, read_only=read_only)
        return
    one = opened.worker(worker) if worker else _only(opened)
    _need_terminal(f"to only look: hermux peek {one.name}")
    server = opened.server()
    _look(one, 1)
    command = server.attach_argv(one.name, read_only=read_only)
    try:
        os.execvpe(command[0], command, server.attach_env())
    except OSError as error:
        raise NotReady(f"cannot run {command[0]}: {error.strerror}") from error


def peek(
    worker: WorkerName,
    lines: Annotated[int, typer.Option("--lines", "-n", metavar="N", help="rows", min=1)] = 30,
    history: Annotated[bool, typer.Option("--history", help="also what scrolled off")] = False,
    ansi: Annotated[bool, typer.Option("--ansi", help="with colours")] = False,
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Print the last rows of a worker's screen; blank rows at its end are left out."""
    one = open_fleet(fleet).worker(worker)
    text = _look(one, lines, history=history, ansi=ansi)
    if json:
        out_json({"schema": 1, "worker": one.name, "lines": text.split("\n") if text else []})
    else:
        out(text)


def _need_terminal(instead: str) -> None:
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("attach needs a terminal", hint=instead)


def _only(fleet: Fleet) -> Worker:
    """Return the one worker that runs; raises UsageError where none or several do."""
    names = fleet.running()
    if len(names) == 1:
        return fleet.worker(names[0])
    if names:
        hint = f"hermux attach {names[0]} (there are: {', '.join(names)}), or all: hermux attach --wall"
        raise UsageError(f"attach takes one of {len(names)} running workers", hint=hint)
    every = fleet.names()
    hint = f"hermux start {every[0]}" if every else "hermux spawn"
    raise UsageError(f"no worker runs in fleet {fleet.name}", hint=hint)


def _look(one: Worker, lines: int, *, history: bool = False, ansi: bool = False) -> str:
    """Return a worker's screen; raises NotReady for one that has none."""
    try:
        return one.peek(lines, history=history, ansi=ansi)
    except TerminalError as error:
        raise _no_screen(one) from error


def _no_screen(one: Worker) -> NotReady:
    """Return why a worker has no screen, and what to type."""
    state = one.state()
    word = str(state.get("word") or "not running")
    if state.get("want") != "run":
        done = f"is {word}" if state.get("attempt") else "was never started"
        return NotReady(f"{one.name} {done}: it has no screen", hint=f"hermux start {one.name}")
    return NotReady(f"{one.name} is {word}: it has no screen yet", hint=f"hermux why {one.name}")
