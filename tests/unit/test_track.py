"""Which turns belong to a message: tables of events, as Hermes 0.19.0 sends them."""

from __future__ import annotations

from typing import Any

from orchestrator.api.track import Track
from orchestrator.fleet.events import Event, EventName


def event(
    name: EventName, turn: str = "t1", *, attempt: int = 1, platform: str = "cli", **data: Any
) -> Event:
    return Event(name, 1.0, 10, attempt, session="s", platform=platform, turn=turn, data=data)


def tracked(*events: Event) -> Track:
    track = Track("t1")
    for each in events:
        track.add(each)
    return track


START = event(EventName.TURN_START)
END = event(EventName.TURN_END, completed=True, interrupted=False)
DELEGATE = (
    event(EventName.TOOL_START, platform="", tool="delegate_task"),
    event(EventName.CHILD_START, platform="", child_session="c"),
    event(EventName.TOOL_END, platform="", tool="delegate_task", status="ok"),
)
CHILD_END = event(EventName.CHILD_END, platform="", child_session="c")
RESULT = event(EventName.TURN_START, "t2", preview="[ASYNC DELEGATION BATCH COMPLETE — deleg_1] …")


def test_a_plain_turn() -> None:
    assert not tracked(START).done
    assert tracked(START, END).done


def test_other_turns_do_not_end_it() -> None:
    other = event(EventName.TURN_END, "t0")
    child = event(EventName.TURN_END, "c1", platform="subagent")
    assert not tracked(START, other, child).done


def test_a_delegation_is_over_when_its_result_was_answered() -> None:
    history = (START, *DELEGATE, END)
    assert not tracked(*history).done
    assert not tracked(*history, CHILD_END).done
    assert tracked(*history, CHILD_END).settling
    assert not tracked(*history, CHILD_END, RESULT).done
    track = tracked(*history, CHILD_END, RESULT, event(EventName.TURN_END, "t2"))
    assert track.done and track.turn == "t2" and track.turns == ["t1", "t2"] and track.delegated == 1


def test_a_message_of_somebody_else_in_between_is_not_the_result() -> None:
    other = (event(EventName.TURN_START, "t9", preview="hello"), event(EventName.TURN_END, "t9"))
    track = tracked(START, *DELEGATE, END, CHILD_END, *other)
    assert not track.done and track.turn == "t1"


def test_a_result_may_delegate_again() -> None:
    again = (
        event(EventName.CHILD_START, "t2", platform="", child_session="d"),
        event(EventName.TOOL_END, "t2", platform="", tool="delegate_task", status="ok"),
        event(EventName.TURN_END, "t2"),
    )
    assert not tracked(START, *DELEGATE, END, CHILD_END, RESULT, *again).settling


def test_a_refused_delegation_is_not_awaited() -> None:
    refused = event(EventName.TOOL_END, platform="", tool="delegate_task", status="error")
    assert tracked(START, refused, END).done


def test_a_turn_cut_by_a_crash_goes_on_in_the_next_attempt() -> None:
    nudge = event(EventName.TURN_START, "t5", attempt=2)
    track = tracked(START, nudge)
    assert track.turn == "t5" and not track.done
    track.add(event(EventName.TURN_END, "t5", attempt=2))
    assert track.done


def test_children_die_with_their_attempt() -> None:
    later = event(EventName.PLUGIN_LOADED, "", attempt=2)
    assert tracked(START, *DELEGATE, END, later).settling


def test_an_error_is_forgotten_when_a_retry_worked() -> None:
    error = event(EventName.REQUEST_ERROR, status=500, error="boom")
    answer = event(EventName.RESPONSE, usage={"in": 5, "out": None})
    assert tracked(START, error).error == "HTTP 500: boom"
    track = tracked(START, error, answer)
    assert (track.error, track.tokens_in, track.tokens_out) == ("", 5, 0)


def test_what_ended_the_turn() -> None:
    assert tracked(START, event(EventName.TURN_END, interrupted=True)).interrupted
    assert tracked(START, event(EventName.TURN_END, failed=True)).failed
    assert tracked(START, event(EventName.TOOL_START, platform="", tool="patch")).wrote


def test_a_turn_that_stood_before_it_in_the_queue_is_not_its_own() -> None:
    """`ask` reads from the moment of asking, so it may see the whole of an older turn first."""
    older = (event(EventName.TURN_START, "t0"), event(EventName.TURN_END, "t0", completed=True))
    track = tracked(*older)
    assert track.turn == "t1" and not track.done
    track.add(START)
    track.add(END)
    assert track.done and track.turns == ["t1"]


def test_a_turn_that_a_crash_cut_off_goes_on_in_the_next_attempt() -> None:
    track = tracked(START, event(EventName.TURN_START, "t2", attempt=2))
    assert not track.done and track.turn == "t2"
