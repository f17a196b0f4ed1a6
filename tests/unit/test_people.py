"""Dialogs and answers in the modelled world: an answer reaches the dialog it names, or none."""

from __future__ import annotations

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.decide import decide
from orchestrator.fleet.dialog import approval_order
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.prompt import PromptKind
from orchestrator.fleet.worker import OpKind, Phase, Want
from tests.unit.room import Ask, Room

QUESTION = ("red", "blue", "Other (type your answer)")


def room() -> Room:
    world = Room()
    world.work()
    return world


def opened(world: Room, text: str = "rm -rf precious", **fields: object) -> Ask:
    ask = world.ask(text, **fields)
    world.run(1)
    return ask


def errors(world: Room) -> dict[str, str]:
    moves = [a.move for a in world.log if isinstance(a, act.MoveMessage)]
    return {move.message: move.error for move in moves if move.error}


def test_a_dialog_has_a_number_a_deadline_and_is_announced_once() -> None:
    world = room()
    opened(world)
    (dialog,) = world.dialogs
    assert (dialog.number, dialog.kind, dialog.choices[0]) == (1, "approval", "Allow once")
    assert dialog.deadline == pytest.approx(world.open[0].opened + 60, abs=0.2)
    assert world.worker.word == "waiting"
    world.run(5)
    assert [a.dialog.number for a in world.log if isinstance(a, act.Alert)] == [1]


@pytest.mark.parametrize("choice", ["once", "session", "always", "deny"])
def test_an_approval_is_answered(choice: str) -> None:
    world = room()
    ask = opened(world)
    world.answer("m-1", 1, choice)
    world.run(3)
    assert ask.answer == choice
    assert world.inbox["m-1"] == "done"
    assert world.worker.op is None


def test_a_second_dialog_of_equal_text_has_another_number_and_a_stale_id_reaches_nothing() -> None:
    world = room()
    first = opened(world)
    world.end(first, "once")
    second = world.ask()
    world.run(2)
    assert [d.number for d in world.dialogs] == [2]
    world.answer("m-1", 1, "once")
    world.run(8)
    assert world.inbox["m-1"] == "failed"
    assert errors(world)["m-1"] == "refused: #1 was answered (once)"
    assert second in world.open


@pytest.mark.parametrize("told", [True, False], ids=["by-event", "by-screen"])
def test_a_person_is_faster_and_the_next_dialog_slips_in(told: bool) -> None:
    """Between the brain's look and the key the first is answered, and one of the same text stands there."""
    world = room()
    world.plugin = told
    first = opened(world, told=told)
    world.run(6)
    number = world.dialogs[0].number
    second: list[Ask] = []

    def slip() -> None:
        world.end(first, "deny")
        second.append(world.ask(told=told))

    world.at_key = slip
    world.answer("m-1", number, "once")
    world.run(12)
    assert second[0] in world.open, "the second one was answered by the first one's id"
    assert world.inbox["m-1"] == "failed"
    assert number not in [d.number for d in world.dialogs]


def test_an_equal_dialog_without_an_event_is_known_by_its_countdown() -> None:
    world = room()
    world.plugin = False
    first = opened(world, told=False)
    world.run(10)
    number = world.dialogs[0].number
    world.end(first, "once")
    world.ask(told=False)
    world.run(6)
    assert world.dialogs[0].number == number + 1


def test_too_little_time_is_left_for_a_key() -> None:
    world = room()
    ask = opened(world, timeout=5)
    world.run(2.8)
    world.answer("m-1", 1, "once")
    world.run(1)
    assert world.inbox["m-1"] == "failed"
    assert "were left to it" in errors(world)["m-1"]
    assert ask.answer == ""


@pytest.mark.parametrize("kind", [PromptKind.APPROVAL, PromptKind.OPEN_QUESTION])
def test_what_nobody_answers_is_counted(kind: PromptKind) -> None:
    world = room()
    opened(world, "which?", timeout=8, kind=kind, choices=QUESTION if kind != PromptKind.APPROVAL else ())
    world.run(9)
    assert world.worker.timed_out == 1
    assert world.dialogs == ()
    assert any("timed out" in d.text for d in world.worker.decided)
    opened(world, "and this?", timeout=8)
    world.run(2)
    world.end(world.open[0], "deny")
    world.run(2)
    assert world.worker.timed_out == 1, "a refusal in time is none"


