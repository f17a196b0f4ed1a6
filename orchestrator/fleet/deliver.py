"""Delivery of one message: check → take → typing → typed → entered → accepted.

Invariants: text is pasted only into an empty, steady, ready prompt; Enter only while the prompt shows
exactly ours; once Enter may have been pressed the text is never pasted again in this attempt. Each
step is recorded before its key is pressed, so a supervisor that comes back knows what may have
happened. What is neither taken nor refused stays a *flight*: the worker takes no further message
until an event shows it or its dead attempt's own database tells.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.fleet import answer, orders
from orchestrator.fleet.action import Paste, Press, Take
from orchestrator.fleet.beside import TAKE_WITHIN, overtaken, quiet
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.observation import Taken
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.worker import Activity, Flight, Head, Operation, OpKind, PromptKind, Worker

ENTER_AFTER = 0.2
"""Seconds between text and Enter: Hermes takes an Enter within 50 ms of a change for a newline."""
ENTER_AGAIN = 1.0
CHECK_FOR = 5.0
SHOW_WITHIN = 10.0
CLEARED_FOR = 4.0
PASTE_AGAIN = 15.0
"""Hermes 0.19 takes no key for 10 s after a message of one 100 KB line, at a prompt that looks ready."""
WIPE = ("C-u",) * 10
"""Removes a first paste that arrives late: what is queued in the terminal is read in order."""
KEYS_TRIES = 3
SLACK = 1.0
"""Seconds by which two readings of the machine's clock may seem to be out of order."""


def squash(text: str) -> str:
    """Drop all white space: the prompt wraps lines where it likes."""
    return "".join(text.split())


def next_head(worker: Worker, activity: Activity, now: float) -> Head | None:
    """Return the message that can be taken up now: answers, interrupts and keys first, texts in their order."""
    if worker.life is None:
        return None
    for head in worker.queue:
        if head.kind is MessageKind.ANSWER and answer.may_begin(worker):
            return head
    if worker.op is not None:
        return None
    for head in worker.queue:
        if head.kind is MessageKind.KEYS:
            return head
        if head.kind is MessageKind.INTERRUPT and now - worker.interrupted >= orders.INTERRUPT_APART:
            return head
    texts = [head for head in worker.queue if head.kind in (MessageKind.TEXT, MessageKind.SLASH)]
    free = activity in (Activity.READY, Activity.BACKGROUND) and not closed(worker)
    return texts[0] if texts and free else None


def closed(worker: Worker) -> str:
    """Return why no message is taken up, "" if the intake is open."""
    if worker.pause:
        return worker.pause
    if worker.draining:
        return "draining: it stops after what it is doing"
    if worker.flights:
        return f"in doubt: {worker.flights[0].message} was entered, and nothing shows whether it was taken"
    glance = worker.glance
    if glance is not None and glance.in_mode:
        return "copy mode: the pane takes no keys until someone leaves it (q)"
    if worker.draft:
        return f"draft: the prompt holds text that a person typed ({worker.draft[:40]!r})"
    return ""


def begin(pen: Pen, head: Head) -> None:
    """Take up a message."""
    if head.kind is MessageKind.ANSWER:
        answer.begin(pen, head)
        return
    kind = {MessageKind.KEYS: OpKind.KEYS, MessageKind.INTERRUPT: OpKind.INTERRUPT}.get(
        head.kind, OpKind.DELIVER
    )
    pen.begin(kind, "check", CHECK_FOR, message=head.id, message_kind=head.kind)
    if kind is OpKind.KEYS:
        _take(pen)


def taken(pen: Pen, seen: Taken) -> None:
    """Go on with a message that lies in `cur` now."""
    op = pen.worker.op
    if op is None or op.step != "take" or op.message != seen.message:
        return
    pen.set(queue=tuple(head for head in pen.worker.queue if head.id != seen.message))
    if seen.problem:
        pen.end()
        pen.move(seen.message, error=seen.problem)
        pen.note(f"message {seen.message} failed", seen.problem)
        return
    flight = Flight(
        seen.message,
        seen.kind,
        seen.method,
        seen.line,
        seen.digest,
        pen.worker.talk.offset,
        pen.now,
        dialog=seen.dialog,
        choice=seen.choice,
    )
    match op.kind:
        case OpKind.ANSWER:
            answer.taken(pen, flight)
        case OpKind.KEYS:
            orders.press_keys(pen, flight, seen.keys)
        case OpKind.INTERRUPT:
            orders.interrupt(pen, flight)
        case _:
            _paste(pen, flight)


