"""`hermux endpoint`: one place for model servers: URL, model, the key's name, fallback models."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import (
    EndpointUrl,
    FleetName,
    Json,
    KeyEnv,
    Model,
    NoWait,
    Quiet,
    Timeout,
    open_fleet,
)
from orchestrator.cli.show import Column, out, out_json, table, talk, talker, terminal_width
from orchestrator.errors import HermuxError, UsageError

if TYPE_CHECKING:
    from orchestrator.api.inform import EndpointReport, Listed
    from orchestrator.api.roll import Roll
    from orchestrator.fleet.spec import Endpoint

app = typer.Typer(rich_markup_mode=None, add_completion=False, invoke_without_command=True)
COLUMNS = (
    Column("NAME"),
    Column("DEFAULT", optional=True),
    Column("MODEL", least=10),
    Column("URL", least=16),
    Column("CONTEXT", right=True),
    Column("KEY", optional=True),
    Column("FALLBACK", least=8, optional=True),
    Column("ANSWERS", least=12, optional=True),
)
SavedName = Annotated[str, typer.Argument(metavar="NAME", help="a saved endpoint")]
SomeName = Annotated[str, typer.Argument(metavar="[NAME]", help="a saved endpoint", show_default=False)]
RollFlag = Annotated[
    bool,
    typer.Option("--roll", help="change the fleet's workers too: idle ones now, one at a time"),
]


@app.callback()
def _none(context: typer.Context) -> None:
    """Show, save, list, test or remove the model servers that workers use."""
    if context.invoked_subcommand is None:
        show(json=False)


@app.command()
def show(name: SomeName = "", json: Json = False) -> None:
    """Show the endpoint that new workers would get, or a saved one, and who says each value; nothing is asked."""
    from orchestrator.api import inform

    report = inform.current(name=name)
    _notes(report, json)
    _print(report, json)


@app.command()
def ls(
    test: Annotated[bool, typer.Option("--test", help="ask each whether it answers")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the saved endpoints and say which is the default; with --test all are asked at once."""
    from orchestrator.api import inform

    found = inform.listed(ask=test)
    if json:
        out_json({"schema": 1, "endpoints": [_entry(each) for each in found]})
        return
    if found:
        out(table(COLUMNS, [_row(each) for each in found], width=terminal_width()))
    elif not quiet:
        talk("no endpoint is saved → hermux endpoint set URL -m MODEL")
    if found and not quiet and not any(each.default for each in found):
        talk(f"none of them is the default → hermux endpoint use {found[0].name}")
    for line in () if quiet else inform.overridden():
        talk(line)


@app.command("set")
def set_(
    url: Annotated[str, typer.Argument(metavar="URL", help="the base URL, or `rehearsal`")],
    model: Model = "",
    key_env: KeyEnv = "",
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="save it under a name [default: as the default]"),
    ] = "",
    fallback: Annotated[
        str,
        typer.Option(
            "--fallback",
            metavar="M,M",
            help="models of this server that Hermes switches to",
            show_default=False,
        ),
    ] = "",
    roll: RollFlag = False,
    no_wait: NoWait = False,
    timeout: Timeout = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a server once, and save it; a key's value is never saved, only its name.

    Without --name it becomes the default, and so does the first one saved. --roll gives it to the workers of the fleet that are on this
    endpoint, or on the default one: each is restarted into its own conversation when it is idle. Workers that
    were given another endpoint or model keep it.
    """
    from orchestrator.api import inform

    _check_roll(roll, no_wait, timeout)
    report = inform.save(url, model, key_env, name=name, fallback=_models(fallback))
    _finish(report, roll, fleet, no_wait=no_wait, timeout=timeout, json=json, quiet=quiet)


@app.command()
def use(
    name: SavedName,
    roll: RollFlag = False,
    no_wait: NoWait = False,
    timeout: Timeout = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a saved endpoint the default for new workers; with --roll it is asked, and given to those on the default."""
    from orchestrator.api import inform

    _check_roll(roll, no_wait, timeout)
    report = inform.use(name, ask=roll)
    _finish(report, roll, fleet, no_wait=no_wait, timeout=timeout, json=json, quiet=quiet)