def test_a_choice_is_picked() -> None:
    world = room()
    ask = opened(world, "Which wire?", kind=PromptKind.QUESTION, choices=QUESTION)
    assert world.dialogs[0].choices == ("red", "blue")
    world.answer("m-1", 1, "choice", "2")
    world.run(3)
    assert (ask.answer, world.inbox["m-1"]) == ("blue", "done")


@pytest.mark.parametrize("kind", [PromptKind.QUESTION, PromptKind.OPEN_QUESTION])
def test_a_text_is_typed(kind: PromptKind) -> None:
    world = room()
    ask = opened(world, "Which wire?", kind=kind, choices=QUESTION)
    world.answer("m-1", 1, "text", "the green one")
    world.run(5)
    assert (ask.answer, world.inbox["m-1"]) == ("the green one", "done")


def test_a_text_is_not_typed_over_a_persons() -> None:
    world = room()
    ask = opened(world, "What name?", kind=PromptKind.OPEN_QUESTION, choices=QUESTION)
    ask.typed = "Bo"
    world.run(1)
    world.answer("m-1", 1, "text", "Alice")
    world.run(8)
    assert ask.typed == "Bo"
    assert world.inbox["m-1"] == "failed"


@pytest.mark.parametrize(
    ("choice", "kind", "why"),
    [
        ("choice", PromptKind.APPROVAL, "it is of the kind approval"),
        ("text", PromptKind.SUDO, "a password is only ever typed by a person"),
        ("once", PromptKind.SECRET, "a password is only ever typed by a person"),
        ("once", PromptKind.QUESTION, "it is of the kind question"),
    ],
)
def test_the_wrong_kind_is_refused(choice: str, kind: PromptKind, why: str) -> None:
    world = room()
    told = kind in (PromptKind.APPROVAL, PromptKind.QUESTION)
    opened(world, kind=kind, choices=QUESTION if kind == PromptKind.QUESTION else (), told=told)
    world.run(2)
    world.answer("m-1", 1, choice, "1")
    world.run(8)
    assert why in errors(world)["m-1"]
    assert len(world.open) == 1


def test_always_is_refused_where_it_is_not_offered() -> None:
    world = room()
    ask = opened(world, choices=("Allow once", "Allow for this session", "Deny"))
    world.answer("m-1", 1, "always")
    world.run(3)
    assert "does not offer 'always', only once, session, deny" in errors(world)["m-1"]
    assert ask in world.open


def test_its_death_fails_the_answer() -> None:
    world = room()
    opened(world)
    world.run(1)
    world.answer("m-1", 1, "once")
    world.tick()
    assert world.worker.op is not None and world.worker.op.kind is OpKind.ANSWER
    world.kill()
    world.run(8)
    assert world.inbox["m-1"] == "failed"
    assert "the process that it was meant for has ended" in errors(world)["m-1"]
    assert world.worker.phase is Phase.UP and not world.worker.flights


def test_a_stop_pushes_it_aside() -> None:
    world = room()
    opened(world)
    world.answer("m-1", 1, "once")
    world.tick()
    world.want(Want.STOPPED)
    world.run(20)
    assert world.inbox["m-1"] == "failed"
    assert world.worker.phase is Phase.STOPPED


def test_a_delivery_stands_aside_for_an_answer_and_goes_on() -> None:
    world = room()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now
    world.run(3)
    assert world.worker.word == "ready"
    world.lag = 1.0
    world.send("m-5", "next work")
    world.run(0.6)
    assert world.worker.op is not None and world.worker.op.step == "typing"
    ask = world.ask()  # of a /background conversation
    world.run(1)
    world.answer("m-6", world.dialogs[0].number, "once")
    world.run(4)
    assert (ask.answer, world.inbox["m-6"]) == ("once", "done")
    world.run(6)
    assert world.inbox["m-5"] == "done"
    assert [text for _, text in world.db] == ["work", "next work"]


