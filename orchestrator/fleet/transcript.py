"""A worker's conversation, turn by turn, from its events: what was done in each, and how it ended. Pure.

The words themselves (what was asked and answered) are in the turn files; an event holds their beginning.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from orchestrator.fleet.events import Event, EventName

MOST_STEPS = 500
"""Steps kept a turn; how many more there were is counted."""
SLACK = 50
"""Turns kept beyond those asked for: a child's end may still belong to one of them."""


_OF_CHILDREN = (EventName.CHILD_START, EventName.CHILD_END)


class TurnState(StrEnum):
    """How a turn stands."""

    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    CUT = "cut"
    """Its process died in the middle of it."""
    UNKNOWN = "unknown"
    """Hermes went on without saying how it ended."""


class StepKind(StrEnum):
    """What happened within a turn."""

    TOOL = "tool"
    APPROVAL = "approval"
    QUESTION = "question"
    CHILD = "child"
    ERROR = "error"


@dataclass(slots=True)
class Step:
    """One thing that happened: a tool call, an approval, a question, a child, an API error."""

    kind: StepKind
    time: float
    """Seconds since the epoch, when it began."""
    text: str
    """The tool; the command to approve; the question; the child's goal; the error."""
    detail: str = ""
    """What the tool was called with; why approval is needed; which try it was."""
    choices: tuple[str, ...] = ()
    outcome: str = ""
    """ok or error of a tool; the choice of an approval; how a child ended; "" while it is open."""
    result: str = ""
    """What came back, on one line: a tool's result, the answer to a question, a child's summary."""
    seconds: float | None = None
    id: str = ""
    """What its end is known by: Hermes' call id, or the child's session."""


@dataclass(slots=True)
class Turn:
    """One turn of the conversation, or of a /background one. Times are seconds since the epoch."""

    id: str
    began: float
    attempt: int = 0
    session: str = ""
    background: bool = False
    ended: float | None = None
    state: TurnState | None = None
    """None as long as no event said how it ended."""
    user: str = ""
    """The beginning of what was asked, on one line."""
    answer: str = ""
    steps: list[Step] = field(default_factory=list)
    left_out: int = 0
    """Steps beyond `MOST_STEPS`."""
    calls: int = 0
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    error: Event | None = None
    """The newest event, if that is an API error."""


@dataclass(frozen=True, slots=True)
class Now:
    """What is known of the worker beside its events: `attempt` is its newest one, `alive` whether it runs."""

    attempt: int = 0
    alive: bool = False
    running: str = ""
    """The turn that runs now."""
    last: str = ""
    """The turn of which the supervisor says how it ended: `outcome`."""
    outcome: str = ""


class Record:
    """Takes in events, oldest first, and keeps the turns; with `keep`, only about so many of the newest."""

    def __init__(self, *, keep: int = 0) -> None:
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._keep = keep
        self._attempt = 0
        self.known: set[str] = set()
        """Ids of all turns seen, those of children and those let go included."""
        self.began = 0
        """How many turns began, those let go included."""

    def add(self, event: Event) -> None:
        """Take in one event."""
        self._attempt = max(self._attempt, event.attempt)
        if not event.turn:
            return
        turn = self._turns.get(event.turn)
        if turn is None and event.name not in _OF_CHILDREN and event.turn not in self.known:
            turn = self._begin(event)
        if turn is not None:
            _take(turn, event)

    def _begin(self, event: Event) -> Turn | None:
        """Return a new turn, None for a child's; one whose beginning was rotated away begins with its rest."""
        self.known.add(event.turn)
        if event.platform != "cli":
            return None
        self.began += 1
        background = event.session.startswith("bg_")
        turn = Turn(event.turn, event.time, event.attempt, event.session, background)
        self._turns[event.turn] = turn
        self._let_go()
        return turn

    def _let_go(self) -> None:
        while self._keep and len(self._turns) > self._keep + SLACK:
            self._turns.popitem(last=False)

    def turns(self, now: Now) -> list[Turn]:
        """Return the turns, oldest first, each with its state."""
        found = list(self._turns.values())
        newest = max(now.attempt, self._attempt)
        for turn in found:
            if turn.state is None:
                later = any(other.began > turn.began and not other.background for other in found)
                turn.state = _state(turn, now, newest, later=later and not turn.background)
        return found


def collect(events: Iterable[Event], now: Now) -> list[Turn]:
    """Return the turns that these events tell of, oldest first."""
    record = Record()
    for event in events:
        record.add(event)
    return record.turns(now)


def error_text(event: Event) -> str:
    """Return an API error in the server's words."""
    status = event.data.get("status")
    text = str(event.data.get("error") or event.data.get("reason") or "API error")
    return f"HTTP {status}: {text}" if status and f"HTTP {status}" not in text else text


