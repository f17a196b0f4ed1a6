"""The death of the tmux server: one event for the whole fleet, and the way back, one worker at a time. Pure.

Every pane dies with the server, so no worker is to blame: none spends a restart. Each is started again in the
order in which it was added, and only when the one before is ready, has failed, or has taken `TURN` seconds.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import replace

from orchestrator.fleet.action import Signal
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.sequence import waits_for
from orchestrator.fleet.worker import Phase, Worker

WHY = "the tmux server died"
WITNESS = 3.0
"""Seconds before the server's death was seen within which a death is taken for a part of it."""
OUTLIVES = 5.0
"""Seconds that a process without its terminal gets to end by itself: Hermes ends its session on SIGHUP."""
TURN = 60.0
"""Seconds after which the next worker starts though the one before is neither ready nor dead."""


def lost(pen: Pen, at: float) -> None:
    """Note that the server died under this worker; a crash that was counted for it a moment ago is taken back.

    An attempt that was launched after `at` runs in the server that took its place.
    """
    worker = pen.worker
    if worker.crashes and abs(at - worker.crashes[-1]) <= WITNESS and not worker.hold:
        pen.set(crashes=worker.crashes[:-1], not_before=0.0, why=WHY)
        if worker.life is None:
            pen.set(lost_at=at)
    if worker.life is None:
        pen.set(pane="")  # the next server gives the same ids to other panes
    elif worker.life.launched < at:
        pen.set(lost_at=at, why=WHY, pane="", life=replace(worker.life, pane=""), glance=None)


def under(worker: Worker) -> bool:
    """Whether the running attempt is one that lost its terminal with the server."""
    return worker.life is not None and worker.life.launched < worker.lost_at


def outlived(pen: Pen) -> None:
    """End a process that goes on without its terminal: nobody could see it or type into it."""
    worker = pen.worker
    if under(worker) and pen.now - worker.lost_at >= OUTLIVES and pen.now >= worker.not_before:
        pen.set(not_before=pen.now + 1.0)
        pen.act(Signal, "it outlived the tmux server, and nobody can see it", number=signal.SIGKILL)


def refuses(worker: Worker, others: Mapping[str, Worker]) -> str:
    """Return why a worker that lost its terminal with the server cannot come back yet, "" if it is its turn.

    One that cannot start before another is ready (`after` in a fleet file) is not waited for: it may be this one.
    """
    for other in others.values():
        if other.name == worker.name:
            return ""
        if _awaited(other) and not waits_for(other, others):
            return f"{WHY}: it comes back after {other.name}"
    return ""


def _awaited(worker: Worker) -> bool:
    """Whether the ones behind wait for this one: it is to come back and is neither ready nor given up."""
    return bool(worker.lost_at) and worker.wanted and worker.phase is not Phase.HELD


def given_up(pen: Pen) -> None:
    """Let the next worker go when this one takes too long; late readiness still counts."""
    worker = pen.worker
    started = worker.life is not None and worker.life.launched >= worker.lost_at
    if worker.lost_at and started and worker.life is not None and pen.now - worker.life.launched > TURN:
        pen.set(lost_at=0.0)
        pen.note("the next worker comes back", f"this one is not ready after {TURN:.0f} s", what="transition")
