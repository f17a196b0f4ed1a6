"""drain and pause, in the modelled world."""

from __future__ import annotations

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.observation import Gone
from orchestrator.fleet.worker import Outcome, OutcomeKind, Phase, Want
from tests.unit.test_decide import up
from tests.unit.world import NAME, THINK, World


def busy() -> World:
    """Return a worker in the middle of a turn that takes another three seconds."""
    world = up()
    world.send("m-1", "hello")
    while not (world.hermes and world.hermes.told):
        world.run(0.1)
    world.hermes.turn_ends = world.now + 3
    assert world.worker.word == "busy"
    return world


def nudges(world: World) -> int:
    return sum(isinstance(action, act.Nudge) for action in world.log)


def test_drain_lets_the_turn_end_and_begins_no_new_text() -> None:
    world = busy()
    world.send("m-2", "later")
    world.want(Want.STOPPED, drain=True)
    world.run(2)
    assert world.hermes is not None and world.worker.word == "busy"
    assert world.worker.draining
    world.run(20)
    assert world.hermes is None and world.worker.word == "stopped"
    assert world.inbox == {"m-1": "done", "m-2": "new"}
    assert not any(isinstance(action, act.Signal) for action in world.log), "it left by /exit"
    world.want(generation=2)
    world.run(15)
    assert [text for _, text in world.db] == ["hello", "later"]
    assert nudges(world) == 0, "nothing was cut"


def test_drain_of_an_idle_worker_stops_it() -> None:
    world = up()
    world.want(Want.STOPPED, drain=True)
    world.run(5)
    assert world.worker.word == "stopped"


def test_an_interrupt_reaches_a_draining_worker() -> None:
    world = busy()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now + 1000
    world.want(Want.STOPPED, drain=True)
    world.run(1)
    world.order("m-2", MessageKind.INTERRUPT)
    world.run(20)
    assert world.worker.word == "stopped"


@pytest.mark.parametrize("instead", [Want.STOPPED, Want.PAUSED])
def test_stop_and_pause_end_a_drain_at_once(instead: Want) -> None:
    world = busy()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now + 1000
    world.want(Want.STOPPED, drain=True)
    world.run(5)
    world.want(instead)
    world.run(60)
    assert world.worker.phase is Phase.STOPPED
    assert world.worker.word == str(instead)


def test_start_takes_a_drain_back() -> None:
    world = busy()
    world.send("m-2", "later")
    world.want(Want.STOPPED, drain=True)
    world.run(1)
    world.want(generation=2)
    world.run(15)
    assert world.worker.attempt == 1
    assert [text for _, text in world.db] == ["hello", "later"]


def test_a_worker_that_dies_while_it_drains_stays_stopped_and_goes_on_at_start() -> None:
    world = busy()
    world.want(Want.STOPPED, drain=True)
    world.run(0.5)
    world.kill()
    world.run(10)
    assert world.worker.word == "stopped"
    assert world.worker.attempt == 1
    world.want(generation=2)
    world.run(10)
    assert nudges(world) == 1


def test_pause_cuts_the_turn_and_start_goes_on_with_it() -> None:
    world = busy()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now + 1000
    session = world.hermes.session
    world.want(Want.PAUSED)
    world.run(60)
    assert world.worker.word == "paused"
    world.send("m-2", "later")
    world.run(20)
    assert world.inbox["m-2"] == "new"
    world.want(generation=2)
    world.run(15)
    assert world.hermes is not None and world.hermes.session == session
    assert [text for _, text in world.db] == ["hello", "nudge 2", "later"]
    assert world.worker.crashes == ()
    assert world.worker.restarts == 0


def test_a_cut_turn_is_told_of_though_the_next_attempt_dies_while_it_boots() -> None:
    world = busy()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now + 1000
    world.run(1)
    world.kill()
    world.run(0.7)
    assert world.worker.attempt == 2
    assert world.hermes is not None
    world.hermes, died = None, world.worker.attempt
    world.seen.append(Gone(NAME, died, Outcome(OutcomeKind.SIGNALLED, 9)))
    world.run(20)
    assert world.worker.attempt == 3
    assert [text for _, text in world.db] == ["hello", "nudge 3"]


def test_pause_of_an_idle_worker_tells_it_nothing_at_start() -> None:
    world = up()
    world.want(Want.PAUSED)
    world.run(10)
    world.want(generation=2)
    world.run(5)
    assert nudges(world) == 0


def test_stop_of_a_paused_worker_forgets_the_cut_turn() -> None:
    world = busy()
    assert world.hermes is not None
    world.hermes.turn_ends = world.now + 1000
    world.want(Want.PAUSED)
    world.run(60)
    world.want(Want.STOPPED)
    world.run(1)
    assert world.worker.word == "stopped"
    world.want(generation=2)
    world.run(5)
    assert nudges(world) == 0


@pytest.mark.parametrize("carried_out", [0, 1, 2])
@pytest.mark.parametrize("want", [Want.STOPPED, Want.PAUSED])
def test_supervisor_killed_at_every_instant_of_a_drain_and_a_pause(want: Want, carried_out: int) -> None:
    for instant in range(0, 50, 5):
        world = busy()
        world.want(want, drain=want is Want.STOPPED)
        world.run(instant * (3 + THINK) / 50 + 0.1)
        world.kill_supervisor(carried_out)
        world.run(90, step=0.25)
        assert world.worker.word == str(want), instant
        assert world.hermes is None
        assert world.inbox["m-1"] == "done"
