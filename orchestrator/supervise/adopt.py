"""What a supervisor does first: remember what the last one knew, and take over what still runs."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from orchestrator.errors import HermuxError
from orchestrator.fleet.events import EventName
from orchestrator.fleet.memory import load
from orchestrator.fleet.message import Message, MessageKind, Method, digest
from orchestrator.fleet.worker import Flight, Life, Move, OpKind, Phase, Worker
from orchestrator.hermes.feed import iter_events
from orchestrator.store import inbox, journal
from orchestrator.store.desired import DesiredWorker, load_desired
from orchestrator.store.paths import FleetPaths, WorkerPaths
from orchestrator.store.state import read_state
from orchestrator.terminal.pane import PaneRow
from orchestrator.terminal.process import Process

log = logging.getLogger("hermux")
AWAITING = frozenset({"settle", "sweep", "take"})
"""Steps that wait for an answer which died with the supervisor: they are asked for again at once."""
ASKED = re.compile(r"asks a person: \w+ #(\d+)")
FORGOTTEN = "what was known of its dialog was lost: look at the pane"


def remembered(paths: FleetPaths) -> dict[str, Worker]:
    """Return the workers as the last supervisor left them; what cannot be understood is left out, loudly."""
    state = read_state(paths)
    found: dict[str, Worker] = {}
    for name, entry in (state.workers if state else {}).items():
        try:
            found[name] = load(entry["memory"])
        except Exception as error:  # whatever stands there
            log.error("%s: what was known of it cannot be understood (%r)", name, error)
    return found


def found_again(paths: FleetPaths, known: Mapping[str, Worker], rows: list[PaneRow]) -> dict[str, Worker]:
    """Return the wanted workers of which nothing is remembered, as their own files and panes show them.

    So a `state.json` that was lost or torn costs no conversation, no running turn and no message.
    """
    try:
        wanted = load_desired(paths).workers
    except HermuxError as error:
        log.error("%s", error)
        return {}
    return {
        name: replace(_from_files(paths.worker(name), each, rows), asked=_asked(paths, name))
        for name, each in wanted.items()
        if name not in known
    }


def _asked(paths: FleetPaths, worker: str) -> int:
    """Return the highest number that a dialog of the worker has had: none is given twice."""
    said = (line.get("text") for line in journal.read(paths.journal) if line.get("worker") == worker)
    numbers = (ASKED.match(str(text)) for text in said)
    return max((int(match.group(1)) for match in numbers if match), default=0)


def _from_files(paths: WorkerPaths, wanted: DesiredWorker, rows: list[PaneRow]) -> Worker:
    numbers = [int(each.name) for each in paths.attempts.glob("*") if each.name.isdigit()]
    events = list(iter_events(paths.dir))
    requests = [event for event in events if event.name is EventName.REQUEST and event.main]
    worker = Worker(
        wanted.spec,
        wanted.want,
        wanted.generation,
        wanted.grace,
        renew=wanted.renew,
        roll=wanted.roll,
        drain=wanted.drain,
        attempt=max(numbers, default=0),
        session=requests[-1].session if requests else "",
        flights=tuple(_in_doubt(m) for m in inbox.current(paths) if m.kind is not MessageKind.ANSWER),
        moves=tuple(
            Move(0, m.id, error=FORGOTTEN) for m in inbox.current(paths) if m.kind is MessageKind.ANSWER
        ),
    )
    for row in rows:
        process = Process.of(row.pid)
        if process and _runs(row.pid, paths.launch, worker.attempt):
            life = Life(row.pane_id, process.pid, process.start, time.time())
            log.info("%s: found alive in pane %s, attempt %d", worker.name, row.pane_id, worker.attempt)
            return replace(worker, life=life, pane=row.pane_id, phase=Phase.STARTING)
    return worker


def _in_doubt(message: Message) -> Flight:
    """A message that lies in `cur` and of which no more is known: an event, or the database, decides."""
    expected = digest(message.text)
    return Flight(message.id, message.kind, Method.PASTE, message.text, expected, 0, message.created, True)


def adopt(worker: Worker, rows: list[PaneRow], script: Path) -> Worker:
    """Return the worker as it is to be carried on with: its life, if its very process still runs."""
    if worker.op is not None and worker.op.step in AWAITING:
        worker = replace(worker, op=replace(worker.op, deadline=0.0))
    launching = worker.op is not None and worker.op.kind is OpKind.RECOVER and worker.op.step == "launch"
    if worker.life is None and launching:
        return _launched_meanwhile(worker, rows, script)
    return replace(worker, glance=None, steady_since=0.0)


def _launched_meanwhile(worker: Worker, rows: list[PaneRow], script: Path) -> Worker:
    """A launch was decided and the supervisor killed: did it happen? The pane's command line tells."""
    for row in rows:
        process = Process.of(row.pid)
        if row.session == worker.name and process and _runs(row.pid, script, worker.attempt):
            life = Life(row.pane_id, process.pid, process.start, worker.op.since if worker.op else 0.0)
            return replace(worker, op=None, life=life, pane=row.pane_id, phase=Phase.STARTING, glance=None)
    return replace(worker, op=None, phase=Phase.PENDING, why="the launch was cut short")


def _runs(pid: int, script: Path, attempt: int) -> bool:
    import psutil

    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    return any(a == str(script) and b == str(attempt) for a, b in pairwise(words))


def alive(worker: Worker) -> bool:
    """Whether the process of a remembered life still runs."""
    return worker.life is not None and Process(worker.life.pid, worker.life.start).alive()


def entry(worker: Worker, shown: Mapping[str, Any], memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return a worker's entry in `state.json`: for readers, and for the next supervisor."""
    return {**shown, "memory": memory}
