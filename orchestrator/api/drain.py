"""Waiting until draining workers have finished what they do and are stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.api.follow import dialog_hint, dialog_text
from orchestrator.api.ready import Say, pictures
from orchestrator.errors import TimedOut, WorkerFailed
from orchestrator.store.paths import FleetPaths


def wait_drained(
    paths: FleetPaths, names: Sequence[str], *, say: Say, timeout: float | None, revive: Callable[[], object]
) -> None:
    """Wait until these workers are stopped; `say` hears what each is in the middle of, and of its end.

    Raises TimedOut after `timeout` seconds (None = never), WorkerFailed when one was started again.
    """
    left, told = dict.fromkeys(names), dict[str, str]()
    for picture in pictures(paths, timeout=timeout, revive=revive):
        for name in list(left):
            worker = picture.workers.get(name) or {}
            if not worker or worker.get("word") == "stopped":
                del left[name]
                say(name, "stopped" + undelivered(name, worker))
            elif worker.get("want") != "stopped":
                raise WorkerFailed(f"{name} is to {worker.get('want')} now", hint=f"hermux why {name}")
            elif worker.get("draining") and _step(worker) != told.get(name):
                told[name] = _step(worker)
                say(name, _finishes(name, worker))
        if not left:
            return
    first = next(iter(left))
    raise TimedOut(
        f"after {timeout:g} s still at work: {', '.join(left)}; each stops when it is done",
        hint=f"hermux why {first}, or end it now: hermux stop {first}",
    )


def _step(worker: dict[str, Any]) -> str:
    """Return what changes when there is something new to tell."""
    return str((worker.get("waiting") or {}).get("id") or worker.get("word"))


def _finishes(name: str, worker: dict[str, Any]) -> str:
    waiting = worker.get("waiting")
    if not waiting:
        return f"is {worker.get('word')}: it stops after that"
    asked = dialog_text(name, waiting).removeprefix(f"{name} ")
    return f"{asked}\n  it stops after that → {dialog_hint(name, waiting)}"


def undelivered(name: str, worker: dict[str, Any]) -> str:
    """Return how many messages wait in the inbox of a worker that has ended, and for what; "" = none."""
    queued = int(worker.get("queued") or 0)
    wait = "1 message waits" if queued == 1 else f"{queued} messages wait"
    return f"; {wait} in its inbox → hermux start {name}" if queued else ""
