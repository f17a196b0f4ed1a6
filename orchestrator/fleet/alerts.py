"""What of a fleet needs a look, and its state in one line. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.fleet.picture import waiting
from orchestrator.fleet.stall import stalled
from orchestrator.fleet.worker import Phase, Worker

BOOT_LATE = 120.0
"""Seconds after which a start is called late; late readiness still counts."""
SETUP_LATE = 1800.0
"""Seconds after which a setup command that still runs is an alert."""

ANEW_TOLD = 3600.0
"""Seconds that a new conversation in place of an old one is an alert; `ls` says it until a person acts."""


def alerts(workers: Iterable[Worker], now: float) -> list[dict[str, Any]]:
    """Return `{text, since}` for whatever needs a look; `since` is when the worker's state began, epoch seconds."""
    every = list(workers)
    return _server_died(every) + [
        {"text": f"{worker.name}: {text}", "since": worker.since}
        for worker in every
        for text in _of_worker(worker, now)
    ]


def _server_died(workers: list[Worker]) -> list[dict[str, Any]]:
    away = [worker for worker in workers if worker.lost_at]
    if not away:
        return []
    names = ", ".join(worker.name for worker in away)
    text = f"the tmux server died; not back yet, one comes after the other: {names}"
    return [{"text": text, "since": min(worker.lost_at for worker in away)}]


def _of_worker(worker: Worker, now: float) -> list[str]:
    found = []
    starting = worker.life is not None and worker.phase is Phase.STARTING
    begun = max(worker.life.launched, worker.set_up_at) if worker.life else now
    late = now - begun if starting and not worker.setting_up else 0.0
    if worker.setting_up and now - begun > SETUP_LATE:
        found.append(f"its setup command has run for {(now - begun) / 60:.0f} minutes")
    if worker.phase is Phase.UP and not worker.talk.plugin:
        found.append("the plugin is silent, it works on the screen alone")
    if worker.quiet.steps:
        found.append(stalled(worker))
    if late > BOOT_LATE:
        found.append(f"not ready after {late:.0f} s")
    if worker.anew is not None and now - worker.anew.time < ANEW_TOLD:
        found.append(f"goes on in a NEW CONVERSATION: {worker.anew.why}")
    if worker.phase is Phase.HELD or worker.pause:
        found.append(f"held: {worker.hold or worker.pause or worker.why}")
    return found


def status_line(workers: Iterable[Worker]) -> tuple[str, list[str]]:
    """Return how the fleet stands in one line, and the names of those that wait for a person."""
    every = list(workers)
    words = [worker.word for worker in every]
    counts = " ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))
    people = [worker.name for worker in every if waiting(worker) is not None]
    return (f"{counts} | waits for you: {' '.join(people)}" if people else counts), people