def advance(pen: Pen) -> None:
    """Do what the running step of a delivery, interrupt or keys operation calls for."""
    op = pen.worker.op
    assert op is not None
    match op.step:
        case "check":
            _check(pen, op)
        case "take" if pen.now >= op.deadline:
            _take(pen)  # the answer died with the supervisor that asked
        case "typing":
            _typing(pen, op)
        case "typed":
            _typed(pen, op)
        case "entered":
            _entered(pen, op)
        case "pressed":
            orders.pressed(pen, op)
        case "accepted" if pen.now >= op.deadline and not pen.worker.talk.busy and op.flight:
            pen.end()
            pen.finish(op.flight)
        case _:
            pass


def _take(pen: Pen) -> None:
    op = pen.worker.op
    assert op is not None
    token = pen.act(Take, "its turn has come and the worker can take it", message=op.message)
    pen.step("take", CHECK_FOR, token=token)


def _check(pen: Pen, op: Operation) -> None:
    glance = pen.worker.glance
    fresh = glance is not None and glance.at > op.since
    if fresh and op.kind is OpKind.INTERRUPT:
        _take(pen)
    elif fresh and pen.worker.steady() and glance is not None and glance.kind is PromptKind.READY:
        if glance.typed or glance.in_mode:
            pen.end()
        elif quiet(glance):
            _take(pen)
        elif pen.now >= op.deadline:
            pen.end()
    elif pen.now >= op.deadline:
        pen.end()


def _paste(pen: Pen, flight: Flight) -> None:
    glance = pen.worker.glance
    if glance is None or glance.kind is not PromptKind.READY or glance.typed or glance.in_mode:
        pen.end()
        pen.put_back(flight)  # time has passed since the check: a supervisor was killed in between
        return
    pen.step("typing", SHOW_WITHIN, flight=flight, acted=pen.now)
    why = f"prompt empty and steady, by {flight.method}"
    pen.change(token=pen.act(Paste, why, line=flight.line, message=flight.message, keyed=glance.keyed))
    pen.note(f"typing message {flight.message} ({flight.method})", "ready, no draft", witness="screen")


def shows_ours(worker: Worker, flight: Flight) -> bool:
    """Whether the prompt shows exactly our line."""
    glance = worker.glance
    return (
        glance is not None
        and glance.kind is PromptKind.READY
        and not glance.in_mode
        and squash(glance.own) == squash(flight.line)
    )


def _typing(pen: Pen, op: Operation) -> None:
    glance, flight = pen.worker.glance, op.flight
    if glance is None or flight is None or glance.at <= op.since:
        return
    if glance.kind is PromptKind.READY and squash(flight.line) in squash(glance.typed):
        pen.step("typed", TAKE_WITHIN)  # perhaps beside what a person typed: Enter waits until it is alone
        return
    empty = glance.kind is PromptKind.READY and not glance.typed and pen.worker.steady(1.0) and quiet(glance)
    if empty and pen.now - op.acted >= PASTE_AGAIN:
        if op.tries >= KEYS_TRIES:
            pen.end()
            pen.put_back(flight)
            pen.note(f"message {flight.message} put back", "the prompt never showed it", witness="screen")
            return
        pen.change(acted=pen.now, tries=op.tries + 1)
        pen.act(Press, "whatever of the first paste may still come", keys=WIPE)
        pen.act(
            Paste, "the paste never arrived, no Enter was pressed", line=flight.line, message=flight.message
        )


def _typed(pen: Pen, op: Operation) -> None:
    glance, flight = pen.worker.glance, op.flight
    if flight is None or glance is None or pen.now - op.since < ENTER_AFTER:
        return
    if shows_ours(pen.worker, flight) and glance.at > op.since and quiet(glance):
        entered = replace(flight, entered=True)
        pen.step("entered", TAKE_WITHIN, flight=entered, tries=0, acted=pen.now)
        why = "the prompt shows exactly the message, and no person types"
        pen.change(token=pen.act(Press, why, keys=("Enter",), guard=glance))
    elif _cleared(pen.worker, op) and pen.now >= op.since + CLEARED_FOR:
        pen.end()
        pen.put_back(flight)
        pen.note(f"message {flight.message} put back", "a person cleared the prompt", witness="screen")


