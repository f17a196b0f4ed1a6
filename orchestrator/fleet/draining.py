"""A worker that is to stop when its work is done, and one whose cut turn is kept for its next start. Pure."""

from __future__ import annotations

from orchestrator.fleet.picture import activity
from orchestrator.fleet.worker import Activity, Operation, OpKind, Phase, Want, Worker

STALLED = "stalled"
"""Begins the reason for which a process is ended that stalled: its turn is gone on with."""
PROMPT_BACK = 3.0
"""Seconds for which the prompt is waited for after the last event: one that stands there can take `/exit`."""


def at_work(worker: Worker, now: float) -> bool:
    """Whether a draining worker is still in the middle of something: its turn, children, a question, a message.

    A prompt that cannot be read may have a turn behind it. A text that was not taken up yet is nothing of that
    kind, nor is a message in doubt: the database of a dead attempt tells of that one.
    """
    if not worker.draining or worker.phase is not Phase.UP:
        return False
    if worker.parked is not None or (worker.op is not None and not untouched(worker.op)):
        return True
    if activity(worker)[0] is not Activity.READY:
        return True
    unseen = worker.glance is None or worker.glance.at <= worker.talk.heard
    return unseen and now - worker.talk.heard < PROMPT_BACK


def untouched(op: Operation) -> bool:
    """Whether an operation is a delivery whose message still lies in `inbox/new`."""
    return op.kind is OpKind.DELIVER and op.step == "check"


def keeps_turn(worker: Worker) -> bool:
    """Whether a turn that its end cuts is gone on with at the next start: it was paused, died while draining, or stalled."""
    return worker.want is Want.PAUSED or worker.draining or worker.why.startswith(STALLED)
