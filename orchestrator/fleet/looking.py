"""When the screen has to be read again, and when something may be due without an observation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from orchestrator.fleet import people
from orchestrator.fleet.action import Look
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Glance, Phase, PromptKind, Worker

LOOK_BUSY, LOOK_PAINTED = 0.1, 1.0
NEVER = inf
"""An idle worker's screen is not read again: tmux says when something was painted (`window_activity`)."""
PATIENT = 1.0
"""Seconds between two looks at a worker with which nothing is going on."""


def next_look(fleet: Mapping[str, Worker], now: float) -> float:
    """Return the seconds until something may be due without an observation: 0.05 to 1."""
    return min((patience(worker, now) for worker in fleet.values()), default=PATIENT)


def patience(worker: Worker, now: float) -> float:
    """Return the seconds until something may be due for this worker: 0.05, to 1 where nothing is going on."""
    if worker.op is not None or in_doubt_about_turn(worker) or people.unseen(worker):
        return LOOK_BUSY
    if worker.phase is Phase.STARTING and not worker.setting_up:
        return LOOK_BUSY
    if worker.queue and worker.life is not None:
        return 0.3
    if worker.phase in (Phase.BACKOFF, Phase.PENDING):
        return min(PATIENT, max(0.05, worker.not_before - now))
    return PATIENT


def plan_look(pen: Pen) -> None:
    """Ask for a reading of the screen where the last one is too old for what is going on."""
    worker = pen.worker
    if worker.life is None or not worker.life.pane:
        return
    since = pen.now - worker.glance.at if worker.glance else NEVER
    if since < 0 or since >= _look_after(worker):  # less than none: the clock was put back
        pen.act(Look, "the screen is the witness here")


def _look_after(worker: Worker) -> float:
    """Return the age in seconds at which the last reading of the screen is too old."""
    glance = worker.glance
    if worker.setting_up:
        return LOOK_PAINTED
    if worker.phase is Phase.STARTING or in_doubt_about_turn(worker) or glance is None:
        return LOOK_BUSY
    if people.unseen(worker):
        return LOOK_BUSY
    if worker.op is not None:
        return LOOK_BUSY if worker.op.step not in ("term", "kill", "accepted") else LOOK_PAINTED
    agreed = worker.talk.busy and glance.kind is PromptKind.BUSY  # events and screen say the same
    if worker.queue or (glance.at - worker.steady_since < 0.3 and not agreed):
        return 0.3
    unseen = worker.painted >= int(glance.at) or worker.talk.heard > glance.at
    return LOOK_PAINTED if unseen or _waits(glance) or worker.phase is Phase.HELD else NEVER


def _waits(glance: Glance) -> bool:
    return glance.kind not in (PromptKind.READY, PromptKind.BUSY) or bool(glance.typed) or glance.in_mode


def in_doubt_about_turn(worker: Worker) -> bool:
    """Whether a turn runs by the events and may be over by the screen."""
    return worker.talk.busy and (
        worker.talk.error is not None
        or (worker.glance is not None and worker.glance.kind is PromptKind.READY)
    )
