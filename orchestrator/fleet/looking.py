"""When the screen has to be read again, and when something may be due without an observation. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.fleet import people
from orchestrator.fleet.action import Look
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Glance, Phase, PromptKind, Worker

LOOK_BUSY, LOOK_PAINTED, LOOK_IDLE = 0.1, 1.0, 30.0


def next_look(fleet: Mapping[str, Worker], now: float) -> float:
    """Return the seconds until something may be due without an observation: 0.05 to 1."""
    soon = 1.0
    for worker in fleet.values():
        unsure = in_doubt_about_turn(worker) or people.unseen(worker)
        starting = worker.phase is Phase.STARTING and not worker.setting_up
        if worker.op is not None or starting or unsure:
            soon = min(soon, LOOK_BUSY)
        elif worker.queue and worker.life is not None:
            soon = min(soon, 0.3)
        elif worker.phase in (Phase.BACKOFF, Phase.PENDING):
            soon = min(soon, max(0.05, worker.not_before - now))
    return soon


def plan_look(pen: Pen) -> None:
    """Ask for a reading of the screen where the last one is too old for what is going on."""
    worker = pen.worker
    if worker.life is None or not worker.life.pane:
        return
    since = pen.now - worker.glance.at if worker.glance else LOOK_IDLE
    if since >= _look_after(worker):
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
    if worker.queue or glance.at - worker.steady_since < 0.3:
        return 0.3
    unseen = worker.painted >= int(glance.at) or worker.talk.heard > glance.at
    return LOOK_PAINTED if unseen or _waits(glance) or worker.phase is Phase.HELD else LOOK_IDLE


def _waits(glance: Glance) -> bool:
    return glance.kind not in (PromptKind.READY, PromptKind.BUSY) or bool(glance.typed) or glance.in_mode


def in_doubt_about_turn(worker: Worker) -> bool:
    """Whether a turn runs by the events and may be over by the screen."""
    return worker.talk.busy and (
        worker.talk.error is not None
        or (worker.glance is not None and worker.glance.kind is PromptKind.READY)
    )
