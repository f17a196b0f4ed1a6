"""A turn of which nothing comes: it is reported, and interrupted or ended only where the role says so. Pure.

Progress is an event of the plugin, a line of output on the screen, or work of a tool's processes: not a screen
that is merely painted. Seconds count only while somebody watches, so that neither a machine that slept nor a
clock that jumped makes a stall. A question, a background task and delegated work are none.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.fleet import orders, stopping
from orchestrator.fleet.action import Press
from orchestrator.fleet.draining import STALLED
from orchestrator.fleet.observation import Worked
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.picture import activity
from orchestrator.fleet.spec import StallStep
from orchestrator.fleet.worker import Activity, Glance, Phase, PromptKind, Quiet, Worker

COUNT_EVERY = 1.0
UNWATCHED = 5.0
"""Seconds between two looks after which nobody knows what went on: the supervisor looks each second."""
FRESH = 1.5
"""Seconds for which a reading of the screen is good enough to press a key: a busy one is read each second."""
STEP_APART = 60.0
"""Seconds from one step to the next, less where the role's limit is shorter."""
DOUBT = 30.0
"""Seconds of silence from which on the processes of tools are measured, less where the limit is shorter."""
REPORTED, INTERRUPTED, RESTARTED = 1, 2, 3


def plan(pen: Pen) -> bool:
    """Count the silence of a running turn, and do what is due about it; return whether the process is ended."""
    worker = pen.worker
    if not _counts(worker):
        pen.set(quiet=Quiet())
        return False
    quiet, passed = worker.quiet, pen.now - worker.quiet.counted
    if 0 <= passed < COUNT_EVERY:
        return False
    watched = passed if 0 <= passed <= UNWATCHED else 0.0
    quiet = replace(quiet, seconds=quiet.seconds + watched, counted=pen.now)
    pen.set(quiet=quiet)
    if quiet.seconds < limit(worker) + quiet.steps * min(STEP_APART, limit(worker)):
        return False
    return _step(pen)


def _step(pen: Pen) -> bool:
    worker = pen.worker
    quiet, then = worker.quiet, worker.spec.stall.then
    if quiet.steps < REPORTED:
        pen.set(quiet=replace(quiet, steps=REPORTED, reported=pen.now))
        pen.note("stalled", stalled(worker), what="transition")
    elif then is StallStep.REPORT or worker.talk.children or worker.op is not None:
        return False
    elif quiet.steps < INTERRUPTED:
        _interrupt(pen)
    elif quiet.steps < RESTARTED and then is StallStep.RESTART:
        pen.set(quiet=replace(quiet, steps=RESTARTED))
        stopping.stop(pen, f"{STALLED}, and its role says stall.then: restart")
        return True
    return False


def _interrupt(pen: Pen) -> None:
    """Press what a person would, where it can neither answer a dialog nor lose a draft."""
    glance = pen.worker.glance
    if glance is None or glance.kind is not PromptKind.BUSY or glance.typed or pen.now - glance.at > FRESH:
        return
    pen.set(quiet=replace(pen.worker.quiet, steps=INTERRUPTED), interrupted=pen.now)
    pen.act(Press, "the turn stalled", keys=orders.INTERRUPT)
    pen.note("interrupting the turn", f"it stalled; its role says stall.then: {pen.worker.spec.stall.then}")


def _counts(worker: Worker) -> bool:
    return worker.phase is Phase.UP and activity(worker)[0] is Activity.BUSY


def limit(worker: Worker) -> float:
    """Return the seconds of silence after which the worker is called stalled."""
    return worker.spec.stall.tool if worker.talk.tools else worker.spec.stall.turn


def in_doubt(worker: Worker) -> bool:
    """Whether it matters what the processes of the worker's tools do."""
    return worker.life is not None and worker.quiet.seconds >= min(DOUBT, limit(worker) / 4)


def progressed(pen: Pen) -> None:
    """Begin to count anew: something came of the turn."""
    quiet = pen.worker.quiet
    if quiet.steps:
        pen.note("goes on", f"it was silent for {quiet.seconds:.0f} s", what="transition")
    if quiet.seconds or quiet.steps:
        pen.set(quiet=Quiet(counted=pen.now))


def glanced(pen: Pen, glance: Glance) -> None:
    """Take a line of output for progress."""
    before = pen.worker.glance
    if before is not None and before.body and glance.body and before.body != glance.body:
        progressed(pen)


def worked(pen: Pen, seen: Worked) -> None:
    """Take work of a tool's processes for progress: a long compile says nothing."""
    if seen.attempt == pen.worker.attempt:
        progressed(pen)


def stalled(worker: Worker) -> str:
    """Return in words for how long nothing came, and what the worker did last."""
    did = worker.talk.doing or "nothing that the plugin told"
    return f"stalled: no event, output or work of a tool for {worker.quiet.seconds:.0f} s; it last did: {did}"
