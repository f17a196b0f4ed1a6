"""`hermux logs` and `hermux events`: what was done for a worker, and what Hermes reported."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from orchestrator.cli.options import FleetName, Json, WorkerName, open_fleet
from orchestrator.cli.show import one_line, out_json_line, out_line
from orchestrator.cli.since import parse_since

Follow = Annotated[bool, typer.Option("--follow", "-f", help="go on as new lines come")]
Since = Annotated[
    str,
    typer.Option("--since", metavar="T", help="from then on: 10m, 8h, 14:30, 2026-01-31", show_default=False),
]
Tail = Annotated[int | None, typer.Option("--tail", metavar="N", help="only the last N lines", min=0)]


def logs(
    worker: WorkerName,
    follow: Follow = False,
    tail: Tail = None,
    since: Since = "",
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Print the journal of a worker: each transition and action, with its reason."""
    opened = open_fleet(fleet)
    one = opened.worker(worker)
    _print(one.log(since=parse_since(since)), _journal_line, tail=tail, json=json)
    if follow:
        new = (line for line in opened.follow_journal() if line.get("worker") == one.name)
        _print(new, _journal_line, tail=None, json=json)


def events(
    worker: WorkerName,
    follow: Follow = False,
    tail: Tail = None,
    since: Since = "",
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Print what the plugin inside Hermes reported: turns, requests, tools, approvals, errors."""
    one = open_fleet(fleet).worker(worker)
    _print(one.events(since=parse_since(since)), _event_line, tail=tail, json=json)
    if follow:
        _print(one.follow_events(), _event_line, tail=None, json=json)


def _print(
    lines: Iterable[dict[str, Any]], shown: Callable[[dict[str, Any]], str], *, tail: int | None, json: bool
) -> None:
    for line in lines if tail is None else deque(lines, maxlen=tail):
        if json:
            out_json_line(line)
        else:
            out_line(shown(line))


def _journal_line(line: dict[str, Any]) -> str:
    change = f"{line['from']} → {line['to']}" if line.get("from") or line.get("to") else ""
    parts = [_clock(line.get("time")), str(line.get("what", "")), change, one_line(line.get("text"))]
    reason = one_line(line.get("reason"))
    cause = one_line(line.get("cause"))
    tail = "; ".join(filter(None, [reason, f"cause: {cause}" if cause else ""]))
    return "  ".join(filter(None, parts)) + (f"  ({tail})" if tail else "")


def _event_line(line: dict[str, Any]) -> str:
    common = {"v", "t", "pid", "attempt", "event", "session", "platform", "turn", "sha256"}
    fields = [
        f"{key}={one_line(value)}"
        for key, value in line.items()
        if key not in common and value not in (None, "", [])
    ]
    who = "" if line.get("platform") in ("cli", "", None) else f"[{line['platform']}]"
    return "  ".join(filter(None, [_clock(line.get("t")), str(line.get("event")), who, " ".join(fields)]))


def _clock(moment: Any) -> str:
    seconds = float(moment or 0)
    return time.strftime("%m-%d %H:%M:%S", time.localtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"
