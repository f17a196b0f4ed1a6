"""`hermux doctor`: what is wrong, and what to type next."""

from __future__ import annotations

import os
import sys
import textwrap
from contextlib import closing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import FleetName, Json, Quiet, open_fleet
from orchestrator.cli.show import out_json, out_line, runnable, talk
from orchestrator.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from orchestrator.api.doctor import Check

WIDTH = 80
LABEL = 23
"""Columns for state and name."""


def doctor(
    full: Annotated[
        bool, typer.Option("--full", help="also run two workers at once, in a fleet of their own")
    ] = False,
    worker: Annotated[
        str,
        typer.Option(
            "--worker",
            metavar="W",
            help="only: is it this worker, the model or the concurrency?",
            show_default=False,
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", help="seconds for each answer of the model", min=0.1)
    ] = 30.0,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check tmux, Hermes, the endpoint and this machine, and name the next step for each trouble.

    Starts a real Hermes for one turn, in a throw-away profile. Changes nothing, and disturbs no fleet. Exit code 0:
    nothing failed (warnings may be there), 1: a check failed.
    """
    from orchestrator.api.doctor import Wanted, examine

    opened = open_fleet(fleet)
    checks: list[Check] = []
    with ended_by_signals(), closing(examine(opened, Wanted(full, worker, timeout, _size()))) as made:
        for check in made:
            checks.append(check)
            if not json and not (quiet and check.state == "ok"):
                out_line(_shown(check, opened.name))
    if json:
        out_json(
            {
                "schema": 1,
                "fleet": opened.name,
                "ok": not _failed(checks),
                "checks": [_plain(c, opened.name) for c in checks],
            }
        )
    elif not quiet:
        talk(_summary(checks))
    return 1 if _failed(checks) else 0


def _shown(check: Check, fleet: str) -> str:
    """Return the finding as text of at most `WIDTH` columns: label, what was seen, the next step."""
    label = f"{check.state:<8}{check.name:<15}"
    lines = textwrap.wrap(
        check.seen, WIDTH, initial_indent=label, subsequent_indent=" " * LABEL, break_on_hyphens=False
    )
    if check.next:
        # a command is not broken in the middle of a word: it is to be copied
        lines += textwrap.wrap(
            f"→ {runnable(check.next, fleet)}",
            WIDTH,
            initial_indent=" " * LABEL,
            subsequent_indent=" " * (LABEL + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _plain(check: Check, fleet: str) -> dict[str, Any]:
    return {**asdict(check), "state": str(check.state), "next": runnable(check.next, fleet)}


def _failed(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.failed]


def _summary(checks: list[Check]) -> str:
    count = {
        state: sum(check.state == state for check in checks) for state in ("ok", "warn", "fail", "skipped")
    }
    told = ", ".join(f"{number} {state}" for state, number in count.items() if number)
    return f"{told}; {sum(check.seconds for check in checks):.1f} s"


def _size() -> os.terminal_size | None:
    for stream in (sys.stdout, sys.stdin, sys.stderr):
        with suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno())
    return None