@app.command()
def test(
    name: SomeName = "",
    endpoint: EndpointUrl = "",
    model: Model = "",
    key_env: KeyEnv = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask the endpoint who it is: its models, context length and engine; exit code 1 when it will not do."""
    from orchestrator.api import inform

    if name and endpoint:
        raise UsageError("NAME and --endpoint exclude each other", hint="--endpoint takes a saved name too")
    report = inform.test(endpoint or name, model, key_env)
    _notes(report, quiet or json)
    _print(report, json)


@app.command()
def rm(name: SavedName, json: Json = False, quiet: Quiet = False) -> None:
    """Forget a saved endpoint; workers that have it keep it."""
    from orchestrator.api import inform

    was_default = inform.remove(name)
    if json:
        out_json({"schema": 1, "removed": name, "default": was_default})
    elif was_default and not quiet:
        talk("it was the default: there is none now → hermux endpoint use NAME")


def _finish(
    report: EndpointReport,
    roll: bool,
    fleet: str,
    *,
    no_wait: bool,
    timeout: float | None,
    json: bool,
    quiet: bool,
) -> None:
    """Show what was saved, and roll the fleet if that was asked for, whatever comes of it."""
    _notes(report, quiet or json)
    if not json:
        _print(report, json)
    if not roll:
        if json:
            _print(report, json)
        return
    from orchestrator.api import roll as rolling

    result, trouble = rolling.Roll(), None
    try:
        rolling.roll(
            open_fleet(fleet),
            report.target,
            wait=not no_wait,
            say=talker(quiet or json),
            timeout=timeout,
            result=result,
        )
    except HermuxError as error:
        trouble = error
    if json:
        out_json({"schema": 1, **_plain(report), "roll": _rolled(result)})
    elif not quiet:
        talk(_summary(result))
    if trouble:
        raise trouble


def _summary(result: Roll) -> str:
    parts = [
        f"{len(names)} {what}"
        for what, names in (
            ("on the new endpoint", result.rolled),
            ("follow when they are idle or started", result.pending),
            ("keep theirs", result.kept),
        )
        if names
    ]
    return f"workers: {', '.join(parts)}" if parts else "no worker of the fleet is on this endpoint"


def _rolled(result: Roll) -> dict[str, Any]:
    kept = [{"name": name, "why": why} for name, why in result.kept.items()]
    return {"rolled": result.rolled, "pending": result.pending, "kept": kept}


def _check_roll(roll: bool, no_wait: bool, timeout: float | None) -> None:
    for flag, given in (("--no-wait", no_wait), ("--timeout", timeout is not None)):
        if given and not roll:
            raise UsageError(f"{flag} belongs to --roll", hint=f"leave {flag} out, or add --roll")


def _models(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",")) if text else ()
    if any(not word or " " in word for word in words):
        raise UsageError(f"--fallback {text!r} is no list", hint="separate by commas: --fallback a,b")
    return words


def _notes(report: EndpointReport, quiet: bool) -> None:
    for note in () if quiet else report.notes:
        talk(note)


def _print(report: EndpointReport, json: bool) -> None:
    if json:
        out_json({"schema": 1, **_plain(report)})
        return
    found = report.endpoint
    said = {what: who.replace(f" ({report.saved})", "") for what, who in report.origins.items()}
    context = f"{found.context_length:,} tokens" if found.context_length else "(as the server says)"
    rows = [
        ("name", f"{found.name}{' (the default)' if report.default else ''}" if found.name else "", ""),
        ("url", found.base_url or "(given at spawn)", said.get("url", "")),
        ("model", found.model or "(the server's only one)", said.get("model", "")),
        ("context", context, said.get("context", "")),
        ("key", f"in ${found.key_env}" if found.key_env else "none", said.get("key", "")),
        ("fallback", ", ".join(each.model for each in report.fallback), ""),
        ("engine", report.engine, ""),
        ("saved", report.saved, ""),
    ]
    width = max((len(value) for _, value, who in rows if who), default=0)
    for name, value, who in rows:
        if value:
            out(f"{name + ':':<10}{value:<{width}}  {who}".rstrip() if who else f"{name + ':':<10}{value}")


def _plain(report: EndpointReport) -> dict[str, Any]:
    return {
        **_fields(report.endpoint),
        "engine": report.engine,
        "default": report.default,
        "fallback": [each.model for each in report.fallback],
        "from": dict(report.origins),
        "saved": report.saved,
        "notes": list(report.notes),
    }


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    return {**asdict(endpoint), "kind": str(endpoint.kind), "given": list(endpoint.given)}


def _entry(each: Listed) -> dict[str, Any]:
    return {
        **_fields(each.endpoint),
        "default": each.default,
        "fallback": [other.model for other in each.fallback],
        "answers": each.answers,
        "said": each.said,
    }


def _row(each: Listed) -> list[str]:
    found = each.endpoint
    answers = "" if each.answers is None else "yes" if each.answers else "no"
    return [
        each.name,
        "default" if each.default else "",
        found.model or "(rehearsal)",
        found.base_url or "(given at spawn)",
        f"{found.context_length:,}" if found.context_length else "",
        f"${found.key_env}" if found.key_env else "",
        ", ".join(other.model for other in each.fallback),
        f"{answers} ({each.said})" if answers and each.said else answers,
    ]