def test_one_behind_another_is_answered_when_its_turn_comes() -> None:
    world = room()
    first = opened(world, "rm -rf a")
    second = world.ask("rm -rf b")
    world.run(1)
    assert [d.number for d in world.dialogs] == [1, 2]
    world.answer("m-1", 2, "deny")
    world.run(8)
    assert "#1 stands before it" in errors(world)["m-1"]
    world.end(first, "once")
    world.run(2)
    world.answer("m-2", 2, "deny")
    world.run(4)
    assert second.answer == "deny"


@pytest.mark.parametrize("carried_out", [0, 1, 2])
@pytest.mark.parametrize("then", ["stays", "is-replaced"])
def test_supervisor_killed_at_every_instant(carried_out: int, then: str) -> None:
    """The first may be answered by its own answer; the second, of the same text, never is."""
    for instant in range(24):
        world = room()
        first = opened(world)
        world.answer("m-1", 1, "once")
        world.run(instant * 0.05, step=0.05)
        world.kill_supervisor(carried_out)
        second = None
        if then == "is-replaced":
            if first in world.open:
                world.end(first, "deny")
            second = world.ask()
        world.run(16)
        assert world.inbox["m-1"] in ("done", "failed"), (instant, world.worker.op)
        if second is not None:
            assert second in world.open, instant
        else:
            assert (first.answer, world.inbox["m-1"]) == ("once", "done"), instant


@pytest.mark.parametrize("pressed", [True, False])
@pytest.mark.parametrize("then", ["stays", "is-replaced"])
def test_supervisor_killed_between_record_and_key(pressed: bool, then: str) -> None:
    world = room()
    first = opened(world)
    world.answer("m-1", 1, "once")
    world.kill_supervisor_at_key(pressed=pressed)
    assert (first in world.over) is pressed
    second = None
    if then == "is-replaced":
        if not pressed:
            world.end(first, "deny")
        second = world.ask()
    world.run(20)
    assert world.worker.op is None
    assert second is None or second in world.open, "pressed again, into another dialog"
    answered = pressed or then == "stays"
    assert (first.answer, world.inbox["m-1"]) == (("once", "done") if answered else ("deny", "failed"))


def test_a_key_that_was_pressed_counts_though_its_event_is_read_late() -> None:
    world = room()
    first = opened(world)
    world.answer("m-1", 1, "once")
    world.kill_supervisor_at_key(pressed=True)
    world.now += 8
    told, world.seen = world.seen, []
    world.fleet, _ = decide(world.fleet, [], world.now)
    world.seen = told
    world.run(5)
    assert (first.answer, world.inbox["m-1"]) == ("once", "done"), errors(world)


def test_an_answer_overtakes_what_waits() -> None:
    world = room()
    ask = opened(world)
    world.send("m-1", "a text that waits")
    world.order("m-2", MessageKind.INTERRUPT)
    world.answer("m-3", 1, "session")
    world.run(3)
    assert ask.answer == "session"


@pytest.mark.parametrize(
    ("choices", "long", "order"),
    [
        (("Allow once", "Deny"), False, ("once", "deny")),
        (
            ("Allow once", "Allow for this session", "Deny", "Show full command"),
            True,
            ("once", "session", "deny", "view"),
        ),
        (("cli.tui.approval_once", "cli.tui.approval_deny"), False, ("once", "deny")),
        (("einmal", "Sitzung", "nein"), False, ("once", "session", "deny")),
        (("a", "b", "c", "d", "e"), True, ("once", "session", "always", "deny", "view")),
        (("a", "b", "c", "d"), True, ()),
        (("a", "b", "c", "d", "e"), False, ()),
    ],
)
def test_what_the_numbers_of_an_approval_mean(
    choices: tuple[str, ...], long: bool, order: tuple[str, ...]
) -> None:
    assert approval_order(choices, long=long) == order
