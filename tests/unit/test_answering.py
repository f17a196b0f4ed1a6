"""Answers from outside, as far as commands go: what is refused before anything is sent, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import people
from orchestrator.cli.listing import doing
from orchestrator.errors import HermuxError, UnknownWorker, UsageError, WorkerFailed
from orchestrator.store import inbox
from tests.unit.stage import Stage
from tests.until import until


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as made:
        yield made


def asks(
    stage: Stage, name: str, number: int, kind: str = "approval", *choices: str, behind: int = 0
) -> None:
    """Have a worker ask; `behind` is the number of another dialog that waits behind."""
    numbers = [number, *([behind] if behind else [])]
    dialogs: list[dict[str, Any]] = [
        {
            "id": f"{name}#{each}",
            "kind": kind,
            "text": "rm -rf build",
            "choices": list(choices),
            "since": time.time() - each,
            "deadline": time.time() + 50,
            "in_pane": each == number,
        }
        for each in numbers
    ]
    stage.worker(name, word="waiting", waiting=dialogs[0], dialogs=dialogs)


def test_without_an_id_it_is_the_one_in_the_pane_and_stays_that_one(stage: Stage) -> None:
    asks(stage, "coder-1", 4, behind=3)
    answered = people.approve(stage.fleet, "coder-1", wait=False)
    assert (answered.id, answered.place) == ("coder-1#4", "new")
    (message,) = inbox.list_new(stage.paths.worker("coder-1"))
    assert (message.dialog, message.choice, str(message.kind)) == (4, "once", "answer")


@pytest.mark.parametrize(
    ("target", "told", "hint"),
    [
        ("coder-1#2", "coder-1#2 is not open", "open now: coder-1#3"),
        ("coder-1#x", "'coder-1#x' is no id of a dialog", "hermux inbox"),
        ("#3", "'#3' is no id of a dialog", "hermux inbox"),
        ("qa-1", "qa-1 asks nobody anything: it is ready", "hermux inbox"),
        ("qa-1#1", "qa-1#1 is not open", "hermux inbox"),
    ],
)
def test_what_is_not_open_is_refused(stage: Stage, target: str, told: str, hint: str) -> None:
    asks(stage, "coder-1", 3)
    stage.worker("qa-1")
    for answer in (people.approve, people.deny):
        with pytest.raises(UsageError) as raised:
            answer(stage.fleet, target)
        assert str(raised.value) == told
        assert hint in raised.value.hint
    assert not inbox.list_new(stage.paths.worker("coder-1"))


def test_one_worker_at_a_time(stage: Stage) -> None:
    asks(stage, "coder-1", 1)
    asks(stage, "coder-2", 1)
    with pytest.raises(
        UnknownWorker, match="'coder-\\*' means 2 workers, and this takes one: coder-1, coder-2"
    ):
        people.approve(stage.fleet, "coder-*")
    assert people.approve(stage.fleet, "*-2", wait=False).worker == "coder-2"


@pytest.mark.parametrize(
    ("kind", "choices", "call", "told"),
    [
        ("approval", (), {"text": "yes"}, "is no question but an approval"),
        ("confirm", (), {"choice": 1}, "is no question but a confirmation"),
        ("sudo", (), {"text": "hunter2"}, "asks for a password: hermux only shows it"),
        ("secret", (), {"text": "hunter2"}, "asks for a secret: hermux only shows it"),
        ("open_question", (), {"choice": 1}, "has no choices"),
        ("question", ("red", "blue"), {"choice": 3}, "has no choice 3"),
        ("question", ("red", "blue"), {}, "an answer is a text or a choice"),
        ("question", ("red", "blue"), {"text": "a", "choice": 1}, "an answer is a text or a choice"),
        ("open_question", (), {"text": "one\n" * 9}, "cannot be typed into a dialog: more than 4 lines"),
        (
            "open_question",
            (),
            {"text": "x" * 500},
            "cannot be typed into a dialog: longer than 400 characters",
        ),
    ],
)
def test_an_answer_that_does_not_fit(
    stage: Stage, kind: str, choices: tuple[str, ...], call: dict[str, Any], told: str
) -> None:
    asks(stage, "coder-1", 1, kind, *choices)
    with pytest.raises(UsageError) as raised:
        people.answer(stage.fleet, "coder-1#1", **call)
    assert told in str(raised.value)
    assert raised.value.hint
    assert not inbox.list_new(stage.paths.worker("coder-1"))


@pytest.mark.parametrize("kind", ["sudo", "secret", "question"])
def test_what_cannot_be_approved(stage: Stage, kind: str) -> None:
    asks(stage, "coder-1", 1, kind, "red")
    with pytest.raises(UsageError):
        people.approve(stage.fleet, "coder-1")
    with pytest.raises(UsageError, match="'forever' is no way to approve"):
        people.approve(stage.fleet, "coder-1", "forever")


def test_a_text_that_is_a_choice_picks_it(stage: Stage) -> None:
    asks(stage, "coder-1", 1, "question", "red", "blue")
    assert people.answer(stage.fleet, "coder-1", "blue", wait=False).answer == "blue"
    (message,) = inbox.list_new(stage.paths.worker("coder-1"))
    assert (message.choice, message.text) == ("choice", "2")


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        ("refused: #1 was answered (once)", UsageError, "coder-1#1 was not answered: #1 was answered"),
        ("the key was pressed, and nothing came", WorkerFailed, "the answer to coder-1#1 failed: the key"),
        (None, None, ""),
    ],
)
def test_what_came_of_it(stage: Stage, error: str | None, kind: type[HermuxError] | None, told: str) -> None:
    def part() -> None:
        worker = stage.paths.worker("coder-1")
        message = until(lambda: inbox.list_new(worker))[0]
        inbox.take(worker, message.id)
        inbox.finish(worker, message.id, error=error, receipt=None if error else {"method": "key"})

    asks(stage, "coder-1", 1)
    stage.play(part)
    if kind is None:
        assert people.deny(stage.fleet, "coder-1").place == "done"
        return
    with pytest.raises(kind) as raised:
        people.deny(stage.fleet, "coder-1", "because")
    assert told in str(raised.value)
    assert not inbox.list_new(stage.paths.worker("coder-1")), "no reason is sent for what was not denied"


def test_the_inbox_has_dialogs_and_messages(stage: Stage) -> None:
    asks(stage, "coder-1", 7, behind=8)
    stage.worker("qa-1", word="held", why="auth: HTTP 401")
    stage.fleet.worker("coder-1").send("wait for it")
    stage.fleet.worker("qa-1").send("and this")
    assert [each["id"] for each in people.asked(stage.fleet)] == ["coder-1#8", "coder-1#7"]
    waits = {each["worker"]: each["waits_for"] for each in people.undelivered(stage.fleet)}
    assert waits == {
        "coder-1": "coder-1#7 is to be answered first",
        "qa-1": "the worker is held: auth: HTTP 401",
    }
    assert doing(stage.fleet.picture().workers["coder-1"]) == "approval #7 (49 s left): rm -rf build"