def _cleared(worker: Worker, op: Operation) -> bool:
    glance = worker.glance
    return (
        glance is not None
        and glance.at > op.since
        and glance.kind is PromptKind.READY
        and not glance.typed
        and worker.steady(1.0)
    )


def _entered(pen: Pen, op: Operation) -> None:
    worker, flight = pen.worker, op.flight
    if flight is None or worker.glance is None:
        return
    fresh = worker.glance.at > op.acted
    ours = shows_ours(worker, flight)
    again = fresh and ours and quiet(worker.glance) and pen.now - op.acted >= ENTER_AGAIN
    if again and op.tries < KEYS_TRIES * 3:
        why = "the message still stands in the prompt: Enter was not taken"
        pen.change(acted=pen.now, tries=op.tries + 1)
        pen.change(token=pen.act(Press, why, keys=("Enter",), guard=worker.glance))
    elif fresh and not ours and _screen_is_enough(worker, flight):
        pen.end()
        pen.finish(flight)
        pen.note(f"message {flight.message} taken", "it left the prompt", witness="screen")
    elif pen.now >= op.deadline:
        pen.shelve()
        pen.note(f"message {flight.message} is in doubt", "entered, and no event shows it", witness="event")


def _screen_is_enough(worker: Worker, flight: Flight) -> bool:
    """A slash command has no event, and without the plugin nothing has: then the prompt decides."""
    if flight.kind is MessageKind.SLASH:
        return True
    return not worker.talk.plugin and worker.glance is not None and worker.glance.kind is PromptKind.BUSY


def heard(pen: Pen, event: Event) -> None:
    """Match an event against what is on its way."""
    if event.name not in (EventName.TURN_START, EventName.REQUEST) or not event.main:
        return
    seen = str(event.data.get("sha256", ""))
    for flight in _on_its_way(pen.worker):
        if event.offset > flight.offset and event.time >= flight.since - SLACK and seen == flight.digest:
            _seen(pen, flight, event, seen)
            return
    op = pen.worker.op
    if event.name is EventName.TURN_START and op is not None and op.flight and op.step in ("typing", "typed"):
        overtaken(pen, op, op.flight, event)


def _seen(pen: Pen, flight: Flight, event: Event, seen: str) -> None:
    op = pen.worker.op
    running = op is not None and op.flight is not None and op.flight.message == flight.message
    aside = pen.worker.parked
    if event.name is EventName.TURN_START:
        if running:
            pen.step("accepted", TAKE_WITHIN)
        return
    if running:
        pen.end()
    elif aside is not None and aside.flight is not None and aside.flight.message == flight.message:
        pen.set(parked=None)
    pen.set(flights=tuple(f for f in pen.worker.flights if f.message != flight.message))
    pen.finish(flight, session=event.session, turn=event.turn, seen=seen)
    pen.note(
        f"message {flight.message} taken",
        "Hermes asked the model with exactly this message",
        witness="event",
    )


def _on_its_way(worker: Worker) -> tuple[Flight, ...]:
    running = (op.flight for op in (worker.op, worker.parked) if op is not None and op.flight is not None)
    return (*worker.flights, *(flight for flight in running if flight.kind is not MessageKind.ANSWER))


def settle(pen: Pen, stored: dict[str, str], problem: str = "") -> bool:
    """Decide the flights of a dead attempt; return whether Hermes holds one that it may not have answered.

    With a `problem` the database gave no answer: what may have been entered fails, for sending it
    again could double it.
    """
    held = False
    for flight in pen.worker.flights:
        if flight.kind is not MessageKind.TEXT:
            pen.finish(flight) if flight.entered else pen.move(flight.message, back=True)
        elif flight.message in stored:
            held = True
            pen.finish(flight, session=stored[flight.message], seen=flight.digest)
            pen.note(f"message {flight.message} taken", "it stands in the database", witness="process")
        elif problem and flight.entered:
            why = f"in doubt: {problem}; read the transcript before you send it again"
            pen.move(flight.message, error=why)
            pen.note(f"message {flight.message} failed", why, witness="process")
        else:
            pen.move(flight.message, back=True)
            pen.note(f"message {flight.message} put back", "the dead attempt never had it", witness="process")
    pen.set(flights=())
    return held


__all__ = ["advance", "begin", "closed", "heard", "next_head", "settle", "taken"]
