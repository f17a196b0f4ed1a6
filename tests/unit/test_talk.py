"""Histories of events, and what they add up to. A new bug is a new row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.fleet import people
from orchestrator.fleet.admission import Room
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.message import digest, normalise
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.picture import activity, background, waiting, word_of
from orchestrator.fleet.prompt import PromptKind
from orchestrator.fleet.talk import FailedKind, Talk, TurnOutcome, end_turn, failed_kind, fold
from orchestrator.fleet.worker import Activity, Glance, Life, Phase, Want, Worker
from tests.unit.world import spec

E = EventName


def told(*events: tuple[EventName, dict[str, Any]]) -> Talk:
    """Fold events of the main conversation; `_` keys set the event's own fields."""
    talk = Talk()
    for event in feed(*events):
        talk = fold(talk, event)
    return talk


def feed(*events: tuple[EventName, dict[str, Any]]) -> Iterator[Event]:
    for second, (name, data) in enumerate(events, start=1):
        own = {"session": "s1", "platform": "cli", "turn": "t1"} | {
            key[1:]: value for key, value in data.items() if key.startswith("_")
        }
        rest = {key: value for key, value in data.items() if not key.startswith("_")}
        yield Event(name, float(second), 1, 1, data=rest, offset=second * 10, **own)


def asked(worker: Worker, *events: tuple[EventName, dict[str, Any]]) -> Worker:
    """Return the worker with the dialogs that the events leave open, and the screen compared with them."""
    pen = Pen(worker, 100.0, Room(None, [], 100.0), {})
    for event in feed(*events):
        people.heard(pen, event)
    people.glanced(pen)
    return pen.worker


def seen(talk: Talk, kind: PromptKind | None = PromptKind.READY, **glance: Any) -> Worker:
    """An `up` worker that was looked at long after the last event; kind None = just before it."""
    at = talk.heard + 10 if kind is not None else talk.heard - 1
    reading = Glance(kind or PromptKind.READY, at, **glance)
    return Worker(
        spec(), Want.RUN, 1, phase=Phase.UP, life=Life("%1", 2, 2.0, 0.0), talk=talk, glance=reading,
        steady_since=at - 1,
    )  # fmt: skip


START = (E.TURN_START, {"sha256": "x", "preview": "hello"})
CALL = (E.REQUEST, {"sha256": "x", "call": 1})
ANSWER = (E.RESPONSE, {"usage": {"in": 7, "out": 3}})
TOOL = (E.TOOL_START, {"tool": "terminal", "summary": "make"})
TOOL_END = (E.TOOL_END, {"tool": "terminal"})
END = (E.TURN_END, {"completed": True})
ERROR = (E.REQUEST_ERROR, {"status": 500, "error": "boom"})
ASK = (E.APPROVAL, {"surface": "cli", "command": "rm -rf x", "description": "delete"})
ASK_SMART = (E.APPROVAL, {"surface": "smart", "command": "rm -rf x"})
ANSWERED = (E.APPROVAL_END, {"surface": "cli", "choice": "once"})
CLARIFY = (E.TOOL_START, {"tool": "clarify", "question": "which?", "choices": ["a", "b"]})
OPEN = (E.TOOL_START, {"tool": "clarify", "question": "name?"})
OPEN_END = (E.TOOL_END, {"tool": "clarify"})
CHILD = (E.CHILD_START, {"child_session": "c1"})
CHILD_END = (E.CHILD_END, {"child_session": "c1"})
CHILD_TURN = (E.TURN_START, {"_session": "c1", "_platform": "subagent", "_turn": "c"})
BACKGROUND = (E.TURN_START, {"_session": "bg_1", "_turn": "b"})
BACKGROUND_ASK = (E.APPROVAL, {"surface": "cli", "command": "rm", "_session": "bg_1", "_turn": "b"})
RESULTS = (E.TURN_START, {"preview": "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]", "_turn": "t2"})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([START], Activity.BUSY),
        ([START, CALL, ANSWER, TOOL], Activity.BUSY),
        ([START, CALL, ERROR], Activity.BUSY),
        ([START, CALL, ANSWER, END], Activity.READY),
        ([START, CALL, TOOL, ASK_SMART], Activity.BUSY),
        ([START, CALL, TOOL, ASK], Activity.WAITING),
        ([START, CALL, TOOL, ASK, ANSWERED], Activity.BUSY),
        ([START, CALL, CLARIFY], Activity.WAITING),
        ([START, CALL, OPEN], Activity.WAITING),
        ([START, CALL, OPEN, OPEN_END], Activity.BUSY),
        ([START, CALL, CHILD, END], Activity.BACKGROUND),
        ([START, CALL, CHILD, CHILD_TURN, END], Activity.BACKGROUND),
        ([START, CALL, CHILD, END, CHILD_END], Activity.BACKGROUND),  # the turn with the results is owed
        ([START, CALL, CHILD, END, CHILD_END, RESULTS], Activity.BUSY),
        ([START, CALL, CHILD, END, CHILD_END, RESULTS, END], Activity.READY),
        ([START, CALL, END, BACKGROUND], Activity.READY),
        ([BACKGROUND, BACKGROUND_ASK], Activity.WAITING),
        ([BACKGROUND, BACKGROUND_ASK, ANSWERED], Activity.READY),
    ],
)
def test_events_alone_tell_what_a_worker_does(
    events: list[tuple[EventName, dict[str, Any]]], expected: Activity
) -> None:
    assert activity(asked(seen(told(*events), None), *events))[0] is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PromptKind.BUSY, Activity.BUSY),
        (PromptKind.COMMAND, Activity.BUSY),
        (PromptKind.APPROVAL, Activity.WAITING),
        (PromptKind.SUDO, Activity.WAITING),
        (PromptKind.READY, Activity.READY),
    ],
)
def test_a_newer_steady_screen_wins_over_events(kind: PromptKind, expected: Activity) -> None:
    assert activity(seen(told(START, CALL, END), kind))[0] is expected


