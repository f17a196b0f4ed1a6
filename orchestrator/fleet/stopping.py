"""Ending a live worker: `/exit` where the prompt can take it, then TERM, then KILL."""

from __future__ import annotations

import signal

from orchestrator.fleet import deliver
from orchestrator.fleet.action import Paste, Press, Signal
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Operation, OpKind, Phase, PromptKind

TERM_GRACE = 5.0
KILL_AGAIN = 1.0
EXIT_LINE = "/exit"


def stop(pen: Pen, reason: str) -> None:
    """Begin to end a live worker: `/exit` when the prompt can take it, else TERM."""
    worker = pen.worker
    glance = worker.glance
    ready = (
        worker.phase is Phase.UP
        and glance is not None
        and glance.kind is PromptKind.READY
        and not (glance.typed or glance.in_mode or worker.talk.busy)
        and worker.grace > 0
        and worker.op is None
    )
    pen.set(phase=Phase.STOPPING, why=reason)
    pen.note("stopping", reason, what="transition")
    if ready:
        pen.begin(OpKind.STOP, "exit", worker.grace)
        pen.act(Paste, "the prompt is ready and empty", line=EXIT_LINE, message="")
    else:
        pen.begin(OpKind.STOP, "begin", 0)
        _terminate(pen, "the prompt cannot take /exit")


def _terminate(pen: Pen, reason: str) -> None:
    grace = min(TERM_GRACE, pen.worker.grace)
    if grace <= 0:
        kill(pen, "without grace, as asked")
        return
    pen.act(Signal, reason, number=signal.SIGTERM)
    pen.step("term", grace)


def kill(pen: Pen, reason: str) -> None:
    """End Hermes at once."""
    pen.act(Signal, reason, number=signal.SIGKILL)
    pen.step("kill", KILL_AGAIN)


def exit_typed(pen: Pen, op: Operation) -> None:
    """Press Enter when the prompt shows `/exit`; turn to TERM when it does not take it."""
    glance = pen.worker.glance
    if pen.now >= op.deadline:
        _terminate(pen, "it did not exit when asked")
    elif glance is not None and glance.at > op.since and glance.kind is not PromptKind.GONE:
        shown = glance.own.strip() == EXIT_LINE
        if shown and pen.now - max(op.since, op.acted) >= (1.0 if op.acted else deliver.ENTER_AFTER):
            pen.change(acted=pen.now)
            pen.act(Press, "the prompt shows /exit", keys=("Enter",))
        elif not op.acted and not shown and pen.now - op.since > 2.0:
            _terminate(pen, "the prompt did not take /exit")
