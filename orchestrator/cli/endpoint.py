"""`hermux endpoint`: one place for the model server's URL, the model and the key's name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from orchestrator.api.inform import EndpointReport
from orchestrator.cli.options import EndpointUrl, Json, KeyEnv, Model, Quiet
from orchestrator.cli.show import out, out_json, talk

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)


@app.callback()
def _none(context: typer.Context) -> None:
    """Show, save or test the model server that new workers use."""
    if context.invoked_subcommand is None:
        show(json=False)


@app.command()
def show(json: Json = False) -> None:
    """Show which endpoint new workers would get, and who says so; nothing is asked."""
    from orchestrator.api import inform

    report = inform.current()
    _print(report, json)


@app.command("set")
def set_(
    url: Annotated[str, typer.Argument(metavar="URL", help="the base URL, or `rehearsal`")],
    model: Model = "",
    key_env: KeyEnv = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a server once, and save it for new workers; the key's value is never saved, only its name."""
    from orchestrator.api import inform

    report = inform.save(url, model, key_env)
    _notes(report, quiet or json)
    _print(report, json)


@app.command()
def test(
    endpoint: EndpointUrl = "",
    model: Model = "",
    key_env: KeyEnv = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask the endpoint who it is: its models, context length and engine; exit code 1 when it will not do."""
    from orchestrator.api import inform

    report = inform.test(endpoint, model, key_env)
    _notes(report, quiet or json)
    _print(report, json)


def _notes(report: EndpointReport, quiet: bool) -> None:
    for note in () if quiet else report.notes:
        talk(note)


def _print(report: EndpointReport, json: bool) -> None:
    if json:
        out_json({"schema": 1, **_plain(report)})
        return
    found = report.endpoint
    facts = {
        "url": found.base_url or "(given at spawn)",
        "model": found.model or "(the server's only one)",
        "context": f"{found.context_length:,} tokens" if found.context_length else "(as the server says)",
        "key": f"in ${found.key_env}" if found.key_env else "none",
        "engine": report.engine,
        "from": found.source,
        "saved": report.saved,
    }
    for name, value in facts.items():
        if value:
            out(f"{name + ':':<9}{value}")


def _plain(report: EndpointReport) -> dict[str, Any]:
    return {
        **asdict(report.endpoint),
        "kind": str(report.endpoint.kind),
        "engine": report.engine,
        "saved": report.saved,
        "notes": list(report.notes),
    }
