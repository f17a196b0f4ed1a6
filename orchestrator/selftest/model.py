"""Faults of the endpoint: the rehearsal model deals them to the next requests."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from orchestrator.fleet.events import EventName
from orchestrator.selftest.fault import Blow, Fault
from orchestrator.selftest.kills import endpoint
from orchestrator.selftest.stage import Stage

REFUSING = 3.0
"""Seconds for which nobody listens on the endpoint's port."""
HOLD_LIMIT = 0.5
"""Seconds within which the port must be free; the endpoint is started again within 1."""
BOTHERED = 3.0
"""Seconds after which a turn that hangs is interrupted, as a person does."""


def _dealt(stage: Stage, victim: str, heal: Callable[[], None], **fault: Any) -> Blow | str:
    stage.until(stage.through, 60)  # the fault is for this worker's next request alone
    before = stage.reported(victim, EventName.REQUEST_ERROR)
    stage.rehearse("faults", **fault)
    stage.send(victim)
    return Blow(
        noticed=lambda: stage.reported(victim, EventName.REQUEST_ERROR) > before,
        heal=heal,
        recovered=stage.through,
    )


def status(code: int, **more: Any) -> Callable[[Stage, str], Blow | str]:
    """Return the fault in which the endpoint answers with an HTTP error, once."""

    def strike(stage: Stage, victim: str) -> Blow | str:
        def lift() -> None:
            stage.rehearse("reset")
            if code == 401:  # held until a person acts
                stage.until(lambda: bool(stage.entry(victim).get("word") == "held"), 20)
                stage.fleet.start([victim], wait=False)

        return _dealt(stage, victim, lift, status=code, **more)

    return strike


def refused(stage: Stage, victim: str) -> Blow | str:
    """The endpoint is killed, and its port is held for 3 s by a socket on which nobody listens."""
    before = stage.reported(victim, EventName.REQUEST_ERROR)
    stack, port = ExitStack(), stage.port()
    blow = endpoint(stage, victim)
    if isinstance(blow, str):
        return blow
    holder = stack.enter_context(socket.socket())
    if stage.until(lambda: _held(holder, port), HOLD_LIMIT) is None:
        stack.close()
        return "the endpoint was back before its port could be held"
    stage.send(victim)

    def let_go() -> None:
        time.sleep(REFUSING)
        stack.close()

    return Blow(
        lambda: stage.reported(victim, EventName.REQUEST_ERROR) > before,
        heal=let_go,
        recovered=lambda: stage.answers() and stage.through(),
        at=blow.at,
    )


def _held(holder: socket.socket, port: int) -> bool:
    """Take the port without listening; a process that was killed keeps it for some milliseconds.

    Connections in TIME_WAIT are passed over by SO_REUSEADDR, which is then taken back: nobody shares the port.
    """
    with suppress(OSError):
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        return True
    return False


def hang(stage: Stage, victim: str) -> Blow | str:
    """The endpoint takes a request and says nothing; the turn is interrupted after 3 s."""
    stage.until(stage.through, 60)
    stage.rehearse("faults", malformed="hang")
    stage.send(victim)

    def interrupt() -> None:
        time.sleep(BOTHERED)
        stage.rehearse("reset")
        stage.fleet.worker(victim).interrupt(sender="selftest")

    return Blow(
        noticed=lambda: stage.entry(victim).get("word") == "busy", heal=interrupt, recovered=stage.through
    )


def cut(stage: Stage, victim: str) -> Blow | str:
    """The connection ends in the middle of an answer; Hermes asks again by itself."""
    stage.until(stage.through, 60)
    stage.rehearse("faults", cut=True)
    stage.send(victim)
    return Blow(recovered=stage.through)


FAULTS = (
    Fault("http-401", "the endpoint answers 401; `hermux start` after the cause is gone", status(401)),
    Fault("http-429", "the endpoint answers 429 with Retry-After: 2", status(429, retry_after=2)),
    Fault("http-500", "the endpoint answers 500", status(500)),
    Fault("http-503", "the endpoint answers 503", status(503)),
    Fault("refused", "nobody listens at the endpoint for 3 s", refused),
    Fault("hang", "the endpoint takes a request and says nothing", hang),
    Fault("cut-stream", "the connection ends in the middle of an answer", cut),
)
