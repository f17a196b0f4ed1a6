"""Waiting for what workers do: to be idle, to show a state, to have taken a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.api.follow import dialog_hint, dialog_text
from orchestrator.api.picture import settled
from orchestrator.api.ready import pictures
from orchestrator.errors import PersonNeeded, TimedOut, UsageError, WorkerFailed
from orchestrator.store import inbox

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet

WORDS = (
    "pending",
    "starting",
    "ready",
    "busy",
    "waiting",
    "background",
    "draft",
    "failed",
    "held",
    "backoff",
    "stopping",
    "stopped",
    "paused",
    "unknown",
)
"""The words that `ls` shows as a worker's state."""


def until_idle(
    fleet: Fleet, names: Sequence[str], *, state: str, any_one: bool, timeout: float | None
) -> dict[str, dict[str, Any]]:
    """See Fleet.wait."""
    if state and state not in WORDS:
        raise UsageError(f"{state!r} is no state", hint=f"one of: {', '.join(WORDS)}")
    left = list(names)
    for picture in pictures(fleet.paths, timeout=timeout, revive=fleet.ensure_supervisor):
        there = {name: picture.workers[name] for name in names if name in picture.workers}
        reached = {name: each for name, each in there.items() if _reached(fleet, name, each, state)}
        if len(reached) == len(names) or (any_one and reached):
            return reached
        left = [name for name in names if name not in reached]
        for name in left:
            _check(name, there.get(name), state)
    raise TimedOut(
        f"after {timeout:g} s: {', '.join(left)} not {state or 'done'} yet", hint=f"hermux why {left[0]}"
    )


def until_delivered(fleet: Fleet, message_id: str, *, timeout: float | None) -> inbox.Found:
    """See Fleet.wait_message."""
    found = inbox.find(fleet.paths, message_id)
    if found is None:
        raise UsageError(f"no message {message_id} in fleet {fleet.name}")
    name = found.worker
    for picture in pictures(fleet.paths, timeout=timeout, revive=fleet.ensure_supervisor):
        found = inbox.look(fleet.paths.worker(name), message_id) or found
        if found.place == "done":
            return found
        if found.place == "failed":
            why = found.data.get("error", "no reason was noted")
            raise WorkerFailed(
                f"message {message_id} was not delivered to {name}: {why}", hint=f"hermux why {name}"
            )
        _check(name, picture.workers.get(name), "")
    raise TimedOut(f"message {message_id} was not delivered within {timeout:g} s", hint=f"hermux why {name}")


def _reached(fleet: Fleet, name: str, worker: dict[str, Any], state: str) -> bool:
    if not settled(worker):
        return False
    if state:
        return worker.get("word") == state
    idle = worker.get("word") in ("ready", "failed") and not worker.get("operation")
    if not idle or _mail(fleet, name):
        return False
    last = worker.get("last_turn") or {}
    if worker.get("word") == "failed":
        raise WorkerFailed(f"the last turn of {name} failed: {last.get('error')}", hint=f"hermux why {name}")
    return True


def _mail(fleet: Fleet, name: str) -> bool:
    paths = fleet.paths.worker(name)
    return bool(inbox.count_new(paths) or next(paths.inbox_cur.glob("*.json"), None))


def _check(name: str, worker: dict[str, Any] | None, state: str) -> None:
    """Raise when a worker will not get there by itself."""
    if worker is None:
        raise WorkerFailed(f"{name} was removed")
    phase, word = worker.get("phase"), worker.get("word")
    if state in (word, phase) or not settled(worker):
        return
    if phase == "held" or (word == "held" and not worker.get("operation")):
        raise WorkerFailed(f"{name} is held: {worker.get('why')}", hint=f"hermux why {name}")
    if worker.get("want") != "run" and not (state and _comes(worker, state)):
        raise WorkerFailed(f"{name} is to be {worker.get('want')}", hint=f"hermux start {name}")
    if worker.get("waiting") and state != "waiting":
        raise PersonNeeded(dialog_text(name, worker["waiting"]), hint=dialog_hint(name, worker["waiting"]))


def _comes(worker: dict[str, Any], state: str) -> bool:
    """Whether a worker that is to stop or pause may still show that state."""
    return state in ("stopping", worker.get("want")) or bool(worker.get("draining"))
