"""`hermux inbox`, `approve`, `deny`, `answer`: what workers ask people, and what people say to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api.picture import seconds_left, span
from orchestrator.cli.options import FleetName, Json, NoWait, Quiet, open_fleet
from orchestrator.cli.show import Column, one_line, out, out_json, runnable, table, talk, terminal_width
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.api import Fleet
    from orchestrator.api.people import Answered

Target = Annotated[
    str, typer.Argument(metavar="W[#ID]", help="a worker, or the dialog's id as `inbox` shows it")
]
MESSAGES = (
    Column("MESSAGE"),
    Column("WORKER"),
    Column("AGE", right=True),
    Column("TEXT", least=12),
    Column("WAITS", least=12, optional=True),
)


def inbox(
    watch: Annotated[
        float | None, typer.Option("--watch", "-w", metavar="[S]", help="repeat every S (2) seconds", min=0.2)
    ] = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show every open approval and question with its id and the time left, and undelivered messages.

    The id stays with one dialog: an answer to it never reaches another one. `in_pane` is false for one that
    Hermes shows when the one before it is answered.
    """
    opened = open_fleet(fleet)
    while True:
        document = _document(opened)
        if json:
            out_json(document)
        else:
            if watch:
                out("\033[H\033[2J" + time.strftime("%H:%M:%S"))
            _print(document, opened, quiet=quiet)
        if not watch:
            return
        time.sleep(watch)


def _document(fleet: Fleet) -> dict[str, Any]:
    from orchestrator.api.people import asked, undelivered

    dialogs = [
        {**each, "seconds_left": None if (left := seconds_left(each)) is None else round(left, 1)}
        for each in asked(fleet)
    ]
    return {
        "schema": 1,
        "fleet": fleet.name,
        "warning": fleet.picture().warning,
        "dialogs": dialogs,
        "messages": undelivered(fleet),
    }


def _print(document: dict[str, Any], fleet: Fleet, *, quiet: bool) -> None:
    parts = []
    if document["dialogs"]:
        parts += [_dialog(each) for each in document["dialogs"]]
    if document["messages"]:
        rows = [_message_row(each) for each in document["messages"]]
        parts.append(table(MESSAGES, rows, width=terminal_width()))
    if parts:
        out("\n\n".join(parts))
    if quiet:
        return
    if not parts:
        talk("nobody waits for a person, and every message is delivered")
    if document["warning"]:
        talk(runnable(document["warning"], fleet.name))


def _dialog(dialog: dict[str, Any]) -> str:
    """Return a dialog as a block: nothing of what a person is to decide upon is cut."""
    left = dialog["seconds_left"]
    head = [
        dialog["id"],
        dialog["kind"].replace("_", " ") + ("" if dialog["in_pane"] else " (behind another)"),
        "" if left is None else f"{span(left)} left",
    ]
    text = [f"  {one_line(line)}" for line in str(dialog["text"]).splitlines() if line.strip()]
    choices = [f"    {place}. {one_line(each)}" for place, each in enumerate(dialog["choices"], start=1)]
    return "\n".join(["  ".join(filter(None, head)), *text, *choices])


def _message_row(message: dict[str, Any]) -> list[str]:
    return [
        message["id"],
        message["worker"],
        span(time.time() - float(message["created"])),
        one_line(message["preview"]),
        one_line(message["waits_for"]),
    ]


def approve(
    target: Target,
    how: Annotated[
        str, typer.Argument(metavar="[once|session|always]", help="for how long; once if left out")
    ] = "once",
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Allow what a worker asks for, and wait until Hermes has it.

    Without an id it is the dialog that is open now. `always` goes into the worker's own allowlist; a dialog
    that does not offer it refuses. Exit codes: 2 no such dialog is open, 3 it was not confirmed.
    """
    from orchestrator.api import people

    opened = open_fleet(fleet)
    _report(
        people.approve(opened, target, how, wait=not no_wait, sender="cli"),
        "approved",
        json=json,
        quiet=quiet,
    )


def deny(
    target: Target,
    why: Annotated[
        list[str] | None, typer.Argument(metavar="[WHY]", help="a reason, sent to the worker as a message")
    ] = None,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Refuse what a worker asks for, and wait until Hermes has it.

    Hermes' dialog takes no reason: WHY is queued as a message, which comes when this turn is over.
    """
    from orchestrator.api import people

    opened = open_fleet(fleet)
    answered = people.deny(opened, target, " ".join(why or ()), wait=not no_wait, sender="cli")
    _report(answered, "denied", json=json, quiet=quiet)


def answer(
    target: Target,
    text: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]", help="the answer")] = None,
    choice: Annotated[
        int | None, typer.Option("--choice", metavar="N", help="the number of a choice", min=1)
    ] = None,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer a worker's question by a text or a choice, and wait until Hermes has it.

    A text is also an answer to a question with choices; one that repeats a choice word for word picks it.
    Passwords and secrets are only ever typed by a person, in the pane.
    """
    from orchestrator.api import people

    words = " ".join(text or ())
    if words and choice is not None:
        raise UsageError("an answer is a text or a --choice, not both")
    opened = open_fleet(fleet)
    answered = people.answer(opened, target, words, choice=choice or 0, wait=not no_wait, sender="cli")
    _report(answered, "answered", json=json, quiet=quiet)


def _report(answered: Answered, word: str, *, json: bool, quiet: bool) -> None:
    from dataclasses import asdict

    if json:
        out_json({"schema": 1, **asdict(answered)})
        return
    if quiet:
        return
    done = word if answered.place == "done" else "queued"
    out(f"{answered.id}  {done}" + ("" if answered.answer == "deny" else f": {one_line(answered.answer)}"))
    if answered.reason:
        talk(f"Hermes takes no reason in its dialog: it follows as message {answered.reason}")
