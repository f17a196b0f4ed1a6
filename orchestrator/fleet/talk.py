"""What the events of a worker add up to: is a turn running, who waits for whom, what was the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from orchestrator.fleet.events import Event, EventName


class FailedKind(StrEnum):
    """Why a turn failed, as far as the API's answer tells."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    NOT_FOUND = "not_found"
    CONTEXT = "context"
    """The conversation is too long for the model, and Hermes could not shorten it."""
    SERVER = "server"
    NO_ANSWER = "no_answer"
    CONNECTION = "connection"
    OTHER = "other"


class TurnOutcome(StrEnum):
    """How a turn ended."""

    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The end of the newest finished turn of the main conversation."""

    turn: str
    outcome: TurnOutcome
    time: float
    kind: FailedKind | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Talk:
    """The conversation as the event feed tells it. Times are Hermes' clock, the same machine's."""

    plugin: bool = False
    """The plugin has reported in this attempt."""
    busy: bool = False
    turn: str = ""
    error: Event | None = None
    """The newest event of the running turn, if that is an API error: the turn may be over."""
    children: tuple[str, ...] = ()
    owed: bool = False
    """Delegated work was begun and Hermes has not yet begun the turn that takes in its results."""
    doing: str = ""
    tools: tuple[str, ...] = ()
    """Calls of tools that run now, by their ids."""
    model: str = ""
    """That Hermes asked last in the main conversation: a fallback, once it has switched."""
    last: LastTurn | None = None
    cut: bool = False
    """A signal interrupted the last turn: Hermes 0.19 then asks the model with "received signal 15"."""
    left: bool = False
    """A person ended Hermes in its pane: /exit, Ctrl-C or Ctrl-D."""
    heard: float = 0.0
    """Time of the newest event."""
    offset: int = 0
    """Feed offset after the newest event."""
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def failed_kind(data: dict[str, Any]) -> FailedKind:
    """Classify an `api_request_error` by its status, and its words where there is no status."""
    status = data.get("status")
    words = f"{data.get('reason', '')} {data.get('error', '')}".lower()
    if status in (401, 403):
        return FailedKind.AUTH
    if "context_overflow" in words or "payload_too_large" in words or "context_length_exceeded" in words:
        return FailedKind.CONTEXT
    if status == 402 or (status == 429 and ("insufficient_quota" in words or "billing" in words)):
        return FailedKind.QUOTA
    if status == 429:
        return FailedKind.RATE_LIMIT
    if status == 404:
        return FailedKind.NOT_FOUND
    if isinstance(status, int) and status >= 500:
        return FailedKind.SERVER
    if "empty stream" in words or "emptystream" in words or "no choices" in words:
        return FailedKind.NO_ANSWER
    if any(word in words for word in ("connect", "timeout", "timed out", "network")):
        return FailedKind.CONNECTION
    return FailedKind.OTHER


def fold(talk: Talk, event: Event) -> Talk:
    """Return the talk after one more event."""
    talk = replace(talk, plugin=True, heard=max(talk.heard, event.time), offset=event.offset or talk.offset)
    if event.name in (EventName.CHILD_START, EventName.CHILD_END):
        return _children(talk, event)
    if event.name in (EventName.APPROVAL, EventName.APPROVAL_END):
        return _approval(talk, event)
    if event.name is EventName.RESPONSE:
        talk = _usage(talk, event)
    if not _of_main(talk, event):
        return talk
    return _main(talk, event)


def _of_main(talk: Talk, event: Event) -> bool:
    """Whether it belongs to the main conversation; tool events carry no platform but their turn."""
    return event.main or (not event.platform and bool(event.turn) and event.turn == talk.turn)


def _main(talk: Talk, event: Event) -> Talk:
    match event.name:
        case EventName.TURN_START | EventName.REQUEST:
            if event.name is EventName.TURN_START:
                owed = bool(talk.children) if _takes_in_children(event) else talk.owed
                talk = replace(talk, owed=owed, cut=_by_signal(talk, event))
            model = str(event.data.get("model") or talk.model)
            return replace(
                talk, busy=True, turn=event.turn, error=None, doing="thinking", tools=(), model=model
            )
        case EventName.RESPONSE:
            return replace(talk, busy=True, turn=event.turn, error=None, doing="thinking")
        case EventName.REQUEST_ERROR:
            return replace(talk, busy=True, turn=event.turn, error=event, doing=_error_text(event))
        case EventName.TOOL_START:
            return _tool(replace(talk, error=None, tools=(*talk.tools, _call(event))), event)
        case EventName.TOOL_END:
            running = tuple(call for call in talk.tools if call != _call(event))
            return replace(talk, error=None, doing=talk.doing if running else "thinking", tools=running)
        case EventName.TURN_END:
            return end_turn(talk, event.time, _outcome(event), turn=event.turn)
        case EventName.SESSION_RESET | EventName.SESSION_FINALIZE:
            left = event.name is EventName.SESSION_FINALIZE and event.data.get("by") == "person"
            return replace(talk, busy=False, doing="", tools=(), error=None, left=left)
        case _:
            return talk


def end_turn(talk: Talk, time: float, outcome: TurnOutcome, *, turn: str = "") -> Talk:
    """Return the talk with its turn over; a failed one takes its kind and error from the last event."""
    failed = outcome is TurnOutcome.FAILED and talk.error is not None
    last = LastTurn(
        turn=turn or talk.turn,
        outcome=outcome,
        time=time,
        kind=failed_kind(talk.error.data) if failed and talk.error else None,
        error=_error_text(talk.error) if failed and talk.error else "",
    )
    return replace(talk, busy=False, doing="", tools=(), error=None, last=last, turns=talk.turns + 1, turn="")


def _takes_in_children(event: Event) -> bool:
    """Hermes begins this turn by itself when delegated work is complete (0.19.0 to 0.22.2)."""
    return "[ASYNC DELEGATION" in str(event.data.get("preview", ""))


def _by_signal(talk: Talk, event: Event) -> bool:
    interrupted = talk.last is not None and talk.last.outcome is TurnOutcome.INTERRUPTED
    return interrupted and str(event.data.get("preview", "")).startswith("received signal ")


def _outcome(event: Event) -> TurnOutcome:
    if event.data.get("interrupted"):
        return TurnOutcome.INTERRUPTED
    return TurnOutcome.FAILED if event.data.get("failed") else TurnOutcome.OK


def _error_text(event: Event) -> str:
    status = event.data.get("status")
    text = str(event.data.get("error") or event.data.get("reason") or "API error")
    return f"HTTP {status}: {text}" if status and f"HTTP {status}" not in text else text


def _children(talk: Talk, event: Event) -> Talk:
    child = str(event.data.get("child_session", ""))
    others = tuple(c for c in talk.children if c != child)
    if event.name is EventName.CHILD_START:
        return replace(talk, children=(*others, child), owed=True)
    return replace(talk, children=others)


def _approval(talk: Talk, event: Event) -> Talk:
    if event.data.get("surface") != "cli":
        return talk
    if event.name is EventName.APPROVAL_END:
        return talk
    return replace(talk, busy=talk.busy or _of_main(talk, event), error=None)


def _tool(talk: Talk, event: Event) -> Talk:
    tool = str(event.data.get("tool", ""))
    summary = str(event.data.get("summary", ""))
    return replace(talk, busy=True, doing=f"{tool}: {summary}" if summary else tool)


def _call(event: Event) -> str:
    return str(event.data.get("call_id") or event.data.get("tool") or "")


def _usage(talk: Talk, event: Event) -> Talk:
    usage = event.data.get("usage")
    if not isinstance(usage, dict):
        return talk
    return replace(
        talk,
        tokens_in=talk.tokens_in + int(usage.get("in") or 0),
        tokens_out=talk.tokens_out + int(usage.get("out") or 0),
    )
