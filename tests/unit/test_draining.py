"""drain and pause: what is finished, what is begun, and what is kept."""

from __future__ import annotations

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.memory import dump, load
from orchestrator.fleet.worker import Phase, Want
from tests.unit.world import World


def in_a_turn() -> World:
    """Return a world whose worker is in a turn of ten seconds, with a second message behind it."""
    world = World()
    world.want()
    world.run(3)
    world.send("m-1", "hello")
    while world.hermes is None or not world.hermes.told:
        world.run(0.1)
    world.hermes.turn_ends = world.now + 10
    world.send("m-2", "later")
    return world


def nudges(world: World) -> int:
    return sum(isinstance(each, act.Nudge) for each in world.log)


def test_a_drain_lets_the_turn_end_and_begins_nothing() -> None:
    world = in_a_turn()
    world.want(Want.STOPPED, drain=True)
    world.run(8)
    assert world.worker.word == "busy"
    assert load(dump(world.worker)).draining
    world.run(10)
    assert (world.worker.phase, world.worker.word) == (Phase.STOPPED, "stopped")
    assert not any(isinstance(each, act.Signal) for each in world.log), "it left by /exit"
    assert (world.inbox["m-1"], world.inbox["m-2"]) == ("done", "new")
    world.want(Want.RUN, 2)
    world.run(10)
    assert world.inbox["m-2"] == "done"
    assert nudges(world) == 0


def test_a_drain_of_an_idle_worker_begins_no_text_that_comes_with_it() -> None:
    world = World()
    world.want()
    world.run(3)
    world.send("m-1", "hello")
    world.want(Want.STOPPED, drain=True)
    world.run(6)
    assert (world.worker.word, world.inbox["m-1"], world.db) == ("stopped", "new", [])


def test_start_takes_a_drain_back_and_stop_ends_it_at_once() -> None:
    world = in_a_turn()
    world.want(Want.STOPPED, drain=True)
    world.run(2)
    world.want(Want.RUN, 2)
    world.run(15)
    assert (world.worker.attempt, world.inbox["m-2"]) == (1, "done")
    world = in_a_turn()
    world.want(Want.STOPPED, drain=True)
    world.run(1)
    world.want(Want.STOPPED)
    world.run(3)
    assert world.worker.word == "stopped"
    world.want(Want.RUN, 2)
    world.run(5)
    assert nudges(world) == 0, "a stop means that its turn is over"


@pytest.mark.parametrize("how", ["pause", "death while draining"])
def test_a_turn_that_was_cut_is_gone_on_with(how: str) -> None:
    world = in_a_turn()
    world.unfinished = True
    session = world.worker.session
    if how == "pause":
        world.want(Want.PAUSED)
    else:
        world.want(Want.STOPPED, drain=True)
        world.run(1)
        world.kill()
    world.run(3)
    assert world.worker.word == ("paused" if how == "pause" else "stopped")
    assert nudges(world) == 0
    world.want(Want.RUN, 2)
    world.run(5)
    assert nudges(world) == 1
    assert world.worker.resume == session


def test_a_stop_of_a_paused_worker_forgets_the_cut_turn() -> None:
    world = in_a_turn()
    world.unfinished = True
    world.want(Want.PAUSED)
    world.run(3)
    world.want(Want.STOPPED)
    world.run(1)
    assert (world.worker.word, world.worker.why) == ("stopped", "stopped on request")
    world.want(Want.RUN, 2)
    world.run(5)
    assert nudges(world) == 0
