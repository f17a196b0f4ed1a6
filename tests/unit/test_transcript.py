"""A conversation out of events and turn files: folding, states, rotation, and rendering that nothing escapes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.api.transcript import archives_of, read_transcript
from orchestrator.cli.since import parse_since
from orchestrator.cli.transcript import code, document, fenced, markdown, plain
from orchestrator.errors import UnknownWorker, UsageError
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.transcript import MOST_STEPS, Now, Record, StepKind, TurnState, collect
from orchestrator.fleet.visible import visible
from orchestrator.hermes.feed import FEED, PREVIOUS, rotate
from orchestrator.hermes.plugin.text import file_safe, outcome
from orchestrator.hermes.plugin.turns import save_turn
from tests.unit.stage import Stage

LIVE = Now(attempt=1, alive=True)


def event(name: str, turn: str = "t1", at: float = 1.0, *, attempt: int = 1, **data: Any) -> Event:
    return Event(EventName(name), at, 7, attempt, "s1", data.pop("platform", "cli"), turn, data)


BEGIN = event("pre_llm_call", preview="do it", sha256="x")
CALL = event("pre_api_request", call=1, model="m")
OK = event("on_session_end", at=5.0, completed=True, interrupted=False)
FINAL = event("api_request_error", status=404, retryable=False, retry=0, max_retries=3, error="gone")
AGAIN = event("api_request_error", status=500, retryable=True, retry=0, max_retries=3, error="broken")
LAST = event("api_request_error", status=500, retryable=True, retry=2, max_retries=3, error="broken")
NEXT = event("pre_llm_call", "t2", 9.0, preview="and now")
NEXT_LIFE = event("pre_llm_call", "t2", 9.0, attempt=2, preview="and now")


@pytest.mark.parametrize(
    ("events", "now", "state"),
    [
        ([BEGIN, OK], LIVE, TurnState.OK),
        ([BEGIN, event("on_session_end", interrupted=True)], LIVE, TurnState.INTERRUPTED),
        ([BEGIN, event("on_session_end", interrupted=False, failed=True)], LIVE, TurnState.FAILED),
        ([BEGIN, CALL], LIVE, TurnState.RUNNING),
        ([BEGIN, CALL, AGAIN], Now(attempt=1, alive=True, running="t1"), TurnState.RUNNING),
        ([BEGIN, CALL, LAST], Now(attempt=1, alive=True, running="t1"), TurnState.RUNNING),
        ([BEGIN, CALL], Now(attempt=1, alive=False), TurnState.CUT),
        ([BEGIN, CALL], Now(attempt=2, alive=True), TurnState.CUT),
        ([BEGIN, CALL, NEXT_LIFE], Now(), TurnState.CUT),
        ([BEGIN, CALL, AGAIN, NEXT_LIFE], Now(), TurnState.CUT),
        ([BEGIN, CALL, FINAL], LIVE, TurnState.FAILED),
        ([BEGIN, CALL, LAST, NEXT_LIFE], Now(), TurnState.FAILED),
        ([BEGIN, CALL, AGAIN, NEXT], LIVE, TurnState.FAILED),
        ([BEGIN, CALL, NEXT], LIVE, TurnState.UNKNOWN),
        ([BEGIN, CALL], Now(attempt=1, alive=True, last="t1", outcome="failed"), TurnState.FAILED),
    ],
)
def test_how_a_turn_ended(events: list[Event], now: Now, state: TurnState) -> None:
    assert collect(events, now)[0].state is state


def test_what_happened_in_a_turn() -> None:
    turn = collect(
        [
            BEGIN,
            CALL,
            event("post_api_request", usage={"in": 10, "out": 2}),
            event("pre_tool_call", at=2.0, tool="terminal", summary="ls", call_id="c1"),
            event("pre_approval_request", at=2.1, command="rm x", description="deletes", call_id="c1"),
            event("post_approval_response", at=2.5, choice="deny", call_id="c1"),
            event(
                "post_tool_call", at=2.6, tool="terminal", call_id="c1", status="error", ms=600, result="no"
            ),
            event("pre_tool_call", tool="clarify", question="Which?", choices=["a", "b"], call_id="c2"),
            event("post_tool_call", tool="clarify", call_id="c2", status="ok", ms=10, result="b"),
            event("subagent_start", child_session="k", goal="help"),
            event("pre_llm_call", "child", platform="subagent", preview="help"),
            OK,
            event("subagent_stop", at=8.0, child_session="k", status="completed", summary="done"),
        ],
        LIVE,
    )
    assert [t.id for t in turn] == ["t1"]
    tool, approval, question, child = turn[0].steps
    assert (tool.kind, tool.detail, tool.outcome, tool.result, tool.seconds) == (
        StepKind.TOOL, "ls", "error", "no", 0.6,
    )  # fmt: skip
    assert (approval.text, approval.detail, approval.outcome) == ("rm x", "deletes", "deny")
    assert (question.text, question.choices, question.result) == ("Which?", ("a", "b"), "b")
    assert (child.text, child.outcome, child.result, child.seconds) == ("help", "completed", "done", 7.0)
    assert (turn[0].tokens_in, turn[0].tokens_out, turn[0].calls, turn[0].ended) == (10, 2, 1, 5.0)


def test_steps_and_turns_are_bounded() -> None:
    record = Record(keep=2)
    for number in range(200):
        record.add(event("pre_llm_call", f"t{number}", float(number)))
        record.add(event("on_session_end", f"t{number}", float(number)))
    for _ in range(MOST_STEPS + 7):
        record.add(event("pre_tool_call", "t199", 300.0, tool="terminal", call_id=""))
    turns = record.turns(LIVE)
    assert len(turns) < 60 and record.began == 200
    assert len(turns[-1].steps) == MOST_STEPS and turns[-1].left_out == 7


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ('{"output": "a b", "exit_code": 0, "error": null}', "a b"),
        ('{"output": "", "exit_code": 0}', "exit 0, no output"),
        ('{"output": "bad", "exit_code": 2}', "exit 2: bad"),
        ('{"question": "q", "choices_offered": null, "user_response": "blue"}', "blue"),
        ('{"responses": [{"user_response": "x"}, {"user_response": null}]}', "x; "),
        ('{"bytes_written": 3}', '{"bytes_written": 3}'),
        ("{torn", "{torn"),
        ("plain", "plain"),
        (None, ""),
    ],
)
def test_what_a_tool_gave_back(result: Any, shown: str) -> None:
    assert outcome(result) == shown


# -- from the files ---------------------------------------------------------------------------------------


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def hired(stage: Stage, **entry: Any) -> Path:
    """Add the worker `w` and return its folder."""
    stage.worker("w", **entry)
    return stage.paths.worker("w").dir


def feed(folder: Path, *events: Event) -> None:
    with (folder / FEED).open("a") as file:
        for each in events:
            line = {"v": 1, "t": each.time, "pid": 7, "attempt": each.attempt, "event": str(each.name)}
            line |= {"session": each.session, "platform": each.platform, "turn": each.turn, **each.data}
            file.write(json.dumps(line) + "\n")


def test_a_turn_that_was_cut_off_still_says_what_was_asked(stage: Stage) -> None:
    folder = hired(stage, word="stopped", phase="stopped", attempt=1)
    text = "line one\nline two " + "x" * 500
    save_turn(folder / "turns" / file_safe("t1"), {"turn": "t1"}, user=text, answer=None)
    feed(folder, BEGIN, CALL)
    (turn,) = read_transcript(stage.fleet, "w").documents()
    assert (turn["state"], turn["user"], turn["answer"], turn["user_cut"]) == ("cut", text, "", False)


def test_a_turn_of_which_only_its_file_is_left(stage: Stage) -> None:
    folder = hired(stage)
    for name, answer in (("t1", None), ("t2", "yes")):
        facts = {"turn": name, "platform": "cli", "began": 1.0, "time": 2.0}
        save_turn(folder / "turns" / file_safe(name), facts, user="ask", answer=answer)
    facts = {"turn": "child", "platform": "subagent", "time": 2.0}
    save_turn(folder / "turns" / file_safe("child"), facts, user="ask", answer="no")
    (folder / "turns" / "torn.json").write_text("{")
    found = {turn["turn"]: turn["state"] for turn in read_transcript(stage.fleet, "w").documents()}
    assert found == {"t1": "unknown", "t2": "ok"}


def test_rotation_loses_no_turn(stage: Stage) -> None:
    folder = hired(stage)
    for number in range(6):
        name = f"t{number}"
        began = 100.0 + number
        facts = {"turn": name, "platform": "cli", "began": began, "time": began + 0.5, "tools": ["terminal"]}
        save_turn(folder / "turns" / file_safe(name), facts, user=f"ask {number}", answer=f"say {number}")
        feed(folder, event("pre_llm_call", name, began), event("on_session_end", name, began + 0.5))
        if number in (1, 3):
            rotate(folder / FEED, 10)
    assert (folder / PREVIOUS).exists()
    found = read_transcript(stage.fleet, "w")
    turns = list(found.documents())
    assert [turn["answer"] for turn in turns] == [f"say {n}" for n in range(6)]
    assert [turn["number"] for turn in turns] == list(range(1, 7))
    assert turns[0]["state"] == "ok" and turns[0]["steps"][0]["text"] == "terminal"
    last = list(read_transcript(stage.fleet, "w", last=2).documents())
    assert [(turn["number"], turn["user"]) for turn in last] == [(5, "ask 4"), (6, "ask 5")]


def test_who_sent_what(stage: Stage) -> None:
    folder = hired(stage)
    feed(folder, BEGIN, OK, event("pre_llm_call", "t2", 9.0, preview="[ASYNC DELEGATION BATCH COMPLETE"))
    done = {"schema": 1, "id": "m-1", "sender": "cli", "receipt": {"turn": "t1"}}
    (folder / "inbox" / "done").mkdir(parents=True, exist_ok=True)
    (folder / "inbox" / "done" / "m-1.json").write_text(json.dumps(done))
    (folder / "inbox" / "done" / "m-2.json").write_text("{torn")
    first, second = read_transcript(stage.fleet, "w").documents()
    assert (first["message"], first["sender"]) == ("m-1", "cli")
    assert (second["message"], second["sender"]) == ("", "hermes")


def test_a_removed_worker_is_found_in_its_archive(stage: Stage) -> None:
    stage.worker("other")
    place = stage.paths.archive / "w-20260101-120000"
    (place / "worker" / "turns").mkdir(parents=True)
    feed(place / "worker", BEGIN, OK)
    with pytest.raises(UnknownWorker) as error:
        read_transcript(stage.fleet, "w")
    assert str(place) in str(error.value) and "--archive" in error.value.hint
    found = read_transcript(stage.fleet, "w", archive=str(place))
    assert [turn["state"] for turn in found.documents()] == ["ok"]
    assert list(read_transcript(stage.fleet, "w", archive=place.name).documents())
    with pytest.raises(UsageError, match="no archived conversation"):
        read_transcript(stage.fleet, "w", archive=str(stage.paths.root / "nowhere"))
    assert archives_of(stage.paths, "w-2") == []
    with pytest.raises(UnknownWorker, match="no worker"):
        read_transcript(stage.fleet, "never")


# -- rendering --------------------------------------------------------------------------------------------


def turn(**fields: Any) -> dict[str, Any]:
    plain_turn: dict[str, Any] = {
        "number": 1, "turn": "t1", "session": "s", "attempt": 1, "background": False, "began": 1.0,
        "ended": 4.0, "state": "ok", "error": "", "message": "", "sender": "", "user": "hello",
        "user_cut": False, "answer": "hi", "answer_cut": False, "steps": [], "steps_left_out": 0,
    }  # fmt: skip
    return plain_turn | fields


def step(**fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"kind": "tool", "time": 1.0, "text": "", "detail": "", "choices": []}
    return empty | {"outcome": "ok", "result": "", "seconds": 1.0} | fields


TEXTS = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("`~\x1b\x9b\n\r\u202e#─ ")), max_size=80)


@given(TEXTS)
def test_nothing_acts_on_a_terminal(text: str) -> None:
    steps = [step(text=text, detail=text, result=text), step(kind="question", text=text, choices=[text])]
    each = turn(user=text, answer=text, error=text, state="failed", steps=steps)
    head = {"schema": 1, "worker": "w"}
    for shown in (plain("w", iter([each])), markdown("w", iter([each])), document(head, iter([each]))):
        whole = "".join(shown)
        whole.encode()
        assert visible(whole) == whole


@given(TEXTS)
def test_json_is_one_document_and_says_the_same(text: str) -> None:
    shown = "".join(document({"schema": 1}, iter([turn(user=text), turn(answer=text)])))
    found = json.loads(shown)
    assert [found["turns"][0]["user"], found["turns"][1]["answer"]] == [text, text]
    assert json.loads("".join(document({"schema": 1}, iter([])))) == {"schema": 1, "turns": []}


@given(TEXTS)
def test_no_line_of_others_looks_like_ours(text: str) -> None:
    lines = "".join(plain("w", iter([turn(user=text, answer=text, steps=[step(text=text)])]))).split("\n")
    assert sum(line.startswith("── ") for line in lines) == 1


@given(TEXTS)
@example("```\n````\n~~~")
def test_content_cannot_end_its_fence(text: str) -> None:
    first, *inner, last, end = fenced(text).split("\n")
    fence = first.removesuffix("text")
    assert (last, end) == (fence, "") and set(fence) == {"`"}
    assert not any(line.strip().startswith(fence) for line in inner)
    shown = code(text)
    assert "\n" not in shown
    if shown:
        ticks = shown[: len(shown) - len(shown.lstrip("`"))]
        assert shown.endswith(ticks) and ticks not in shown[len(ticks) : -len(ticks)]


def test_a_huge_answer_is_written_whole_and_a_cut_one_is_marked() -> None:
    shown = "".join(plain("w", iter([turn(answer="x" * 5_000_000, answer_cut=True)])))
    assert shown.count("x") >= 5_000_000 and "[cut" in shown
    assert "[cut" not in "".join(markdown("w", iter([turn()])))


# -- --since ----------------------------------------------------------------------------------------------

NOW = time.mktime((2026, 11, 29, 12, 0, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("", NOW), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172800), ("0s", 0), ("11:00", 3600),
        ("11:00:30", 3570), ("13:00", 23 * 3600), ("2026-11-29", 43200), ("2026-11-29T11:30", 1800),
        ("1795000000", NOW - 1795000000),
    ],
)  # fmt: skip
def test_since_takes_a_moment_as_people_write_it(text: str, ago: float) -> None:
    assert parse_since(text, now=NOW) == pytest.approx(NOW - ago)


@pytest.mark.parametrize(
    "text",
    ["25:00", "1:5", "yesterday", "-5m", "5M", " 10m", "nan", "inf", "1e9s", "²m", "2026-02-30", "0001-01-01", "9999-12-31",
     "99999999999999999999", "2026-11-30", "10 m"],
)  # fmt: skip
def test_since_refuses_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_since(text, now=NOW)
    assert "--since" in str(error.value) and error.value.hint
