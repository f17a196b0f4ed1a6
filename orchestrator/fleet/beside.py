"""A person's hands at the prompt while a message is being delivered: who came first, and what is put back."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.fleet.events import Event
from orchestrator.fleet.message import MessageKind, Method
from orchestrator.fleet.observation import Acted
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Flight, Glance, Operation, OpKind

TAKE_WITHIN = 60.0
QUIET = 2.0
"""Seconds without a key from a person before text or Enter is typed; tmux tells whole seconds only. The hands
ask tmux to type only if there still was none, so nothing slips in between a look and a key."""


def quiet(glance: Glance) -> bool:
    """Whether no person has pressed a key in an attached terminal lately."""
    return not -QUIET < glance.at - glance.keyed < QUIET


def acted(pen: Pen, seen: Acted) -> None:
    """Go back a step where a person's key came before ours: nothing was typed then."""
    op = pen.worker.op
    ours = op is not None and op.kind is OpKind.DELIVER and op.token == seen.token
    if seen.ok or op is None or op.flight is None or not ours:
        return
    if op.step == "typing":
        pen.end()
        pen.put_back(op.flight)
        pen.note(f"message {op.message} put back", "a person is typing", witness="screen")
    elif op.step == "entered" and not op.tries:
        pen.step("typed", TAKE_WITHIN, flight=replace(op.flight, entered=False))


def make_way(pen: Pen) -> None:
    """Put a message back for keys that a person asks for while other text stands beside it in the prompt.

    Enter was not pressed, so Hermes cannot have it.
    """
    op = pen.worker.op
    asked = any(head.kind in (MessageKind.KEYS, MessageKind.INTERRUPT) for head in pen.worker.queue)
    if asked and op is not None and op.flight and op.step in ("typing", "typed") and pen.worker.draft:
        pen.end()
        pen.put_back(op.flight)
        pen.note(f"message {op.message} put back", "a person works at the prompt", witness="screen")


def overtaken(pen: Pen, op: Operation, flight: Flight, event: Event) -> None:
    """A person sent something before our Enter: with our text in it, or, where that is shorter, surely without."""
    pen.end()
    size = len("".join(flight.line.split()).encode())
    if op.step == "typed" and flight.method is Method.PASTE and int(event.data.get("bytes") or size) < size:
        pen.put_back(flight)
        pen.note(f"message {op.message} put back", "a person wiped it and sent another text", witness="event")
        return
    pen.move(op.message, error="a person pressed Enter while it was being typed: look before sending again")
    pen.note(f"message {op.message} failed", "a turn with other text began", witness="event")
