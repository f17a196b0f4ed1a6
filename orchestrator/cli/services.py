"""`hermux supervise` and `hermux mock-endpoint`: what otherwise runs in the background."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from orchestrator.api.supervisor import check_version, hand_over, running
from orchestrator.cli.options import FleetName, Quiet, open_fleet
from orchestrator.cli.show import talk
from orchestrator.errors import SupervisorDown, UsageError


def supervise(
    replace: Annotated[
        bool, typer.Option("--replace", help="have the supervisor that runs hand over; workers go on")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="with --replace: in the background, and return")
    ] = False,
    fleet: FleetName = "",
) -> None:
    """Run the fleet's supervisor here, in the foreground; Ctrl-C ends it, and workers go on.

    Commands start one in the background by themselves: this is for service managers and for watching.
    After an update of hermux, `hermux supervise --replace --detach` hands over to the new version: nothing is
    restarted, no message is lost or comes twice, and a delivery in the middle is carried on.
    """
    opened = open_fleet(fleet)
    if detach and not replace:
        raise UsageError("--detach goes with --replace", hint="hermux supervise --replace --detach")
    if detach:
        before, now = hand_over(opened.paths.make(), opened.env)
        was = f"in the place of pid {before['pid']} (hermux {before['version']})" if before else "anew"
        talk(f"pid {now.get('pid')} (hermux {now.get('version')}) supervises fleet {opened.name}, {was}")
        return
    holder = running(opened.paths)
    if holder is not None and not replace:
        check_version(holder)
        raise SupervisorDown(
            f"fleet {opened.name} is supervised already, by pid {holder['pid']}",
            hint="to take its place: hermux supervise --replace",
        )
    _become(["orchestrator.supervise", "--fleet", opened.name, *(["--replace"] if replace else [])])


def mock_endpoint(
    port: Annotated[int, typer.Option("--port", metavar="P", help="0 = a free one", min=0, max=65535)] = 0,
    context: Annotated[
        int, typer.Option("--context", metavar="N", help="tokens that it claims to hold", min=1)
    ] = 131072,
    log: Annotated[
        str, typer.Option("--log", metavar="F", help="write requests to a file", show_default=False)
    ] = "",
    quiet: Quiet = False,
) -> None:
    """Serve the rehearsal model until Ctrl-C: an OpenAI-compatible server with scripted answers, no language model."""
    words = ["orchestrator.rehearsal", "--port", str(port), "--context", str(context)]
    if log:
        words += ["--log", log]
    if quiet:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    _become(words)


def _become(words: Sequence[str]) -> NoReturn:
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", *words])
