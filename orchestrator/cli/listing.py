"""What `hermux ls` prints: the workers, from the files alone. Nothing heavy is imported here."""

from __future__ import annotations

import time
from typing import Any

from orchestrator.api.branch import branch_of
from orchestrator.api.picture import OWN, Picture, open_picture, seconds_left, span
from orchestrator.cli.show import (
    Column,
    blocks,
    one_line,
    out,
    out_json,
    table,
    talk,
    terminal_width,
    too_wide,
)

LONGEST = 100
"""Characters of DOING, however wide the terminal."""
REHEARSAL_NOTICE = "rehearsal model: scripted answers, no language model"
COLUMNS = (
    Column("NAME"),
    Column("ROLE", least=5),
    Column("STATE"),
    Column("DOING", least=12, optional=True),
    Column("RESTARTS", right=True, optional=True),
    Column("TOKENS", right=True, optional=True),
    Column("BRANCH", least=8, optional=True),
    Column("SESSION", least=8, optional=True),
    Column("PROFILE", least=8, optional=True),
)
WIDE = (
    Column("ENDPOINT", least=12, optional=True),
    Column("CWD", least=8, optional=True),
    Column("PID", right=True, optional=True),
    Column("TIMED OUT", right=True, optional=True),
)


def show(fleet: str, *, json: bool, quiet: bool, verbose: bool, watch: float | None = None) -> None:
    """Print the picture of a fleet, every `watch` seconds if given; raises BadName and BadFile."""
    while True:
        picture = open_picture(fleet or "default")
        if json:
            out_json(document(picture))
        else:
            if watch:
                out("\033[H\033[2J" + time.strftime("%H:%M:%S"))
            _print(picture, quiet=quiet, verbose=verbose)
        if not watch:
            return
        time.sleep(watch)


def document(picture: Picture) -> dict[str, Any]:
    """Return what `ls --json` prints; docs/json.md lists the fields."""
    now = time.time()
    return {
        "schema": 1,
        "fleet": picture.fleet,
        "time": now,
        "age": round(picture.age, 3) if picture.time else None,
        "supervisor": picture.supervisor,
        "warning": picture.warning,
        "alerts": picture.alerts,
        "workers": [_entry(name, worker) for name, worker in picture.workers.items()],
    }


def _entry(name: str, worker: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in worker.items() if key not in OWN}
    return {"name": name, **shown, "branch": branch_of(str(worker.get("cwd", "")))}


def _print(picture: Picture, *, quiet: bool, verbose: bool) -> None:
    if picture.workers:
        columns = COLUMNS + WIDE if verbose else COLUMNS
        rows = [row(name, worker)[: len(columns)] for name, worker in picture.workers.items()]
        width = terminal_width()
        out(
            blocks(columns, rows)
            if verbose and too_wide(columns, rows, width)
            else table(columns, rows, width=width)
        )
    elif not quiet:
        option = "" if picture.fleet == "default" else f" -F {picture.fleet}"
        talk(f"no workers in fleet {picture.fleet} → hermux spawn{option}")
    if quiet:
        return
    if picture.rehearsal:
        out(f"{notice(picture)}")
    for alert in picture.alerts:
        talk(f"alert: {one_line(alert.get('text'))}")
    if picture.warning:
        talk(picture.warning)


def notice(picture: Picture) -> str:
    """Return the line that names the rehearsal model, and the workers on it where others are on a real one."""
    some = len(picture.rehearsal) < len(picture.workers)
    return REHEARSAL_NOTICE + (f" ({', '.join(picture.rehearsal)})" if some else "")


def row(name: str, worker: dict[str, Any]) -> list[str]:
    """Return the cells of a worker, in the order of `COLUMNS + WIDE`."""
    tokens = worker.get("tokens") or {}
    total = int(tokens.get("in") or 0) + int(tokens.get("out") or 0)
    endpoint = worker.get("endpoint") or {}
    return [
        name,
        str(worker.get("role", "")),
        state(worker),
        cut(one_line("; ".join(filter(None, [anew(worker), switched(worker), doing(worker)]))), LONGEST),
        str(worker.get("restarts") or ""),
        short(total) if total else "",
        branch_of(str(worker.get("cwd", ""))),
        str(worker.get("session") or ""),
        str(worker.get("hermes_profile") or ""),
        where(endpoint),
        str(worker.get("cwd", "")),
        str(worker.get("pid") or ""),
        str(worker.get("timed_out") or ""),
    ]


def where(endpoint: dict[str, Any]) -> str:
    """Return the model and its server, by the saved name where there is one."""
    name = f"{endpoint['name']}: " if endpoint.get("name") else ""
    return f"{name}{endpoint.get('model', '')} at {endpoint.get('base_url', '')}"


def state(worker: dict[str, Any]) -> str:
    """Return the state as one word, its witness and its age."""
    word, witness, since = worker.get("word"), worker.get("witness"), float(worker.get("since") or 0)
    inner = " ".join(filter(None, [str(witness or ""), span(time.time() - since) if since else ""]))
    return f"{word} ({inner})" if inner else str(word)


def switched(worker: dict[str, Any]) -> str:
    """Return which model is asked in place of the worker's own, "" when it is its own."""
    model, own = str(worker.get("model") or ""), str((worker.get("endpoint") or {}).get("model") or "")
    if not model or not own or model == own:
        return ""
    return f"on its fallback {model}" if model in (worker.get("fallback") or ()) else f"on the model {model}"


def anew(worker: dict[str, Any]) -> str:
    """Return that a worker goes on in a new conversation, "" if it does not."""
    return "NEW CONVERSATION" if worker.get("anew") else ""


def doing(worker: dict[str, Any]) -> str:
    """Return what a worker does, waits for, or why it is where it is."""
    waiting = worker.get("waiting")
    if waiting:
        left = seconds_left(waiting)
        ident = f" #{str(waiting['id']).rsplit('#', 1)[1]}" if waiting.get("id") else ""
        time_left = f" ({span(left)} left)" if left is not None else ""
        return f"{waiting.get('kind')}{ident}{time_left}: {waiting.get('text')}"
    word, last = worker.get("word"), worker.get("last_turn") or {}
    if word == "failed":
        return str(last.get("error") or "the last turn failed")
    if word in ("busy", "background") and worker.get("doing"):
        stalled = worker.get("stalled")
        before = f"stalled for {span(float(stalled['seconds']))}; " if stalled else ""
        return before + ("draining; " if worker.get("draining") else "") + str(worker["doing"])
    why = str(worker.get("why") or worker.get("intake_why") or "")
    queued = int(worker.get("queued") or 0)
    waits = f"{queued} message{'s' if queued > 1 else ''} queued" if queued else ""
    return "; ".join(filter(None, [why, waits]))


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, marked where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short(number: int) -> str:
    """Return a count in at most five characters: 950, 12k, 3.4M."""
    if number < 10_000:
        return str(number)
    return f"{number / 1e3:.0f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"
