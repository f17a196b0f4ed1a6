"""Texts of our own that a new attempt gets before any other: the hand-over, or the nudge to go on. Pure.

Each is asked for until it is known to be queued, under an id fixed by the attempt, so that no death of the
supervisor loses or doubles it.
"""

from __future__ import annotations

from orchestrator.fleet import handover
from orchestrator.fleet.action import HandOver, Nudge
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.observation import Acted
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Head, Phase, Worker

AGAIN = 1.0
"""Seconds after which a text that could not be queued (a full disk) is asked for again."""


def plan(pen: Pen) -> bool:
    """Have the text queued that is due, and return whether one is: nothing is taken up before it."""
    worker = pen.worker
    due = _due(worker)
    if due and worker.phase is Phase.UP and worker.op is None and pen.now - worker.told_at >= AGAIN:
        pen.set(told_at=pen.now)
        if handover.untold(worker):
            pen.act(HandOver, worker.anew.why if worker.anew else "", message=due)
        else:
            pen.act(Nudge, "its last process was ended in the middle of a turn", message=due)
    return bool(due)


def acted(pen: Pen, seen: Acted) -> None:
    """Take a text for queued, first of all; without `ok` there is none to be queued."""
    due = _due(pen.worker)
    if not due or seen.detail != due:
        return
    if handover.untold(pen.worker):
        handover.told(pen)
    else:
        pen.set(nudge=False)
    if seen.ok:
        others = (head for head in pen.worker.queue if head.id != due)
        pen.set(queue=(Head(due, MessageKind.TEXT), *others))


def _due(worker: Worker) -> str:
    """Return the id of the text that this attempt is still to get, "" = none. It sorts before all others."""
    if handover.untold(worker):
        return f"m-0-handover-{worker.attempt:06d}"
    return f"m-0-nudge-{worker.attempt:06d}" if worker.nudge else ""
