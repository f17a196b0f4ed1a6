"""What people are asked, and their answers: every dialog has an id, and an answer names one.

An answer is a message to the worker (`MessageKind.ANSWER`); the supervisor presses the key, only while that
very dialog stands in the pane, and says what came of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.errors import TimedOut, UsageError, WorkerFailed
from orchestrator.store import inbox as store_inbox

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.api.worker import Worker

APPROVALS = ("once", "session", "always")
HIDDEN = ("sudo", "secret")
REFUSED = "refused: "
"""Leads the error of an answer for which nothing was typed; see `fleet.answer`."""
CONFIRM_WITHIN = 40.0
"""Seconds after which waiting for a confirmation ends; the supervisor gives up before."""
TARGET = re.compile(r"(?P<worker>[^#]*)(?:#(?P<number>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of an answer."""

    id: str
    """The dialog, e.g. `coder-1#3`."""
    worker: str
    kind: str
    answer: str
    """once, session, always, deny, the choice or the text."""
    message: str
    """Id of the message that carried it."""
    place: str
    """Where that message lies: done = confirmed; new or cur = not waited for."""
    reason: str = ""
    """Id of the message with the reason of a denial, queued after it."""


def asked(fleet: Fleet) -> list[dict[str, Any]]:
    """Return every open dialog of the fleet, the longest open first; times are seconds since the epoch."""
    found = []
    for name, worker in fleet.picture().workers.items():
        found += [{"worker": name, **each} for each in worker.get("dialogs") or ()]
    return sorted(found, key=lambda each: float(each.get("since") or 0))


