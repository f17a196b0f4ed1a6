"""`hermux start`, `restart`, `stop`, `drain`, `pause`, `rm`: the life of workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from orchestrator.api import Fleet
from orchestrator.cli.options import FleetName, Json, NoWait, Quiet, Timeout, WorkerNames, open_fleet
from orchestrator.cli.show import out, out_json, talk, talker
from orchestrator.errors import UsageError

SomeWorkers = Annotated[
    list[str] | None, typer.Argument(metavar="W...", help="workers, by names, globs or groups")
]


def start(
    workers: WorkerNames,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start workers in their own conversations, or lift a hold, and wait until they are ready."""
    opened = open_fleet(fleet)
    names = _names(opened, workers)
    opened.start(names, wait=not no_wait, say=talker(quiet))
    _show(opened, names, json)


def restart(
    workers: WorkerNames,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End workers and start them again, each in its own conversation."""
    opened = open_fleet(fleet)
    names = _names(opened, workers)
    opened.restart(names, wait=not no_wait, say=talker(quiet))
    _show(opened, names, json)


def stop(
    workers: SomeWorkers = None,
    every: Annotated[bool, typer.Option("--all", help="all of the fleet")] = False,
    grace: Annotated[
        float, typer.Option("--grace", metavar="S", help="seconds before TERM, and again before KILL")
    ] = 10.0,
    now: Annotated[bool, typer.Option("--now", help="end them at once")] = False,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End workers: /exit where it can be taken, then TERM, then KILL. What they learned stays."""
    if now and grace != 10.0:
        raise UsageError("--now and --grace exclude each other")
    opened = open_fleet(fleet)
    names = _chosen(opened, workers, every)
    opened.stop(names, grace=0.0 if now else grace, wait=not no_wait, say=talker(quiet))
    _show(opened, names, json)


def drain(
    workers: WorkerNames,
    timeout: Timeout = None,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let workers finish what they are doing, children and questions too, then end them as `stop` does.

    No new message is begun: those in the inbox wait for `start`, which also takes a drain back. `stop` ends one
    that drains at once. With --timeout they go on draining after it.
    """
    if no_wait and timeout is not None:
        raise UsageError("--no-wait and --timeout exclude each other")
    opened = open_fleet(fleet)
    names = _names(opened, workers)
    opened.drain(names, wait=not no_wait, timeout=timeout, say=talker(quiet))
    _show(opened, names, json)


def pause(
    workers: WorkerNames,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """End workers' processes to free their memory, and keep everything: `start` goes on where they were.

    A running turn is cut; `start` resumes the same conversation and tells the worker to go on with it, unless
    its role says `nudge: false`. Messages that are sent meanwhile wait.
    """
    opened = open_fleet(fleet)
    names = _names(opened, workers)
    freed = opened.pause(names, wait=not no_wait, say=talker(quiet))
    if not quiet:
        talk(f"{freed / 1e6:,.0f} MB of memory freed" if not no_wait else f"they have {freed / 1e6:,.0f} MB")
    _show(opened, names, json)


def rm(
    workers: SomeWorkers = None,
    every: Annotated[bool, typer.Option("--all", help="all of the fleet")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="delete what they learned too")] = False,
    unplug: Annotated[
        bool, typer.Option("--unplug", help="take the plugin out of your own Hermes profile too")
    ] = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Forget stopped workers. Memories, skills, sessions and conversation are archived unless --purge.

    A worktree of theirs goes if it is clean and merged, and stays where it is if not; in both cases a recovery
    ref in the repository has all of it, and the command that brings it back is printed.
    """
    opened = open_fleet(fleet)
    removed = opened.remove(_chosen(opened, workers, every), purge=purge, unplug=unplug)
    if json:
        shown = [
            {
                "name": each.name,
                "archive": str(each.archive) if each.archive else None,
                "cwd": each.cwd,
                "worktree": each.worktree.document() if each.worktree else None,
                "profile": each.profile,
            }
            for each in removed
        ]
        out_json({"schema": 1, "removed": shown})
        return
    for each in removed:
        out(each.name)
        if not quiet:
            kept = (
                f"memories, skills, sessions and conversation are in {each.archive}"
                if each.archive
                else "nothing was kept"
            )
            if each.worktree is None:
                kept += f"; {each.cwd} is as it was"
            talk(f"{each.name} is gone; {each.profile or kept}")
            for line in each.worktree.lines() if each.worktree else ():
                talk(f"  {line}")


def _names(fleet: Fleet, patterns: Sequence[str]) -> list[str]:
    return [worker.name for worker in fleet.select(patterns)]


def _chosen(fleet: Fleet, patterns: Sequence[str] | None, every: bool) -> list[str]:
    """Return the workers that were named, or all of them for `--all`; raises UsageError for neither and both."""
    if every == bool(patterns):
        raise UsageError("name workers, or use --all", hint="hermux ls shows who is there")
    return fleet.names() if every else _names(fleet, patterns or ())


def _show(fleet: Fleet, names: Sequence[str], json: bool) -> None:
    if json:
        workers = fleet.picture().workers
        kept = ("want", "phase", "word", "why", "attempt", "restarts", "session")
        shown = [{"name": name, **{key: workers.get(name, {}).get(key) for key in kept}} for name in names]
        out_json({"schema": 1, "workers": shown})
