"""What follows from the end of an attempt that nobody asked for: it is started again, stopped or held. Pure."""

from __future__ import annotations

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
