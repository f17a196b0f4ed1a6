"""A new conversation in place of one that is used up or lost: the worker is told there what it was doing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.fleet import stopping
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.talk import FailedKind, LastTurn, TurnOutcome
from orchestrator.fleet.worker import Anew, Phase, Worker

TURNS = 5
"""The newest turns that a hand-over tells of."""
LONGEST_ASK, LONGEST_ANSWER, LONGEST_STEP = 1500, 800, 160
STEPS = 8
"""Characters and steps of a turn; with `TURNS` they bound a hand-over to about 20,000 characters."""
USED_UP = "its conversation was too long for the model, and Hermes could not shorten it"


@dataclass(frozen=True, slots=True)
class Past:
    """One turn of the conversation that is over. `state` is a word of `TurnState`."""

    asked: str
    answered: str
    state: str
    steps: tuple[str, ...] = ()


def begin(pen: Pen, why: str) -> None:
    """End a live worker, to start it again in a new conversation. That is no crash and spends nothing."""
    pen.set(anew=Anew(why, pen.now))
    pen.note("BEGINS A NEW CONVERSATION", why, what="transition")
    stopping.stop(pen, f"begins a new conversation: {why}")


def launched_into(pen: Pen) -> str:
    """Return the session that the next attempt resumes, "" where it begins a new conversation."""
    anew = pen.worker.anew
    if anew is not None and not anew.attempt:
        pen.set(session="", nudge=False, anew=replace(anew, attempt=pen.worker.attempt + 1))
    return pen.worker.session


def lost(pen: Pen, why: str) -> None:
    """Note that an attempt, just launched, could not resume its session."""
    pen.set(session="", resume="", nudge=False, anew=Anew(why, pen.now, pen.worker.attempt))
    pen.note("BEGINS A NEW CONVERSATION", why, what="transition")


def turn_ended(pen: Pen, last: LastTurn) -> None:
    """Begin anew when the conversation is used up; a new one that was never of use is not replaced again."""
    anew = pen.worker.anew
    if last.outcome is TurnOutcome.OK and anew is not None and not anew.worked:
        pen.set(anew=replace(anew, worked=True))
    if last.outcome is not TurnOutcome.FAILED or last.kind is not FailedKind.CONTEXT:
        return
    if pen.worker.phase is not Phase.UP:
        return
    if anew is not None and not anew.worked:
        pen.set(pause=f"context: a new conversation is too long as well: {last.error}")
        pen.note("takes no more messages", pen.worker.pause, witness="event")
    else:
        begin(pen, USED_UP)


def untold(worker: Worker) -> bool:
    """Whether this attempt runs in a new conversation that was not told of the old one yet."""
    anew = worker.anew
    return anew is not None and anew.attempt == worker.attempt and not anew.told


def told(pen: Pen) -> None:
    """Note that the hand-over is queued."""
    if pen.worker.anew is not None:
        pen.set(anew=replace(pen.worker.anew, told=True))


def kept(worker: Worker) -> Anew | None:
    """Return what a person's start leaves of it: only what is still to be done."""
    pending = worker.anew is not None and (not worker.anew.attempt or untold(worker))
    return worker.anew if pending else None


def text(why: str, past: Sequence[Past], files: str) -> str:
    """Return the hand-over: the newest turns, oldest first; `files` is where all of it can be read."""
    shown = past[-TURNS:]
    parts = [
        f"[hermux] This is a new conversation, because {why}. What follows is what you were doing in the old one: "
        f"the last {len(shown)} of its turns. All of it is in {files}. Look at the files you were working on, "
        "do not repeat steps that are already done, and go on with what is unfinished."
    ]
    parts += [_told(number, turn) for number, turn in enumerate(shown, start=1)]
    return "\n\n".join(parts)


def _told(number: int, turn: Past) -> str:
    lines = [f"--- turn {number}, {turn.state} ---", f"You were asked: {_cut(turn.asked, LONGEST_ASK)}"]
    lines += [f"You did: {_cut(step, LONGEST_STEP)}" for step in turn.steps[-STEPS:]]
    if turn.answered:
        lines.append(f"You answered: {_cut(turn.answered, LONGEST_ANSWER)}")
    elif turn.state != "ok":
        lines.append("You had not finished it.")
    return "\n".join(lines)


def _cut(said: str, limit: int) -> str:
    return said if len(said) <= limit else f"{said[:limit]} … ({len(said) - limit} characters more)"
