"""The flags that verbs share; a verb takes those that it reads, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.api import Fleet

FleetName = Annotated[
    str,
    typer.Option(
        "--fleet", "-F", metavar="NAME", envvar="HERMUX_FLEET", help="the fleet", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON (see docs/json.md)")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no talk on stderr but errors")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="tell more")]
WorkerName = Annotated[str, typer.Argument(metavar="W", help="a worker, or a glob that means one")]
WorkerNames = Annotated[list[str], typer.Argument(metavar="W...", help="workers, by names or globs")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="do not wait for it")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="S", help="give up after S seconds (exit code 124)", min=0.0),
]
EndpointUrl = Annotated[
    str,
    typer.Option(
        "--endpoint",
        metavar="URL|NAME",
        help="an OpenAI-compatible server, a saved endpoint, or `rehearsal`",
        show_default=False,
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", metavar="MODEL", help="the model", show_default=False)]
KeyEnv = Annotated[
    str, typer.Option("--key-env", metavar="VAR", help="the variable that holds the key", show_default=False)
]


def open_fleet(name: str) -> Fleet:
    """Return the fleet that a command means."""
    from orchestrator.api import Fleet

    return Fleet.open(name or "default")
