"""A worker under the pen: the value as changed so far, and the actions decided so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from orchestrator.fleet.action import Action, MoveMessage, Note
from orchestrator.fleet.admission import Room
from orchestrator.fleet.worker import Decision, Flight, Head, Move, Operation, OpKind, Worker

A = TypeVar("A", bound=Action)
DECISIONS_KEPT = 8


class Pen:
    """Local to one call of `decide`; what it writes on are immutable values."""

    def __init__(self, worker: Worker, now: float, room: Room, peers: Mapping[str, Pen]) -> None:
        """`peers` are the pens of the whole fleet, this one among them, in the fleet's order."""
        self.worker = worker
        self.now = now
        self.room = room
        self.actions: list[Action] = []
        self._peers = peers

    def fleet(self) -> dict[str, Worker]:
        """Return all workers as they have been changed so far."""
        return {name: peer.worker for name, peer in self._peers.items()}

    def set(self, **changes: Any) -> None:
        """Replace fields of the worker; one that nothing changes stays the same object."""
        if any(getattr(self.worker, name) != value for name, value in changes.items()):
            self.worker = replace(self.worker, **changes)

    def act(self, kind: type[A], reason: str, **fields: Any) -> int:
        """Decide one action and return its token."""
        token = self.worker.tokens + 1
        self.set(tokens=token)
        self.actions.append(
            kind(worker=self.worker.name, attempt=self.worker.attempt, token=token, reason=reason, **fields)
        )
        return token

    def note(self, text: str, reason: str, *, witness: str = "", what: str = "action") -> None:
        """Write a decision into the journal and among those that `hermux why` shows."""
        decision = Decision(self.now, text, reason, witness)
        self.set(decided=(*self.worker.decided, decision)[-DECISIONS_KEPT:])
        self.act(Note, reason, text=text, what=what, cause=witness)

    def begin(self, kind: OpKind, step: str, seconds: float, **fields: Any) -> None:
        """Begin an operation. A delivery that it pushes aside leaves its message among the flights."""
        self.shelve()
        self.set(op=Operation(kind, step, self.now, self.now + seconds, **fields))

    def step(self, step: str, seconds: float, **changes: Any) -> None:
        """Go to the next step of the running operation."""
        assert self.worker.op is not None
        self.set(
            op=replace(self.worker.op, step=step, since=self.now, deadline=self.now + seconds, **changes)
        )

    def change(self, **changes: Any) -> None:
        """Change the running operation without leaving its step."""
        assert self.worker.op is not None
        self.set(op=replace(self.worker.op, **changes))

    def end(self) -> None:
        """End the running operation; the one that stood aside goes on, with all its time."""
        aside = self.worker.parked
        if aside is not None:
            aside = replace(aside, since=self.now, deadline=self.now + aside.deadline - aside.since)
        self.set(op=aside, parked=None)

    def shelve(self) -> None:
        """Put the message of the running delivery, if any, among the flights, and end the operation.

        An answer fails: its dialog is a matter of this moment.
        """
        for op in (self.worker.op, self.worker.parked):
            if op is not None and op.kind is OpKind.ANSWER:
                self.move(op.message, error="it was pushed aside before it was confirmed: look at the pane")
            elif op is not None and op.flight is not None:
                self.set(flights=(*self.worker.flights, op.flight))
        self.set(op=None, parked=None)

    def finish(self, flight: Flight, *, session: str = "", turn: str = "", seen: str = "") -> None:
        """Decide that Hermes has a message; `seen` is the digest that its event showed."""
        self.move(flight.message, method=str(flight.method), digest=seen, session=session, turn=turn)

    def put_back(self, flight: Flight) -> None:
        """Decide that a message waits again, before those behind it."""
        self.move(flight.message, back=True)
        others = tuple(head for head in self.worker.queue if head.id != flight.message)
        self.set(queue=(Head(flight.message, flight.kind), *others))

    def move(self, message: str, **fields: Any) -> None:
        """Decide where a message's file goes, and remember it until it is known to have gone."""
        self.ask(Move(token=0, message=message, **fields), _move_reason)

    def ask(self, move: Move, reason: Callable[[Move], str]) -> None:
        """Ask for a move, again or for the first time, under a new token."""
        others = tuple(m for m in self.worker.moves if m.message != move.message)
        asked = replace(move, asked=self.now)
        token = self.act(MoveMessage, reason(move), move=asked)
        self.set(moves=(*others, replace(asked, token=token)))


def _move_reason(move: Move) -> str:
    if move.back:
        return "Hermes never had it"
    return move.error or "its receipt came"
