"""The dialogs of a worker: opened and ended by events or by the screen, numbered, counted, announced.

Hermes shows one at a time; others (a `/background` one, a child's) wait in it until that one is over.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.fleet.action import Alert
from orchestrator.fleet.dialog import (
    LONG_COMMAND,
    Dialog,
    End,
    Ended,
    letters,
    probe_of,
    shows,
    without_other,
)
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.prompt import DIALOGS, PromptKind
from orchestrator.fleet.worker import Glance, OpKind, Worker

ENDED_KEPT = 16
SURE = 3.0
"""Seconds for which a screen must show an approval or a question that no event told of."""
ABSENT = 2.5
"""Seconds after which a dialog that an event told of should be on the screen."""
PROMPT = 0.9
"""Seconds within which a first countdown tells the whole of it, to the second."""
ALERT_BLIND = 1.5
"""Seconds after which a dialog is announced although the screen has not shown it."""
BY_EVENT = (PromptKind.APPROVAL, PromptKind.QUESTION, PromptKind.OPEN_QUESTION)


def front(worker: Worker) -> Dialog | None:
    """Return the dialog that stands in the pane."""
    return worker.dialogs[0] if worker.dialogs else None


def by_number(worker: Worker, number: int) -> Dialog | None:
    """Return an open dialog."""
    return next((dialog for dialog in worker.dialogs if dialog.number == number), None)


def heard(pen: Pen, event: Event) -> None:
    """Take in one event, of whichever conversation in this process."""
    match event.name:
        case EventName.APPROVAL if event.data.get("surface") == "cli":
            _open_approval(pen, event)
        case EventName.APPROVAL_END if event.data.get("surface") == "cli":
            _end_told(pen, event, "approval", str(event.data.get("choice") or ""))
        case EventName.TOOL_START if event.data.get("tool") == "clarify":
            _open_question(pen, event)
        case EventName.TOOL_END if event.data.get("tool") == "clarify":
            _end_told(pen, event, "question", "")
        case EventName.REQUEST | EventName.TURN_END | EventName.TURN_START if event.turn:
            for dialog in [d for d in pen.worker.dialogs if d.told and d.turn == event.turn]:
                close(pen, dialog, End.LEFT, time=event.time)
        case EventName.SESSION_RESET | EventName.SESSION_FINALIZE:
            for dialog in pen.worker.dialogs:
                close(pen, dialog, End.LEFT, time=event.time)
        case _:
            pass


def _open_approval(pen: Pen, event: Event) -> None:
    command = str(event.data.get("command", ""))
    description = str(event.data.get("description", ""))
    _open_told(
        pen,
        Dialog(
            number=pen.worker.asked + 1,
            kind="approval",
            text=f"{command}\n({description})" if description else command,
            since=event.time,
            probe=probe_of(command),
            told=True,
            turn=event.turn,
            call=_call(event),
            long=len(command) > LONG_COMMAND,
        ),
    )


def _open_question(pen: Pen, event: Event) -> None:
    choices = tuple(str(choice) for choice in event.data.get("choices") or ())
    text = str(event.data.get("question", ""))
    _open_told(
        pen,
        Dialog(
            number=pen.worker.asked + 1,
            kind="question" if choices else "open_question",
            text=text,
            since=event.time,
            choices=choices,
            probe=probe_of(text),
            told=True,
            turn=event.turn,
            call=_call(event),
            questions=int(event.data.get("questions") or 1),
        ),
    )


def _open_told(pen: Pen, made: Dialog) -> None:
    """Open a dialog by its event; one that the screen showed a moment before is the same."""
    known = front(pen.worker)
    if known is not None and not known.told and known.kind == made.kind and _early(known, made):
        _replace(
            pen,
            replace(made, number=known.number, shown=known.shown, seen=known.seen, alerted=known.alerted),
        )
        return
    _opened(pen, made, behind=True, witness="event")


def _early(known: Dialog, made: Dialog) -> bool:
    return made.probe in letters(known.shown) and made.since - known.since < 2 * SURE


def _call(event: Event) -> str:
    return str(event.data.get("call_id") or "")


def _opened(pen: Pen, dialog: Dialog, *, behind: bool, witness: str) -> None:
    others = pen.worker.dialogs
    pen.set(
        dialogs=(*others, dialog) if behind else (dialog, *others), asked=max(pen.worker.asked, dialog.number)
    )
    said = " ".join(dialog.text.split())[:120]
    pen.note(f"asks a person: {dialog.kind} #{dialog.number}", said, witness=witness, what="transition")


def _replace(pen: Pen, dialog: Dialog) -> None:
    pen.set(dialogs=tuple(dialog if d.number == dialog.number else d for d in pen.worker.dialogs))


def _end_told(pen: Pen, event: Event, kind: str, choice: str) -> None:
    open_ones = [d for d in pen.worker.dialogs if kind in d.kind]
    call = _call(event)
    found = next((d for d in open_ones if call and d.call == call), None)
    if found is None:
        probe = probe_of(str(event.data.get("command", "")))
        found = next((d for d in open_ones if not d.told or not call or not d.call), None)
        found = next((d for d in open_ones if probe and d.probe == probe and d.turn == event.turn), found)
    if found is not None:
        close(pen, found, End.ANSWERED, choice=choice, time=event.time)


def close(pen: Pen, dialog: Dialog, how: End, *, choice: str = "", time: float = 0.0) -> None:
    """End a dialog; one that nobody answered in time is counted."""
    at = time or pen.now
    if (
        how is not End.DIED
        and choice in ("", "deny", "timeout")
        and _too_late(pen.worker, dialog, at, choice)
    ):
        how, choice = End.TIMED_OUT, ""
    ended = Ended(dialog.number, dialog.kind, at, how, choice)
    pen.set(
        dialogs=tuple(d for d in pen.worker.dialogs if d.number != dialog.number),
        ended=(*pen.worker.ended, ended)[-ENDED_KEPT:],
        timed_out=pen.worker.timed_out + (how is End.TIMED_OUT),
    )
    pen.note(f"{dialog.kind} #{dialog.number} {ended}", _reason(ended), witness="event", what="transition")


def _reason(ended: Ended) -> str:
    return "nobody answered it in time" if ended.how is End.TIMED_OUT else "it no longer stands open"


def _too_late(worker: Worker, dialog: Dialog, at: float, choice: str) -> bool:
    """Whether it ended when its time was up and not by our key."""
    if choice == "timeout":
        return True
    op = worker.op
    ours = op is not None and op.kind is OpKind.ANSWER and op.flight is not None
    if ours and op is not None and op.flight is not None and op.flight.dialog == dialog.number:
        return op.step not in ("answering", "pressed") and _up(dialog, at)
    return _up(dialog, at)


def _up(dialog: Dialog, at: float) -> bool:
    return bool(dialog.deadline) and at >= dialog.deadline - dialog.slack


def glanced(pen: Pen) -> None:
    """Compare the dialogs that are known with a new reading of the screen."""
    glance = pen.worker.glance
    if glance is None or pen.worker.life is None or glance.first_run:
        return
    if glance.kind in DIALOGS:
        _shown(pen, glance)
    elif glance.kind in (PromptKind.READY, PromptKind.BUSY, PromptKind.COMMAND):
        _not_shown(pen, glance)


def _shown(pen: Pen, glance: Glance) -> None:
    fitting = next((d for d in pen.worker.dialogs if shows(d, glance)), None)
    if fitting is not None:
        if fitting is front(pen.worker) or pen.worker.steady():
            _seen(pen, fitting, glance)
        return
    sure = pen.worker.steady(SURE if pen.worker.talk.plugin and glance.kind in BY_EVENT else 0.3)
    if not sure:
        return
    for known in pen.worker.dialogs:
        if not known.told or known.questions > 1:
            close(pen, known, End.LEFT)
    fresh = Dialog(
        number=pen.worker.asked + 1,
        kind=str(glance.kind),
        text=glance.dialog,
        since=pen.worker.steady_since,
    )
    _opened(pen, fresh, behind=False, witness="screen")
    _seen(pen, fresh, glance)


def _seen(pen: Pen, dialog: Dialog, glance: Glance) -> None:
    """Note what the screen tells of a dialog, and that it is the one in the pane."""
    choices = without_other(glance.kind, glance.choices)
    if glance.kind is PromptKind.OPEN_QUESTION or not choices:
        choices = dialog.choices
    deadline, slack = _deadline(dialog, glance)
    newer = replace(
        dialog,
        shown=glance.dialog,
        seen=dialog.seen or glance.at,
        choices=choices,
        left=glance.left if dialog.left < 0 or glance.left < 0 else min(dialog.left, glance.left),
        deadline=deadline,
        slack=slack,
    )
    others = tuple(d for d in pen.worker.dialogs if d.number != dialog.number)
    pen.set(dialogs=(newer, *others))
    for other in others:
        if not other.told:
            close(pen, other, End.LEFT)


def _deadline(dialog: Dialog, glance: Glance) -> tuple[float, float]:
    """Return when its time is up, and by how much that may be too late.

    The countdown is cut to whole seconds and drawn once a second.
    """
    if glance.left < 0:
        return dialog.deadline, dialog.slack
    latest = glance.at + glance.left + 1
    if dialog.left < 0 and dialog.told and glance.at - dialog.since <= PROMPT:
        return dialog.since + glance.left + 1, 0.3
    if dialog.left < 0:
        return latest, 2.0
    return min(dialog.deadline, latest), dialog.slack


def _not_shown(pen: Pen, glance: Glance) -> None:
    for dialog in pen.worker.dialogs:
        if dialog.told:
            gone = pen.worker.steady(1.5) and glance.at - dialog.since >= ABSENT
        else:
            gone = pen.worker.steady()
        if gone:
            close(pen, dialog, End.LEFT, time=glance.at)


def died(pen: Pen) -> None:
    """End all dialogs: the process that showed them is gone."""
    for dialog in pen.worker.dialogs:
        close(pen, dialog, End.DIED)


def announce(pen: Pen) -> None:
    """Tell people of the dialog in the pane, once."""
    dialog = front(pen.worker)
    if dialog is None or dialog.alerted or not (dialog.seen or pen.now - dialog.since >= ALERT_BLIND):
        return
    _replace(pen, replace(dialog, alerted=True))
    pen.act(Alert, "a person is needed", dialog=dialog)


def unseen(worker: Worker) -> bool:
    """Whether an event told of a dialog that the screen has not shown yet."""
    dialog = front(worker)
    return dialog is not None and not dialog.seen
