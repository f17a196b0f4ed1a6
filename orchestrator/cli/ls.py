"""`hermux ls`, `ps`, `status`: its flags. What it prints is in `listing`; `quick` runs it without typer."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.cli import listing
from orchestrator.cli.options import FleetName, Json, Quiet, Verbose


def ls(
    watch: Annotated[
        float | None, typer.Option("--watch", "-w", metavar="[S]", help="repeat every S (2) seconds", min=0.2)
    ] = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show the workers: state with its witness and age, what they do, session, branch, restarts, tokens.

    The state is the last that the supervisor saw; a line says so when no supervisor runs. -v adds endpoint,
    directory and pid.
    """
    listing.show(fleet, json=json, quiet=quiet, verbose=verbose, watch=watch)
