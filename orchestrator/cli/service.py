"""`hermux service`: the supervisor as a systemd user unit, so that the fleet comes back after a reboot."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from orchestrator.cli.options import FleetName, Json, open_fleet
from orchestrator.cli.show import out, out_json, talk

app = typer.Typer(no_args_is_help=True)


@app.command()
def install(
    show: Annotated[bool, typer.Option("--print", help="only print the unit")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="replace a unit that hermux did not make")] = False,
    fleet: FleetName = "",
) -> None:
    """Write, enable and start the unit; without systemd say what to put where (exit code 1)."""
    from orchestrator.api import service

    opened = open_fleet(fleet)
    if show:
        out(service.unit_text(opened.name, opened.env).removesuffix("\n"))
        return
    if not service.BOOTED.is_dir():
        out(service.elsewhere(opened.name))
    out(str(service.install(opened.name, opened.env, overwrite=yes)))
    if not service.lingers():
        talk(f"it stops at logout and waits for a login → loginctl enable-linger {getpass.getuser()}")


@app.command()
def remove(fleet: FleetName = "") -> None:
    """Stop, disable and delete the unit. Workers go on, and the next command supervises them again."""
    from orchestrator.api import service

    opened = open_fleet(fleet)
    gone = service.remove(opened.name, opened.env)
    out(str(gone) if gone else "there is none")
    opened.ensure_supervisor()


@app.command()
def status(fleet: FleetName = "", json: Json = False) -> None:
    """Show whether the unit is installed, enabled and active, and whether it outlives a logout."""
    from orchestrator.api import service

    opened = open_fleet(fleet)
    found = service.status(opened.name, opened.env)
    told = {
        "unit": found.unit,
        "path": str(found.path),
        "installed": found.installed,
        "ours": found.ours,
        "enabled": found.enabled,
        "active": found.active,
        "linger": found.linger,
    }
    if json:
        out_json({"schema": 1, **told})
        return
    for name, value in told.items():
        out(f"{name:<10} {'yes' if value is True else 'no' if value is False else value or 'not known'}")
