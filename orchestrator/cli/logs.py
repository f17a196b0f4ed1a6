"""`hermux logs` and `hermux events`: what was done for a worker, and what Hermes reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api.picture import span
from orchestrator.cli.options import FleetName, Json, WorkerName, open_fleet
from orchestrator.cli.show import one_line, out, out_json, out_json_line, out_line
from orchestrator.cli.since import parse_since
from orchestrator.errors import UsageError
from orchestrator.fleet.visible import visible

if TYPE_CHECKING:
    from orchestrator.api import Worker
    from orchestrator.api.previous import Ending

BEFORE = 20
"""Events and journal lines that --previous shows, unless --tail says otherwise."""

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
    previous: Annotated[
        bool, typer.Option("--previous", help="how its last attempt ended: screen, events and journal")
    ] = False,
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Print the journal of a worker: each transition and action, with its reason.

    With --previous: the last screen of the newest attempt that ended, how it ended and when, and the last
    events and journal lines of it (20 of each, or --tail).
    """
    if previous and (follow or since):
        raise UsageError(
            "--previous goes with --tail and --json only", hint=f"hermux logs {worker} --previous"
        )
    one = open_fleet(fleet).worker(worker)
    if previous:
        _previous(one, BEFORE if tail is None else tail, json)
        return
    _print(one.log(since=parse_since(since), tail=tail, follow=follow), _journal_line, json=json)


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
    _print(one.events(since=parse_since(since), tail=tail, follow=follow), _event_line, json=json)


def _print(lines: Iterable[dict[str, Any]], shown: Callable[[dict[str, Any]], str], *, json: bool) -> None:
    for line in lines:
        if json:
            out_json_line(line)
        else:
            out_line(shown(line))


def _previous(worker: Worker, tail: int, json: bool) -> None:
    from dataclasses import asdict

    from orchestrator.api.previous import previous

    found = previous(worker, tail=tail)
    if json:
        out_json({"schema": 1, **asdict(found)})
        return
    out(_ended(found))
    if found.screen is None:
        out("its last screen was not kept")
    else:
        out(f"its last screen ({found.screen_file}):")
        out("\n".join(f"  {visible(row)}" for row in found.screen))
    for title, lines, shown in (
        ("its last events", found.events, _event_line),
        ("what was done with it", found.journal, _journal_line),
    ):
        out(f"{title}:" if lines else f"{title}: none are on record")
        for line in lines:
            out(f"  {shown(line)}")


def _ended(found: Ending) -> str:
    when = f" on {_clock(found.ended)}, {span(time.time() - found.ended)} ago" if found.ended else ""
    lasted = f" after {span(found.ended - found.began)}" if found.ended and found.began else ""
    later = f"; attempt {found.newest} is the newest" if found.newest != found.attempt else ""
    return f"attempt {found.attempt} of {found.worker} ended{when}{lasted}: {one_line(found.how)}{later}"


def _journal_line(line: dict[str, Any]) -> str:
    change = f"{line['from']} → {line['to']}" if line.get("from") or line.get("to") else ""
    parts = [_clock(line.get("time")), str(line.get("what", "")), change, one_line(line.get("text"))]
    reason = one_line(line.get("reason"))
    cause = one_line(line.get("cause"))
    tail = "; ".join(filter(None, [reason, f"cause: {cause}" if cause else ""]))
    return "  ".join(filter(None, parts)) + (f"  ({tail})" if tail else "")


def _event_line(line: dict[str, Any]) -> str:
    common = {"v", "t", "pid", "attempt", "event", "session", "platform", "turn", "sha256"}
    fields = [_field(key, value) for key, value in line.items() if key not in common]
    who = "" if line.get("platform") in ("cli", "", None) else f"[{line['platform']}]"
    return "  ".join(
        filter(None, [_clock(line.get("t")), str(line.get("event")), who, " ".join(filter(None, fields))])
    )


def _field(key: str, value: Any) -> str:
    """Return `key=value`; of an object its fields that are not 0 or empty, of a list its items."""
    if isinstance(value, dict):
        return " ".join(filter(None, [_field(str(inner), each) for inner, each in value.items() if each]))
    if isinstance(value, list):
        return f"{key}={' | '.join(map(one_line, value))}" if value else ""
    if isinstance(value, bool):
        return f"{key}={'yes' if value else 'no'}"
    return "" if value in (None, "") else f"{key}={one_line(value)}"


def _clock(moment: Any) -> str:
    seconds = float(moment or 0)
    return time.strftime("%m-%d %H:%M:%S", time.localtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"
