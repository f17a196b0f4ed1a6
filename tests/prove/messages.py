"""The proof that no message is lost or doubled while workers and the supervisor are killed."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orchestrator.api import Fleet
from orchestrator.fleet.message import digest
from orchestrator.selftest.verdict import Verdict, judge
from orchestrator.store import journal
from tests.e2e.sandbox import Sandbox, report, sandbox
from tests.prove.drive import Driver, Tally
from tests.prove.plan import Step, steps
from tests.prove.stage import build, request_log
from tests.prove.watch import Watch

Planner = Callable[[int, int, int], list[list[Step]]]
"""(seed, messages, workers) → each worker's steps."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a run came to."""

    messages: int
    workers: int
    seed: int
    seconds: float
    kills: dict[str, int]
    missed: int
    resumes: int
    put_back: int
    failed: tuple[str, ...]
    """Messages in `inbox/failed`, with the error."""
    stuck: tuple[str, ...]
    """Messages that had no receipt in time, with what was known of them."""
    verdict: Verdict
    requests: int
    fleet: str = field(repr=False)
    """What a person would look at after a failure; "" after a success."""

    @property
    def good(self) -> bool:
        """Whether every message is in exactly one user message at the model."""
        return self.verdict.good and not self.failed and not self.stuck

    def rows(self) -> list[tuple[str, str]]:
        """Return the table."""
        kills = [(f"killed: {kind}", str(n)) for kind, n in sorted(self.kills.items())]
        verdict = self.verdict
        return [
            ("messages", f"{self.messages} to {self.workers} workers"),
            *kills,
            ("kills", f"{sum(self.kills.values())}, and {self.missed} that came too late"),
            ("resumed conversations", str(self.resumes)),
            ("messages put back and typed again", str(self.put_back)),
            ("requests at the model", str(self.requests)),
            ("failed", _listed(self.failed)),
            ("without a receipt", _listed(self.stuck)),
            ("doubled", _listed(verdict.doubled)),
            ("lost", _listed(verdict.lost)),
            ("in another worker's conversation", _listed(verdict.strayed)),
            ("out of order", _listed(verdict.misordered)),
            ("seconds", f"{self.seconds:.0f}"),
        ]


def _listed(found: tuple[Any, ...]) -> str:
    return f"{len(found)}: {', '.join(map(str, found))}" if found else "0"


def prove(
    hermes: Path,
    *,
    messages: int,
    workers: int,
    seed: int,
    planner: Planner | None = None,
    keep: Path | None = None,
) -> Proof:
    """Run the proof in a home of its own, of which nothing is left but what is copied to `keep`."""
    plans = planner(seed, messages, workers) if planner else steps(seed, messages=messages, workers=workers)
    with sandbox(hermes) as box:
        fleet = build(box, workers)
        since, tally = time.time(), Tally()
        _drive(fleet, plans, messages, tally)
        found = _proof(box, fleet, tally, (messages, workers, seed), since)
        if keep is not None:
            _keep(box, keep)
        return found


def _drive(fleet: Fleet, plans: list[list[Step]], messages: int, tally: Tally) -> None:
    watch = Watch(fleet.paths.state)
    watch.start()
    names = fleet.names()
    drivers = [
        Driver(fleet.worker(name), plan, messages + 1 + at, watch, tally)
        for at, (name, plan) in enumerate(zip(names, plans, strict=True))
    ]
    try:
        for driver in drivers:
            driver.start()
        for driver in drivers:
            driver.join()
    finally:
        tally.over.set()
        for driver in drivers:
            if driver.is_alive():
                driver.join(5)
        watch.end()


def _proof(box: Sandbox, fleet: Fleet, tally: Tally, size: tuple[int, int, int], since: float) -> Proof:
    places = {ident: fleet.message(ident) for ident in tally.sent}
    owners = {number: worker for worker, number in tally.sent.values()}
    requests = list(_requests(box))
    verdict = judge((r["messages"] for r in requests), owners, asked=_asked(fleet, tally, places))
    told = [str(line.get("text", "")) for line in journal.read(fleet.paths.journal, since=since)]
    found = Proof(
        *size,
        seconds=time.time() - since,
        kills=dict(tally.kills),
        missed=tally.missed,
        resumes=sum(text.startswith("starting attempt") and " in session " in text for text in told),
        put_back=sum("put back" in text for text in told),
        failed=tuple(
            f"{tally.sent[i][1]} ({data.get('error')})"
            for i, (place, data) in places.items()
            if place == "failed"
        ),
        stuck=tuple(f"{tally.sent[ident][1]} ({places[ident][0]})" for ident in tally.stuck),
        verdict=verdict,
        requests=len(requests),
        fleet="",
    )
    if found.good:
        return found
    return replace(found, fleet=report(box))


def _keep(box: Sandbox, to: Path) -> None:
    """Copy the fleet's files (less its FIFO) and the log of requests."""
    shutil.copytree(box.dir, to, ignore=shutil.ignore_patterns("wake"), dirs_exist_ok=True)
    shutil.copy(request_log(box), to)


def _requests(box: Sandbox) -> Iterator[dict[str, Any]]:
    with request_log(box).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _asked(fleet: Fleet, tally: Tally, places: dict[str, tuple[str, dict[str, Any]]]) -> Counter[int]:
    """Count the turns in which each number was the new user message when the model was asked."""
    counted: Counter[int] = Counter()
    for name in fleet.names():
        texts = {
            digest(str(places[ident][1].get("text", ""))): number
            for ident, (worker, number) in tally.sent.items()
            if worker == name
        }
        turns = {
            (line["turn"], texts[line["sha256"]])
            for line in fleet.worker(name).events()
            if line["event"] == "pre_api_request" and line.get("sha256") in texts
        }
        counted.update(number for _, number in turns)
    return counted
