"""A worker that is to stop when its work is done, and one whose cut turn is kept for its next start. Pure."""

from __future__ import annotations

from orchestrator.fleet.picture import activity
from orchestrator.fleet.worker import Activity, Operation, OpKind, Phase, Want, Worker

DOES = {
    Activity.BUSY: "its turn runs",
    Activity.WAITING: "a question of its turn waits for a person",
    Activity.BACKGROUND: "children or background tasks run",
    Activity.UNKNOWN: "its prompt cannot be read, and a turn may run",
}


def to_finish(worker: Worker) -> str:
    """Return what a draining worker is still in the middle of, "" = it can be stopped.

    A text that was not taken up yet is no such thing, nor is a message in doubt: the database of a dead
    attempt tells of that one.
    """
    if not worker.draining or worker.phase is not Phase.UP:
        return ""
    if worker.parked is not None or (worker.op is not None and not untouched(worker.op)):
        return "a message is on its way"
    doing = DOES.get(activity(worker)[0], "")
    return doing or ("" if worker.steady() else "its prompt is looked at, so that it can be asked to leave")


def untouched(op: Operation) -> bool:
    """Whether an operation is a delivery whose message still lies in `inbox/new`."""
    return op.kind is OpKind.DELIVER and op.step == "check"


def keeps_turn(worker: Worker) -> bool:
    """Whether a turn that its end cuts is gone on with at the next start: it was paused, or died while draining."""
    return worker.want is Want.PAUSED or worker.draining
