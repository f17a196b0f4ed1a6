"""`hermux up` and `hermux down`: the fleet as a file declares it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import FleetName, Json, NoWait, Quiet, open_fleet
from orchestrator.cli.show import Column, out, out_json, table, talk, talker, terminal_width
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.api.up import Step

File = Annotated[
    str,
    typer.Option("--file", "-f", metavar="FILE", help="the file [default: ./fleet.yaml]", show_default=False),
]
COLUMNS = (Column("NAME"), Column("DONE"), Column("WHAT", least=20))
PLANNED = (Column("NAME"), Column("WOULD"), Column("WHAT", least=20))
DONE = {"create": "created", "change": "changed", "start": "started", "stop": "stopped"}


def up(
    file: File = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would be done")] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="bring back what ran, after a reboot; no file")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="stop workers that the file no longer declares")
    ] = False,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the fleet what fleet.yaml declares: make, change and start workers; twice does no harm.

    Workers that were made by hand are left alone. One that runs is restarted for a change only if it has to be,
    and when it is idle. A first prompt is sent once, when its worker is made. An error in the file changes nothing.
    """
    opened = open_fleet(fleet)
    if restore:
        if file or prune or dry_run:
            raise UsageError("--restore takes no file: it brings back what is wanted already")
        names = [name for name, each in opened.picture().workers.items() if each.get("want") == "run"]
        opened.ensure_supervisor()
        if not no_wait:
            opened.wait_ready(names, say=talker(quiet))
        workers = opened.picture().workers
        steps = [(name, "restored", [str(workers[name].get("session") or "")]) for name in names]
        _show(steps, False, json, opened.name)
        return
    plan = opened.up(file, dry_run=dry_run, prune=prune, wait=not no_wait, say=talker(quiet))
    shown = [(step.name, str(step.act) if dry_run else DONE[step.act], _what(step)) for step in plan.steps]
    if plan.regroup:
        shown.append(
            ("groups", "change" if dry_run else "changed", [", ".join(f"@{name}" for name in plan.groups)])
        )
    _show(shown, dry_run, json, opened.name)


def down(
    file: File = "",
    grace: Annotated[
        float, typer.Option("--grace", metavar="S", help="seconds before TERM, and again before KILL")
    ] = 10.0,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    quiet: Quiet = False,
) -> None:
    """Stop every worker that the file declared, or without a fleet.yaml the whole fleet. Everything is kept."""
    opened = open_fleet(fleet)
    names = opened.down_names(file)
    opened.stop(names, grace=grace, wait=not no_wait, say=talker(quiet))
    if not quiet:
        talk("conversations, messages and worktrees are kept → hermux up" if names else "nothing to stop")


def _what(step: Step) -> list[str]:
    return [*step.what, *(["restarted when idle"] if step.restart else [])]


def _show(steps: list[tuple[str, str, list[str]]], dry_run: bool, json: bool, fleet: str) -> None:
    if json:
        told = [{"name": name, "action": action, "what": what} for name, action, what in steps]
        out_json({"schema": 1, "fleet": fleet, "dry_run": dry_run, "steps": told})
    elif not steps:
        out("nothing to do")
    else:
        rows = [[name, action, "; ".join(what)] for name, action, what in steps]
        out(table(PLANNED if dry_run else COLUMNS, rows, width=terminal_width()))
