"""`hermux role`: the templates that workers are made from."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from orchestrator.cli.options import Json, Quiet
from orchestrator.cli.show import Column, out, out_json, table, talk, terminal_width

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
RoleName = Annotated[str, typer.Argument(metavar="R", help="the role")]
COLUMNS = (Column("NAME"), Column("SOURCE"), Column("DESCRIPTION", least=20))


@app.callback()
def _none(context: typer.Context) -> None:
    """List, show or begin a role."""
    if context.invoked_subcommand is None:
        ls(json=False)


@app.command()
def ls(json: Json = False) -> None:
    """List the roles: those that ship with hermux, and yours in ~/.config/hermux/roles."""
    from dataclasses import asdict

    from orchestrator.api import role as roles

    found = roles.listed(os.environ)
    if json:
        out_json({"schema": 1, "roles": [asdict(each) for each in found]})
        return
    rows = [[each.name, each.source, each.description or f"cannot be used: {each.trouble}"] for each in found]
    out(table(COLUMNS, rows, width=terminal_width()))


@app.command()
def show(role: RoleName, json: Json = False) -> None:
    """Show a role with every field as it holds, and the file and line that says so."""
    from orchestrator.api import role as roles

    found = roles.shown(role, os.environ)
    if json:
        settings = [{"field": s.field, "value": s.value, "origin": s.origin} for s in found.settings]
        out_json(
            {
                "schema": 1,
                "name": found.name,
                "source": found.source,
                "settings": settings,
                "soul": found.soul,
                "soul_file": found.soul_file,
            }
        )
        return
    out(f"{found.name} ({found.source})")
    rows = [[s.field, _text(s.value), s.origin] for s in found.settings]
    out(
        table(
            (Column("FIELD"), Column("VALUE", least=12), Column("FROM", least=7)),
            rows,
            width=terminal_width(),
        )
    )
    out(f"\n{found.soul_file}:\n\n{found.soul.rstrip()}")


@app.command()
def new(
    role: RoleName,
    like: Annotated[
        str, typer.Option("--from", metavar="R", help="begin with a copy of this role", show_default=False)
    ] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented role.yaml and SOUL.md into your folder of roles; nothing is overwritten."""
    from orchestrator.api import role as roles

    folder = roles.new(role, os.environ, like=like)
    if json:
        out_json({"schema": 1, "name": role, "folder": str(folder)})
        return
    out(str(folder))
    if not quiet:
        talk(f"edit role.yaml and SOUL.md there, then: hermux role show {role}, hermux spawn --role {role}")


def _text(value: Any) -> str:
    """Return a value as YAML would have it, in one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_text(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items() if each) + "}"
    return str(value)
