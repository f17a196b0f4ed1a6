"""`hermux attach` and `hermux peek`: a worker's screen, by tmux itself."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from orchestrator.api import Worker
from orchestrator.cli.options import FleetName, Json, WorkerName, open_fleet
from orchestrator.cli.show import out, out_json
from orchestrator.errors import NotReady, TerminalError, UsageError


def attach(
    worker: WorkerName,
    read_only: Annotated[bool, typer.Option("--read-only", "-r", help="keys do nothing but detach")] = False,
    fleet: FleetName = "",
) -> None:
    """Put this terminal on a worker's screen; the status line there shows the key that detaches.

    Also from inside another tmux, and by tmux alone: tmux -L hermux attach -t =coder-1
    """
    opened = open_fleet(fleet)
    one = opened.worker(worker)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("attach needs a terminal", hint=f"to only look: hermux peek {one.name}")
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


def _look(one: Worker, lines: int, *, history: bool = False, ansi: bool = False) -> str:
    """Return a worker's screen; raises NotReady for one that has none."""
    try:
        return one.peek(lines, history=history, ansi=ansi)
    except TerminalError as error:
        hint = f"hermux start {one.name}" if one.state().get("want") != "run" else f"hermux why {one.name}"
        raise NotReady(f"{one.name} has no screen ({error})", hint=hint) from error
