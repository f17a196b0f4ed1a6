"""A person's answer to one dialog: take → look → answering → pressed, or with a text look → filling → filled → …

Invariants: a key is pressed only while a fresh, steady screen shows the very dialog that the answer names,
with no event after it and time enough left; the hands look once more in the same breath. What is to be
pressed is recorded before. A key that may have been pressed is pressed again only if the same dialog is
seen to stand there still, and events would have told of its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.fleet import people
from orchestrator.fleet.action import Paste, Press, Take
from orchestrator.fleet.beside import quiet
from orchestrator.fleet.dialog import Dialog, End, approval_order, shows
from orchestrator.fleet.observation import Acted
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.prompt import PromptKind
from orchestrator.fleet.worker import Flight, Glance, Head, Operation, OpKind, Worker

TAKE_WITHIN = 5.0
LOOK_FOR = 6.0
SHOW_WITHIN = 10.0
CONFIRM_WITHIN = 10.0
AGAIN_AFTER = 1.5
ENTER_AFTER = 0.2
MARGIN, TEXT_MARGIN = 2.0, 4.0
"""Seconds that must be left: when the time is up Hermes goes on, and its next dialog may stand there."""
TRIES = 4
REFUSED = "refused: "
"""Leads an error that says: nothing was typed."""
APPROVALS = ("once", "session", "always", "deny")
PICK = "choice"
TEXT = "text"
WIPE = ("C-u",) * 10


@dataclass(frozen=True, slots=True)
class Plan:
    """What answers a dialog now: `key`; `text` = after it the text is typed; `why` = nothing can."""

    key: str = ""
    text: bool = False
    why: str = ""


def may_begin(worker: Worker) -> bool:
    """Whether an answer may be taken up now: only a delivery lets itself be put aside."""
    return worker.op is None or worker.op.kind is OpKind.DELIVER


def begin(pen: Pen, head: Head) -> None:
    """Take up an answer; a delivery stands aside until it is given."""
    aside = pen.worker.op
    op = Operation(
        OpKind.ANSWER,
        "take",
        pen.now,
        pen.now + TAKE_WITHIN,
        message=head.id,
        message_kind=head.kind,
    )
    pen.set(op=op, parked=aside)
    _take(pen)


def _take(pen: Pen) -> None:
    op = pen.worker.op
    assert op is not None
    token = pen.act(Take, "a person answers a dialog", message=op.message)
    pen.step("take", TAKE_WITHIN, token=token)


def taken(pen: Pen, flight: Flight) -> None:
    """Look at the screen for the dialog that the answer names."""
    pen.step("look", LOOK_FOR, flight=flight)


def advance(pen: Pen) -> None:
    """Do what the step calls for."""
    op = pen.worker.op
    assert op is not None
    flight = op.flight
    if op.step == "take":
        if pen.now >= op.deadline:
            _take(pen)  # the answer died with the supervisor that asked
    elif flight is None:
        pen.end()
    elif op.step in ("answering", "pressed"):
        _confirm(pen, op, flight)
    else:
        _before(pen, op, flight)


def _before(pen: Pen, op: Operation, flight: Flight) -> None:
    """Go on towards the key, as long as the dialog stands in the pane."""
    dialog = people.by_number(pen.worker, flight.dialog)
    if dialog is None:
        if flight.entered:
            _ended(pen, op, flight)
        else:
            _give_up(pen, flight, _gone(pen.worker, flight.dialog))
        return
    left = dialog.deadline - pen.now if dialog.deadline else MARGIN + TEXT_MARGIN
    if left < (MARGIN if flight.choice != TEXT or op.step == "filled" else TEXT_MARGIN):
        _give_up(pen, flight, f"only {max(0.0, left):.0f} s were left to it")
        return
    glance = pen.worker.glance
    if glance is not None and glance.at > op.since and not glance.in_mode and shows(dialog, glance):
        _step(pen, op, flight, dialog, glance)
    if pen.worker.op is op and pen.now >= op.deadline:
        _give_up(pen, flight, _unseen(pen.worker, dialog))


def _step(pen: Pen, op: Operation, flight: Flight, dialog: Dialog, glance: Glance) -> None:
    match op.step:
        case "look" if pen.worker.steady() and quiet(glance):
            _look(pen, flight, dialog, glance)
        case "other" if glance.kind is PromptKind.OPEN_QUESTION:
            _fill(pen, flight, glance)
        case "filling" if _shows_text(glance, flight):
            pen.step("filled", SHOW_WITHIN)
        case "filled" if pen.now - op.since >= ENTER_AFTER and _shows_text(glance, flight):
            _press(pen, flight, "Enter", glance, "the dialog shows exactly the answer")
        case _:
            pass


def _look(pen: Pen, flight: Flight, dialog: Dialog, glance: Glance) -> None:
    if dialog is not people.front(pen.worker):
        return
    plan = plan_for(dialog, glance, flight)
    if plan.why:
        _give_up(pen, flight, plan.why)
    elif plan.text and not plan.key:
        _fill(pen, flight, glance)
    elif plan.text:
        pen.step("other", SHOW_WITHIN)
        pen.act(Press, "the answer is none of the choices", keys=(plan.key,), guard=glance)
    else:
        _press(pen, flight, plan.key, glance, "the screen shows the very dialog that was answered")


def plan_for(dialog: Dialog, glance: Glance, flight: Flight) -> Plan:
    """Return the key that gives this answer to the dialog as it stands on the screen."""
    kind, choice = glance.kind, flight.choice
    if kind in (PromptKind.SUDO, PromptKind.SECRET):
        return Plan(why="a password is only ever typed by a person, in the pane")
    if (choice in APPROVALS) != (kind in (PromptKind.APPROVAL, PromptKind.CONFIRM)):
        return Plan(why=f"it is of the kind {dialog.kind}")
    if kind is PromptKind.APPROVAL:
        return _numbered(approval_order(glance.choices, long=dialog.long), choice)
    if kind is PromptKind.CONFIRM:
        order = {2: ("once", "deny"), 3: ("once", "always", "deny")}.get(len(glance.choices), ())
        return _numbered(order, choice)
    return _question(glance, flight)


def _numbered(order: tuple[str, ...], choice: str) -> Plan:
    if not order:
        return Plan(why="its choices cannot be told apart")
    if choice not in order:
        offered = ", ".join(each for each in order if each in APPROVALS)
        return Plan(why=f"it does not offer {choice!r}, only {offered}")
    return Plan(key=str(order.index(choice) + 1))


def _question(glance: Glance, flight: Flight) -> Plan:
    asks = glance.kind is PromptKind.QUESTION
    if flight.choice == TEXT:
        if glance.typed and not _shows_text(glance, flight):
            return Plan(why="a person is typing an answer there")
        if asks and len(glance.choices) > 9:
            return Plan(why="it has too many choices for a key")
        return Plan(key=str(len(glance.choices)) if asks else "", text=True)
    number = int(flight.line)
    last = len(glance.choices) - 1
    if not asks:
        return Plan(why="it has no choices to pick from")
    if not 1 <= number <= min(last, 9):
        return Plan(why=f"it has the choices 1 to {min(last, 9)}")
    return Plan(key=str(number))


def _fill(pen: Pen, flight: Flight, glance: Glance) -> None:
    """Type the text into the dialog's prompt, which must be empty; Enter comes later."""
    if _shows_text(glance, flight):
        pen.step("filled", SHOW_WITHIN)
    elif glance.typed:
        _give_up(pen, flight, "a person is typing an answer there")
    else:
        pen.step("filling", SHOW_WITHIN)
        pen.act(
            Paste,
            "the dialog waits for a text, and its prompt is empty",
            line=flight.line,
            message=flight.message,
        )