def test_an_unreadable_screen_leaves_the_events_their_word() -> None:
    assert activity(seen(told(START, CALL), PromptKind.UNKNOWN))[0] is Activity.BUSY
    assert activity(seen(Talk(), PromptKind.UNKNOWN))[0] is Activity.UNKNOWN


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"status": 401}, FailedKind.AUTH),
        ({"status": 403}, FailedKind.AUTH),
        ({"status": 402}, FailedKind.QUOTA),
        ({"status": 429, "error": "insufficient_quota"}, FailedKind.QUOTA),
        ({"status": 429, "error": "slow down"}, FailedKind.RATE_LIMIT),
        ({"status": 404}, FailedKind.NOT_FOUND),
        ({"status": 503}, FailedKind.SERVER),
        ({"reason": "timeout", "error": "Connection error."}, FailedKind.CONNECTION),
        ({"error": "Provider returned an empty stream"}, FailedKind.NO_ANSWER),
        ({"error": "odd"}, FailedKind.OTHER),
    ],
)
def test_a_failed_turn_says_why(data: dict[str, Any], kind: FailedKind) -> None:
    assert failed_kind(data) is kind
    talk = end_turn(told(START, CALL, (E.REQUEST_ERROR, data)), 9.0, TurnOutcome.FAILED)
    assert talk.last is not None and talk.last.kind is kind and not talk.busy


def test_a_failed_turn_is_named_until_the_next_one_and_a_draft_is_seen() -> None:
    failed = seen(end_turn(told(START, CALL, ERROR), 4.0, TurnOutcome.FAILED))
    assert word_of(failed)[0] == "failed"
    assert word_of(seen(told(START, CALL, END), typed="half a"))[0] == "draft"
    assert word_of(replace(failed, pause="auth: HTTP 401"))[0] == "held"


def test_interrupted_is_neither_ok_nor_failed() -> None:
    talk = told(START, CALL, (E.TURN_END, {"completed": True, "interrupted": True}))
    assert talk.last is not None and talk.last.outcome is TurnOutcome.INTERRUPTED


def test_the_dialog_is_that_of_the_screen_with_the_words_of_the_event() -> None:
    events: list[tuple[EventName, dict[str, Any]]] = [START, CALL, TOOL, ASK]
    box = seen(told(*events), PromptKind.APPROVAL, dialog="Title\nrm -rf x", choices=("once", "deny"))
    shown = waiting(asked(box, *events))
    assert shown is not None and shown.text.startswith("rm -rf x") and shown.choices == ("once", "deny")


def test_background_work_is_counted_from_events_or_the_status_bar() -> None:
    assert background(seen(told(START, CALL, CHILD, END))) == 1
    assert background(seen(told(START, CALL, END), background=3)) == 3


def test_tokens_and_turns_add_up() -> None:
    talk = told(START, CALL, ANSWER, ANSWER, END)
    assert (talk.tokens_in, talk.tokens_out, talk.turns) == (14, 6, 1)


def test_a_text_is_normalised_as_hermes_holds_it() -> None:
    assert normalise(" a\r\nb\rc \n") == ("a\nb\nc", ("line ends became LF", "outer blanks removed"))
    assert normalise("plain") == ("plain", ())
    assert digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
