"""`hermux wait`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli.listing import doing
from orchestrator.cli.options import FleetName, Json, Quiet, Timeout, open_fleet
from orchestrator.cli.show import one_line, out, out_json
from orchestrator.errors import UsageError


def wait(
    workers: Annotated[
        list[str] | None, typer.Argument(metavar="W...", help="workers, by names or globs")
    ] = None,
    any_one: Annotated[bool, typer.Option("--any", help="one of them is enough")] = False,
    state: Annotated[
        str,
        typer.Option(
            "--state", metavar="S", help="wait for this state, as `ls` shows it", show_default=False
        ),
    ] = "",
    message: Annotated[
        str,
        typer.Option(
            "--message", metavar="ID", help="wait until this message is delivered", show_default=False
        ),
    ] = "",
    timeout: Timeout = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Wait until workers have nothing left to do: no turn, no child, no message in the inbox.

    Exit codes: 3 a worker is held or stopped, or its last turn failed; 5 a dialog waits; 124 timed out.
    """
    opened = open_fleet(fleet)
    if message:
        if workers or state or any_one:
            raise UsageError("--message takes no workers, --state or --any")
        found = opened.wait_message(message, timeout=timeout)
        if json:
            out_json(
                {
                    "schema": 1,
                    "message": message,
                    "worker": found.worker,
                    "receipt": found.data.get("receipt"),
                }
            )
        elif not quiet:
            out(f"{message}  {found.worker}  delivered")
        return
    if not workers:
        raise UsageError("no worker was named", hint="hermux wait W..., or '*' for all")
    names = [worker.name for worker in opened.select(workers)]
    reached = opened.wait(names, state=state, any_one=any_one, timeout=timeout)
    if json:
        shown = [
            {"name": name, "word": each.get("word"), "phase": each.get("phase")}
            for name, each in reached.items()
        ]
        out_json({"schema": 1, "workers": shown})
    elif not quiet:
        for name, each in reached.items():
            out(f"{name}  {each.get('word')}  {one_line(doing(each))}".rstrip())
