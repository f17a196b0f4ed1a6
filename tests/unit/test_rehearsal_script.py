"""The rehearsal model's next step, from the messages of a request alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.rehearsal.faults import Fault, Faults, parse_faults
from orchestrator.rehearsal.script import DONE, ScriptError, Step, find_script, plan
from orchestrator.rehearsal.unanswered import KEPT, Unanswered


def script(*steps: dict[str, Any]) -> str:
    return json.dumps({"steps": steps})


def says(role: str, content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


ONE_TWO = script({"text": "one", "tools": [{"name": "terminal", "args": {"command": "ls"}}]}, {"text": "two"})
TOOL_ROUND = [says("assistant", "one"), says("tool", "{}")]
CUT_OFF = "[System: The previous response was cut off by a network error mid-stream. Continue …]"
DELEGATED = "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\n--- TASK 1/1: "

TURNS: list[tuple[str, list[dict[str, Any]], str]] = [
    ("first step", [says("user", ONE_TWO)], "one"),
    ("within other text", [says("user", f'read {{this}} "{ONE_TWO}" }} please')], "one"),
    ("second step after a tool", [says("user", ONE_TWO), *TOOL_ROUND], "two"),
    ("several tool results are one step", [says("user", ONE_TWO), *TOOL_ROUND, says("tool", "")], "two"),
    ("beyond the last", [says("user", ONE_TWO), *TOOL_ROUND, *TOOL_ROUND], DONE),
    ("a new message starts anew", [says("user", ONE_TWO), *TOOL_ROUND, says("user", ONE_TWO)], "one"),
    ("the last of two", [says("user", ONE_TWO + "\n\n" + script({"text": "later"}))], "later"),
    ("parts", [says("user", [{"type": "text", "text": ONE_TWO}, {"type": "image_url"}])], "one"),
    ("an image alone", [says("user", [{"type": "image_url"}])], "You said: "),
    ("cut off, next step", [says("user", ONE_TWO), says("assistant", "o"), says("user", CUT_OFF)], "two"),
    (
        "a child's script that comes back is not the parent's",
        [says("user", ONE_TWO), *TOOL_ROUND, says("user", DELEGATED + script({"text": "child"}))],
        "two",
    ),
    ("only Hermes spoke", [says("user", CUT_OFF)], "You said: [System:"),
    ("nobody spoke", [says("system", "be good")], "You said: "),
    ("a list of steps that is no script", [says("user", script({"run": "make"}))], "unknown field 'run'"),
    ("a wrong type", [says("user", script({"delay": "3"}))], "step 1: delay is a str"),
    ("an unknown fault", [says("user", script({"malformed": "odd"}))], "malformed is one of"),
    ("steps that are no list", [says("user", '{"steps": 3}')], "You said: "),
    ("no steps", [says("user", '{"steps": []}')], DONE),
    ("an empty step is never an empty answer", [says("user", script({}))], DONE),
]


@pytest.mark.parametrize(("messages", "text"), [row[1:] for row in TURNS], ids=[row[0] for row in TURNS])
def test_what_is_said_next(messages: list[dict[str, Any]], text: str) -> None:
    assert text in plan(messages).text


def test_a_plain_prompt_is_quoted_in_at_most_60_characters_and_called_a_rehearsal() -> None:
    answer = plan([says("user", "word\n" * 1000)]).text
    assert "rehearsal" in answer
    assert len(answer.partition("You said: ")[2]) == 60


def test_a_childs_script_inside_the_arguments_is_not_taken_for_the_parents() -> None:
    goal = script({"text": "child"})
    outer = script({"tools": [{"name": "delegate_task", "args": {"goal": goal, "extra": {"steps": []}}}]})
    step = plan([says("user", outer)])
    assert step.tools[0].name == "delegate_task"
    assert json.loads(step.tools[0].args)["goal"] == goal


def test_every_field_of_a_step_is_read() -> None:
    said = script({"delay": 1.5, "status": 429, "retry_after": 3, "error": "slow down", "reasoning": "hm"})
    assert plan([says("user", said)]) == Step(
        delay=1.5, status=429, retry_after=3, error="slow down", reasoning="hm"
    )


def test_arguments_given_as_text_go_out_as_they_are() -> None:
    step = plan([says("user", script({"tools": [{"name": "terminal", "args": "{broken"}]}))])
    assert step.tools[0].args == "{broken"


@given(before=st.text(), after=st.text(), value=st.text())
def test_a_script_is_found_in_any_text(before: str, after: str, value: str) -> None:
    steps = [{"text": value}]
    if "steps" not in before + after:
        assert find_script(before + " " + json.dumps({"steps": steps}) + after) == steps


@pytest.mark.parametrize("noise", ["{", '{"a":', '{"a": [1]} ', '"steps": [ '])
def test_a_megabyte_of_noise_hides_no_script(noise: str) -> None:
    noise *= 1_000_000 // len(noise)
    assert find_script(noise) is None
    assert find_script(f'{noise} {{"note": {{}}, "steps": [1]}}') == [1]


def test_a_script_within_another_object_is_found() -> None:
    assert find_script('{"data": {"steps": [1]}, "steps": 3}') == [1]


def test_a_message_that_failed_is_not_played_again_with_the_next() -> None:
    unanswered, failing = Unanswered(), script({"status": 401})
    assert unanswered.fresh("c", failing) == failing
    assert unanswered.fresh("c", failing) == failing  # Hermes' own retry
    assert unanswered.fresh("c", f"{failing}\n\nhello") == "hello"
    assert unanswered.fresh("c", f"{failing}\n\nhello\n\nagain") == "again"
    unanswered.answered("c", f"{failing}\n\nhello\n\nagain")
    assert unanswered.fresh("c", f"{failing}\n\nhello") == f"{failing}\n\nhello"


def test_what_another_conversation_left_unanswered_does_not_matter() -> None:
    unanswered = Unanswered()
    unanswered.fresh("a", "hello")
    assert unanswered.fresh("b", "hello\n\nworld") == "hello\n\nworld"


def test_unanswered_messages_are_bounded() -> None:
    unanswered = Unanswered()
    for number in range(KEPT + 1):
        unanswered.fresh("c", f"{number}.")
    assert unanswered.fresh("c", "0.\n\nx") == "0.\n\nx"
    assert unanswered.fresh("c", f"{KEPT}.\n\nx") == "x"


def test_faults_are_used_up_in_their_order() -> None:
    faults = Faults()
    assert faults.add(*parse_faults({"count": 2, "status": 429, "retry_after": 3})) == 2
    assert faults.add(*parse_faults({"cut": True, "latency": 1.5})) == 3
    taken = [faults.take() for _ in range(4)]
    assert taken == [Fault(status=429, retry_after=3)] * 2 + [Fault(cut=True, latency=1.5), None]


def test_a_fault_leaves_the_rest_of_the_step_alone() -> None:
    step = Step(text="words", delay=1)
    assert Fault(latency=2).apply(step) == Step(text="words", delay=3)
    assert Fault(cut=True).apply(step).malformed == "midstream_drop"
    assert Fault(status=503).apply(Step(malformed="hang")).status == 503


@pytest.mark.parametrize(
    "data", [[], {"counts": 3}, {"count": 0}, {"count": "3"}, {"status": 99}, {"cut": 1}, {"malformed": "x"}]
)
def test_a_fault_that_means_nothing_is_refused(data: object) -> None:
    with pytest.raises(ScriptError):
        parse_faults(data)
