"""Keys and interrupts: what a person asks for beside messages. They overtake texts and outlive no process."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.fleet.action import Press
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Flight, Glance, Operation, OpKind, PromptKind

GONE = "the process that it was meant for has ended"
INTERRUPT_WITHIN = 20.0
INTERRUPT = ("Space", "C-c")
"""C-c at an idle empty prompt would end Hermes; the blank before it makes that a cleared line."""
INTERRUPT_APART = 2.5
"""Seconds between two interrupts: Hermes takes a second C-c within 2 s for a wish to leave."""


def press_keys(pen: Pen, flight: Flight, keys: tuple[str, ...]) -> None:
    """Press what a person asked for, whatever the pane shows."""
    pen.end()
    pen.act(Press, "a person asked for these keys", keys=keys)
    pen.finish(flight)
    pen.note(f"pressed {' '.join(keys)}", "asked for by `hermux keys`")


def interrupt(pen: Pen, flight: Flight) -> None:
    """Stop the running turn: only at a busy, empty prompt; a dialog or a draft refuses it."""
    glance = pen.worker.glance
    recent = glance is not None and pen.now - glance.at < 1.5
    if glance is not None and recent and glance.kind is PromptKind.BUSY and not glance.typed:
        pen.step("pressed", INTERRUPT_WITHIN, flight=replace(flight, entered=True), acted=pen.now)
        pen.set(interrupted=pen.now)
        pen.act(Press, "the turn is running and the prompt is empty", keys=INTERRUPT)
        pen.note("interrupting the turn", "asked for by a person", witness="screen")
        return
    pen.end()
    if glance is not None and glance.kind in (PromptKind.READY,):
        pen.finish(flight)
        pen.note("nothing to interrupt", "no turn is running", witness="screen")
        return
    why = f"the pane shows {glance.kind if glance else 'nothing'}: an interrupt could answer or exit"
    pen.move(flight.message, error=why)
    pen.note("interrupt refused", why, witness="screen")


def pressed(pen: Pen, op: Operation) -> None:
    """Wait for the end of the interrupted turn."""
    glance, flight = pen.worker.glance, op.flight
    if flight is None or glance is None:
        return
    if glance.at > op.acted and glance.kind is PromptKind.READY and pen.worker.steady():
        pen.end()
        pen.finish(flight)
    elif _still_busy(glance, op) and pen.now - op.acted >= INTERRUPT_APART + 0.5:
        pen.set(interrupted=pen.now)
        pen.change(acted=pen.now, tries=op.tries + 1)
        pen.act(Press, "the turn goes on: the C-c was not heard", keys=INTERRUPT)
    elif pen.now >= op.deadline:
        pen.end()
        pen.move(flight.message, error=f"no end of the turn within {INTERRUPT_WITHIN:.0f} s after Space C-c")


def _still_busy(glance: Glance, op: Operation) -> bool:
    fresh = glance.at > op.acted + INTERRUPT_APART
    return fresh and glance.kind is PromptKind.BUSY and not glance.typed.strip() and op.tries < 2


def drop_orders(pen: Pen) -> None:
    """Fail the keys, interrupts and answers that wait: they were meant for the screen that has gone."""
    op = pen.worker.op
    if op is not None and op.kind is OpKind.ANSWER:
        pen.move(
            op.message, error=f"{GONE}; {'the key was pressed' if _pressed(op) else 'nothing was typed'}"
        )
        pen.end()
    for head in pen.worker.queue:
        if head.kind in (MessageKind.KEYS, MessageKind.INTERRUPT, MessageKind.ANSWER):
            pen.move(head.id, error=GONE)
    pen.set(queue=tuple(h for h in pen.worker.queue if h.kind in (MessageKind.TEXT, MessageKind.SLASH)))


def _pressed(op: Operation) -> bool:
    return op.flight is not None and op.flight.entered