def _shows_text(glance: Glance, flight: Flight) -> bool:
    shown, ours = "".join(glance.own.split()), "".join(flight.line.split())
    return glance.kind is PromptKind.OPEN_QUESTION and shown == ours


def _press(pen: Pen, flight: Flight, key: str, glance: Glance, reason: str) -> None:
    pen.step("answering", CONFIRM_WITHIN, flight=replace(flight, entered=True), acted=pen.now)
    token = pen.act(Press, reason, keys=(key,), guard=glance)
    pen.change(token=token)
    said = "typed" if key == "Enter" else flight.choice if flight.choice != PICK else f"choice {flight.line}"
    pen.note(f"answering #{flight.dialog}: {said}", "asked for by a person", witness="screen")


def acted(pen: Pen, seen: Acted) -> None:
    """The key was pressed, or was not because the screen had changed."""
    op = pen.worker.op
    if op is None or op.kind is not OpKind.ANSWER or op.step != "answering" or op.token != seen.token:
        return
    if seen.ok:
        pen.step("pressed", CONFIRM_WITHIN)
    elif op.tries < TRIES:
        untouched = replace(op.flight, entered=False) if op.flight else None
        pen.step("look", LOOK_FOR, tries=op.tries + 1, flight=untouched)
    elif op.flight is not None:
        _give_up(pen, replace(op.flight, entered=False), seen.detail or "the screen kept changing")