def _state(turn: Turn, now: Now, newest: int, *, later: bool) -> TurnState:
    """Return how a turn stands of which no event told the end: a failed one has none (0.19 to 0.22)."""
    if turn.id == now.last and now.outcome in ("ok", "failed", "interrupted"):
        return TurnState(now.outcome)
    if turn.id == now.running and now.alive:
        return TurnState.RUNNING
    over = turn.attempt < newest or not now.alive
    if turn.error is not None and (_final(turn.error) or (later and not over)):
        return TurnState.FAILED
    if over:
        return TurnState.CUT
    return TurnState.UNKNOWN if later else TurnState.RUNNING


def _final(error: Event) -> bool:
    """Whether Hermes gave up after this error: it may not be tried again, or it was the last try."""
    if error.data.get("retryable") is False:
        return True
    tries = error.data.get("max_retries")
    return isinstance(tries, int) and int(error.data.get("retry") or 0) + 1 >= tries


def _take(turn: Turn, event: Event) -> None:
    data = event.data
    if event.name not in _OF_CHILDREN:
        turn.error = event if event.name is EventName.REQUEST_ERROR else None
    match event.name:
        case EventName.TURN_START:
            turn.user = str(data.get("preview", ""))
        case EventName.REQUEST:
            turn.calls += 1
            turn.model = str(data.get("model") or turn.model)
        case EventName.RESPONSE:
            usage = data.get("usage")
            counted = usage if isinstance(usage, dict) else {}
            turn.tokens_in += int(counted.get("in") or 0)
            turn.tokens_out += int(counted.get("out") or 0)
        case EventName.REQUEST_ERROR:
            tried = int(data.get("retry") or 0) + 1
            most = data.get("max_retries")
            _step(turn, StepKind.ERROR, event, error_text(event), f"try {tried} of {most}" if most else "")
        case EventName.TURN_ANSWER:
            turn.answer = str(data.get("preview", ""))
        case EventName.TURN_END:
            turn.ended, turn.state = event.time, _end_state(data)
        case _:
            _happened(turn, event)


def _happened(turn: Turn, event: Event) -> None:
    data = event.data
    match event.name:
        case EventName.TOOL_START if data.get("tool") == "clarify":
            asked = str(data.get("question") or data.get("summary") or "")
            step = _step(turn, StepKind.QUESTION, event, asked, key=str(data.get("call_id") or ""))
            step.choices = tuple(str(choice) for choice in data.get("choices") or ())
        case EventName.TOOL_START:
            what, call = str(data.get("summary") or ""), str(data.get("call_id") or "")
            _step(turn, StepKind.TOOL, event, str(data.get("tool") or "tool"), what, key=call)
        case EventName.TOOL_END:
            _tool_ended(turn, event)
        case EventName.APPROVAL:
            what, why = str(data.get("command") or ""), str(data.get("description") or "")
            _step(turn, StepKind.APPROVAL, event, what, why, key=str(data.get("call_id") or ""))
        case EventName.APPROVAL_END:
            _close(
                turn, event, (StepKind.APPROVAL,), data.get("call_id"), str(data.get("choice") or "closed")
            )
        case EventName.CHILD_START:
            child = str(data.get("child_session") or "")
            _step(turn, StepKind.CHILD, event, str(data.get("goal") or ""), key=child)
        case EventName.CHILD_END:
            result, how = str(data.get("summary") or ""), str(data.get("status") or "ended")
            _close(turn, event, (StepKind.CHILD,), data.get("child_session"), how, result)


def _tool_ended(turn: Turn, event: Event) -> None:
    data = event.data
    result = str(data.get("result") or data.get("error") or "")
    kinds = (StepKind.TOOL, StepKind.QUESTION)
    step = _close(turn, event, kinds, data.get("call_id"), str(data.get("status") or "ok"), result)
    if step is not None and isinstance(data.get("ms"), int | float):
        step.seconds = float(data["ms"]) / 1000


def _step(turn: Turn, kind: StepKind, event: Event, text: str, detail: str = "", *, key: str = "") -> Step:
    step = Step(kind, event.time, text, detail, id=key)
    if len(turn.steps) < MOST_STEPS:
        turn.steps.append(step)
    else:
        turn.left_out += 1
    return step


def _close(
    turn: Turn, event: Event, kinds: tuple[StepKind, ...], key: Any, outcome: str, result: str = ""
) -> Step | None:
    """End the newest open step of these kinds that goes by `key`, and return it."""
    for step in reversed(turn.steps):
        if step.kind in kinds and not step.outcome and step.id == str(key or ""):
            step.outcome, step.result = outcome, result
            step.seconds = event.time - step.time
            return step
    return None


def _end_state(data: dict[str, Any]) -> TurnState:
    if data.get("interrupted"):
        return TurnState.INTERRUPTED
    return TurnState.FAILED if data.get("failed") else TurnState.OK