def undelivered(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the messages that wait or are being delivered, and why those that wait do so."""
    picture = fleet.picture()
    found = []
    for worker in fleet.workers():
        entry = picture.workers.get(worker.name) or {}
        for message in worker.messages():
            found.append({"worker": worker.name, **message, "waits_for": _waits_for(entry, message["place"])})
    return found


def _waits_for(worker: dict[str, Any], place: str) -> str:
    if place == "cur":
        return "being delivered"
    if worker.get("waiting"):
        return f"{worker['waiting'].get('id')} is to be answered first"
    why = worker.get("intake_why") or worker.get("why")
    return f"the worker is {worker.get('word')}" + (f": {why}" if why else "")


def approve(
    fleet: Fleet, target: str, choice: str = "once", *, wait: bool = True, sender: str = "api"
) -> Answered:
    """Allow what a worker asks for; `choice` is once, session or always.

    Raises UsageError when no such dialog is open, it is of another kind or does not offer that;
    WorkerFailed and TimedOut when it was not confirmed.
    """
    if choice not in APPROVALS:
        raise UsageError(f"{choice!r} is no way to approve", hint="one of: once, session, always")
    return _answer(fleet, target, choice, wait=wait, sender=sender)


def deny(fleet: Fleet, target: str, why: str = "", *, wait: bool = True, sender: str = "api") -> Answered:
    """Refuse what a worker asks for. `why` is queued as a message: Hermes' dialog takes no reason."""
    from dataclasses import replace

    from orchestrator.api.order import check_text

    if why:
        check_text(why)
    answered = _answer(fleet, target, "deny", wait=wait, sender=sender)
    if not why:
        return answered
    reason = fleet.worker(answered.worker).send(why, sender=sender)
    return replace(answered, reason=reason)


def answer(
    fleet: Fleet, target: str, text: str = "", *, choice: int = 0, wait: bool = True, sender: str = "api"
) -> Answered:
    """Answer a question by a text or by the number of a choice; raises as `approve` does."""
    if bool(text.strip()) == bool(choice):
        raise UsageError(
            "an answer is a text or a choice", hint="hermux answer W TEXT, or hermux answer W --choice N"
        )
    if choice:
        return _answer(fleet, target, "choice", text=str(choice), wait=wait, sender=sender)
    from orchestrator.api.order import check_text
    from orchestrator.hermes.typing import unanswerable

    bare, _ = check_text(text)
    if why := unanswerable(bare):
        raise UsageError(
            f"the answer cannot be typed into a dialog: {why}",
            hint="answer it shortly, and send the rest: hermux send W --file F",
        )
    return _answer(fleet, target, "text", text=bare, wait=wait, sender=sender)


def parse_target(target: str) -> tuple[str, int]:
    """Return worker and dialog number of `W` or `W#3`; 0 = whichever is open. Raises UsageError."""
    match = TARGET.fullmatch(target)
    assert match is not None
    worker, number = match["worker"], match["number"]
    if number is None:
        return worker, 0
    if not worker or not re.fullmatch(r"[1-9][0-9]{0,8}", number):
        raise UsageError(
            f"{target!r} is no id of a dialog", hint="an id is W#N, such as coder-1#3: hermux inbox"
        )
    return worker, int(number)


def _answer(fleet: Fleet, target: str, choice: str, *, text: str = "", wait: bool, sender: str) -> Answered:
    pattern, number = parse_target(target)
    worker = fleet.worker(pattern)
    fleet.ensure_supervisor()
    dialog = _dialog(worker, number)
    _check(dialog, choice, text)
    chosen = _by_text(dialog, text) if choice == "text" else 0
    if chosen:
        choice, text = "choice", str(chosen)
    message = worker.answer_dialog(int(str(dialog["id"]).rsplit("#", 1)[1]), choice, text=text, sender=sender)
    said = _said(dialog, choice, text)
    place = _wait(fleet, worker, dialog, message) if wait else "new"
    return Answered(str(dialog["id"]), worker.name, str(dialog["kind"]), said, message, place)


def _dialog(worker: Worker, number: int) -> dict[str, Any]:
    """Return the open dialog with a number, or the one in the pane; raises UsageError."""
    state = worker.state()
    dialogs: list[dict[str, Any]] = list(state.get("dialogs") or ())
    if not number:
        if not dialogs:
            raise UsageError(
                f"{worker.name} asks nobody anything: it is {state.get('word')}",
                hint="hermux inbox lists what is open",
            )
        return dialogs[0]
    wanted = f"{worker.name}#{number}"
    found = next((each for each in dialogs if each.get("id") == wanted), None)
    if found is None:
        others = ", ".join(str(each.get("id")) for each in dialogs)
        hint = f"open now: {others}" if others else "hermux inbox lists what is open"
        raise UsageError(f"{wanted} is not open", hint=hint)
    return found


def _check(dialog: dict[str, Any], choice: str, text: str) -> None:
    """Raise UsageError for an answer that the dialog cannot take."""
    name, kind, choices = str(dialog["id"]), str(dialog["kind"]), list(dialog.get("choices") or ())
    worker = name.split("#", 1)[0]
    if kind in HIDDEN:
        raise UsageError(
            f"{name} asks for a {'password' if kind == 'sudo' else 'secret'}: hermux only shows it",
            hint=f"type it there yourself: hermux attach {worker}",
        )
    yes_or_no = kind in ("approval", "confirm")
    if yes_or_no and choice in ("choice", "text"):
        raise UsageError(
            f"{name} is no question but an {kind}".replace("an confirm", "a confirmation"),
            hint=f"hermux approve {name}, or hermux deny {name}",
        )
    if not yes_or_no and choice not in ("choice", "text"):
        pick = f"hermux answer {name} --choice N, or " if choices else ""
        raise UsageError(f"{name} is a question", hint=f"{pick}hermux answer {name} TEXT")
    if choice == "choice" and not choices:
        raise UsageError(f"{name} has no choices", hint=f"hermux answer {name} TEXT")
    if choice == "choice" and not 1 <= int(text) <= len(choices):
        listed = "; ".join(f"{place}. {each}" for place, each in enumerate(choices, start=1))
        raise UsageError(f"{name} has no choice {text}", hint=f"the choices: {listed}")


def _by_text(dialog: dict[str, Any], text: str) -> int:
    """Return the number of the choice that a text repeats word for word, 0 if none."""
    choices = [str(each) for each in dialog.get("choices") or ()]
    return choices.index(text) + 1 if text in choices else 0


def _said(dialog: dict[str, Any], choice: str, text: str) -> str:
    if choice == "choice":
        return str(list(dialog.get("choices") or ())[int(text) - 1])
    return text if choice == "text" else choice


def _wait(fleet: Fleet, worker: Worker, dialog: dict[str, Any], message: str) -> str:
    """Wait until an answer is confirmed; raises UsageError when it was refused, WorkerFailed, TimedOut."""
    from orchestrator.api.ready import pictures

    name = str(dialog["id"])
    for _ in pictures(fleet.paths, timeout=CONFIRM_WITHIN, revive=fleet.ensure_supervisor):
        found = store_inbox.look(worker.paths, message)
        if found is None or found.place == "done":
            return "done"
        if found.place == "failed":
            why = str(found.data.get("error") or "no reason was noted")
            if why.startswith(REFUSED):
                raise UsageError(
                    f"{name} was not answered: {why.removeprefix(REFUSED)}",
                    hint="hermux inbox lists what is open",
                )
            raise WorkerFailed(f"the answer to {name} failed: {why}", hint=f"hermux peek {worker.name}")
    raise TimedOut(
        f"{name} was not confirmed within {CONFIRM_WITHIN:.0f} s", hint=f"hermux why {worker.name}"
    )