def _confirm(pen: Pen, op: Operation, flight: Flight) -> None:
    """See what came of the key; without a word that it was pressed, look again."""
    worker = pen.worker
    dialog = people.by_number(worker, flight.dialog)
    if dialog is None:
        _ended(pen, op, flight)
    elif op.step == "answering" and worker.talk.plugin and pen.now - op.acted >= AGAIN_AFTER:
        pen.step("look", LOOK_FOR, tries=op.tries + 1)  # a supervisor was killed before it could press
    elif pen.now >= op.deadline:
        _fail(
            pen,
            flight,
            f"the key was pressed, and after {CONFIRM_WITHIN:.0f} s the dialog still stands there",
        )


def _ended(pen: Pen, op: Operation, flight: Flight) -> None:
    ended = next((e for e in pen.worker.ended if e.number == flight.dialog), None)
    wanted = flight.choice if flight.choice in APPROVALS else ""
    if ended is None or ended.how in (End.TIMED_OUT, End.DIED):
        _fail(pen, flight, _gone(pen.worker, flight.dialog))
    elif wanted and ended.choice and ended.choice != wanted:
        _fail(pen, flight, f"#{flight.dialog} {ended}: by somebody else, before the key arrived")
    elif op.step == "answering" and not (wanted and ended.choice == wanted):
        _fail(
            pen, flight, f"in doubt: #{flight.dialog} {ended}, and nothing shows whether this answer did it"
        )
    else:
        pen.end()
        pen.finish(flight)
        pen.note(f"#{flight.dialog} answered", str(ended), witness="event" if ended.choice else "screen")


def _gone(worker: Worker, number: int) -> str:
    ended = next((e for e in worker.ended if e.number == number), None)
    return f"#{number} {ended}" if ended is not None else f"#{number} is not open"


def _unseen(worker: Worker, dialog: Dialog) -> str:
    first = people.front(worker)
    if first is not None and first is not dialog:
        return f"#{first.number} stands before it in the pane"
    if worker.glance is not None and worker.glance.in_mode:
        return "the pane is in copy mode and takes no keys (q leaves it)"
    if worker.glance is not None and not quiet(worker.glance):
        return "a person is typing in the pane"
    return f"the screen did not show it steadily for {LOOK_FOR:.0f} s"


def _give_up(pen: Pen, flight: Flight, why: str) -> None:
    """Refuse: the key that answers was not pressed. A text of ours that stands in the prompt is wiped."""
    glance = pen.worker.glance
    left = glance is not None and flight.choice == TEXT and glance.own and _squashed(glance.own, flight.line)
    if left and pen.worker.op is not None and pen.worker.op.step in ("filling", "filled"):
        pen.act(Press, "the answer was not given: its text goes", keys=WIPE, guard=glance)
    if flight.entered:  # a supervisor was killed when the key may have been pressed
        _fail(pen, flight, why)
        return
    pen.end()
    pen.move(flight.message, error=REFUSED + why)
    pen.note(f"answer to #{flight.dialog} refused", why, witness="screen")


def _squashed(shown: str, line: str) -> bool:
    return "".join(shown.split()) == "".join(line.split())


def _fail(pen: Pen, flight: Flight, why: str) -> None:
    pen.end()
    pen.move(flight.message, error=why)
    pen.note(f"answer to #{flight.dialog} failed", why, witness="event")
