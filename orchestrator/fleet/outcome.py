"""What follows from the end of an attempt that nobody asked for: it is started again, stopped or held. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.fleet.spec import Restart, RestartPolicy
from orchestrator.fleet.worker import Outcome, OutcomeKind, Worker

LEFT = "a person ended it in its pane (/exit, Ctrl-C or Ctrl-D)"


class Then(StrEnum):
    """What is done about an end."""

    RESTART = "restart"
    STOP = "stop"
    HOLD = "hold"


def told_apart(outcome: Outcome, worker: Worker) -> Outcome:
    """Return the outcome with what the worker's last events say of it.

    Hermes exits with 0 when a person leaves and on a signal alike; its last event tells which it was.
    """
    if outcome.kind is OutcomeKind.EXITED and outcome.number == 0 and worker.talk.left:
        return Outcome(OutcomeKind.LEFT, why=LEFT)
    return outcome


def consequence(policy: RestartPolicy, outcome: Outcome) -> tuple[Then, str]:
    """Return what is done about an end, and why: the words of Erlang's supervisors decide."""
    if outcome.kind is OutcomeKind.LEFT and policy.policy is not Restart.PERMANENT:
        return Then.STOP, outcome.why
    if policy.policy is Restart.TEMPORARY:
        return Then.HOLD, f"it ended ({outcome}), and its role says restart: temporary"
    return Then.RESTART, str(outcome)


@dataclass(frozen=True, slots=True)
class Traces:
    """What the kernel and the last measurement say of a process that was killed."""

    kills: int = 0
    """Processes that the kernel ended for want of memory since the counter was last read."""
    said: str = ""
    """The kernel log's line that names this very process."""
    resident: int = 0
    """Bytes that it had when it was last measured, 0 = it was not."""
    age: float = 0.0
    """Seconds between that and its death."""


def unforeseen(outcome: Outcome) -> bool:
    """Whether it may be the kernel's doing: a KILL, or an end that nobody saw."""
    if outcome.kind is OutcomeKind.SIGNALLED:
        return outcome.number == signal.SIGKILL
    return outcome.kind is OutcomeKind.UNKNOWN


def for_memory(outcome: Outcome, traces: Traces) -> Outcome:
    """Return `out_of_memory`, with the figures, where the kernel's own killer was at work just then."""
    if not unforeseen(outcome) or not (traces.kills or traces.said):
        return outcome
    had = f"it had {traces.resident / 1e6:.0f} MB {traces.age:.0f} s before" if traces.resident else ""
    said = traces.said or f"the kernel ended {traces.kills} for want of memory just then"
    return Outcome(OutcomeKind.OUT_OF_MEMORY, signal.SIGKILL, "; ".join(filter(None, [said, had])))
