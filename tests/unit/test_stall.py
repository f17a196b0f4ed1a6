"""A turn of which nothing comes: what is called a stall, what is none, and what follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.alerts import alerts
from orchestrator.fleet.events import EventName
from orchestrator.fleet.observation import Worked
from orchestrator.fleet.picture import picture
from orchestrator.fleet.spec import StallPolicy, StallStep
from tests.unit.world import NAME, World


def hanging(then: StallStep = StallStep.REPORT, *, tool: bool = False) -> World:
    """Return a world in whose turn nothing happens any more."""
    world = World(stall=StallPolicy(then=then), hung=True)
    world.want()
    world.run(5)
    world.send("m1", "work")
    world.run(3)
    assert world.worker.talk.busy
    if tool:
        world._emit(EventName.TOOL_START, tool="terminal", call_id="c1", summary="make all")
        world.run(1)
    return world


def said(world: World, text: str) -> int:
    """Return how often something was noted."""
    return sum(isinstance(each, act.Note) and each.text == text for each in world.log)


def interrupts(world: World) -> int:
    """Return how often C-c was pressed."""
    return sum(isinstance(each, act.Press) and "C-c" in each.keys for each in world.log)


def test_silence_is_reported_once_and_nothing_else_is_done() -> None:
    world = hanging()
    world.run(440, step=0.5)
    assert said(world, "stalled") == 0
    world.run(2000, step=0.5)
    assert (said(world, "stalled"), interrupts(world), world.worker.attempt) == (1, 0, 1)
    (alert,) = alerts([world.worker], world.now)
    assert "it last did: thinking" in alert["text"]
    assert picture(world.worker)["stalled"]["done"] == "reported"


def test_a_tool_may_be_silent_for_longer() -> None:
    world = hanging(tool=True)
    world.run(1190, step=0.5)
    assert said(world, "stalled") == 0
    world.run(20, step=0.5)
    assert said(world, "stalled") == 1
    assert "make all" in alerts([world.worker], world.now)[0]["text"]


def _event(world: World) -> None:
    world._emit(EventName.RESPONSE)


def _line(world: World) -> None:
    world.output += 1


def _work(world: World) -> None:
    world.seen.append(Worked(NAME, world.worker.attempt))


def _sleep(world: World) -> None:
    world.now += 10_000


def _clock_back(world: World) -> None:
    world.now -= 100


@pytest.mark.parametrize("happens", [_event, _line, _work, _sleep, _clock_back])
def test_what_is_no_stall(happens: Callable[[World], None]) -> None:
    world = hanging(StallStep.RESTART)
    for _ in range(4):
        world.run(300, step=0.5)
        if happens in (_sleep, _clock_back):
            happens(world)
            world.run(20, step=0.5)
            assert world.worker.quiet.seconds <= 325, "what nobody watched does not count"
            return
        happens(world)
        world.run(3)
    assert (said(world, "stalled"), interrupts(world), world.worker.attempt) == (0, 0, 1)


def test_a_stall_that_goes_on_is_over() -> None:
    world = hanging()
    world.run(460, step=0.5)
    _event(world)
    world.run(2)
    assert said(world, "goes on") == 1
    assert alerts([world.worker], world.now) == []
    assert picture(world.worker)["stalled"] is None


def test_an_interrupt_where_the_role_says_so() -> None:
    world = hanging(StallStep.INTERRUPT)
    world.run(455, step=0.5)
    assert (said(world, "stalled"), interrupts(world)) == (1, 0), "one step at a time"
    world.run(1000, step=0.5)
    assert (interrupts(world), world.worker.attempt) == (1, 1), (
        "an interrupt that is not heard is the last step"
    )


def test_a_restart_where_the_role_says_so_goes_on_with_the_turn() -> None:
    world = hanging(StallStep.RESTART)
    session = world.worker.session
    world.run(520, step=0.5)
    assert (interrupts(world), world.worker.attempt) == (1, 1)
    world.run(60, step=0.5)
    assert (interrupts(world), world.worker.attempt) == (1, 2)
    world.hung = False
    world.run(20)
    assert world.worker.session == session
    assert any(text.startswith("nudge") for text in world.texts.values())
    assert not world.worker.crashes


def test_a_restart_waits_for_delegated_children() -> None:
    world = hanging(StallStep.RESTART)
    world._emit(EventName.CHILD_START, child_session="kid")
    world.run(3000, step=0.5)
    assert (said(world, "stalled"), interrupts(world), world.worker.attempt) == (1, 0, 1)
