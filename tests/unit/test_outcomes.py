"""Each end has its own consequence: restarted, stopped, held, or begun anew with a hand-over."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.fleet import action as act
from orchestrator.fleet.handover import Past, text
from orchestrator.fleet.outcome import Then, consequence
from orchestrator.fleet.spec import Restart, RestartPolicy
from orchestrator.fleet.worker import Outcome, OutcomeKind, Phase
from tests.unit.world import World

MORE = int(os.environ.get("HERMUX_TEST_MORE", "1"))
LEFT = Outcome(OutcomeKind.LEFT, why="a person")
KILLED = Outcome(OutcomeKind.SIGNALLED, 9)


def up(policy: Restart = Restart.TRANSIENT) -> World:
    world = World(restart=RestartPolicy(policy=policy))
    world.want()
    world.run(3)
    return world


def busy(world: World, ident: str) -> None:
    world.send(ident, f"text {ident}")
    while not (world.hermes and world.hermes.told):
        world.tick()
        world.now += 0.05
    world.hermes.turn_ends = world.now + 99


@pytest.mark.parametrize(
    ("policy", "outcome", "then"),
    [
        (Restart.PERMANENT, LEFT, Then.RESTART),
        (Restart.TRANSIENT, LEFT, Then.STOP),
        (Restart.TEMPORARY, LEFT, Then.STOP),
        (Restart.PERMANENT, KILLED, Then.RESTART),
        (Restart.TRANSIENT, KILLED, Then.RESTART),
        (Restart.TEMPORARY, KILLED, Then.HOLD),
        (Restart.TRANSIENT, Outcome(OutcomeKind.EXITED), Then.RESTART),
    ],
)
def test_the_words_of_operators(policy: Restart, outcome: Outcome, then: Then) -> None:
    assert consequence(RestartPolicy(policy=policy), outcome)[0] is then


def test_a_person_who_leaves_stops_it_until_somebody_starts_it() -> None:
    world = up()
    world.leave()
    world.run(20)
    assert world.hermes is None and world.worker.phase is Phase.STOPPED
    assert "a person ended it" in world.worker.why and "hermux start coder-1" in world.worker.why
    assert world.worker.crashes == () and world.worker.ended_by.startswith("left(")
    world.want(generation=2)
    world.run(4)
    assert world.worker.word == "ready" and world.worker.left == ""


def test_permanent_comes_back_also_then() -> None:
    world = up(Restart.PERMANENT)
    world.leave()
    world.run(4)
    assert world.worker.word == "ready" and world.worker.attempt == 2


def test_temporary_is_held_with_its_last_words() -> None:
    world = up(Restart.TEMPORARY)
    world.kill()
    world.run(20)
    assert world.worker.phase is Phase.HELD and world.worker.attempt == 1
    assert "restart: temporary" in world.worker.hold and "last words" in world.worker.hold


def test_a_used_up_conversation_goes_on_in_a_new_one_that_is_told_first() -> None:
    world = up()
    busy(world, "m-1")
    old = world.worker.session
    world.send("m-2", "the next")
    world.overflow()
    world.run(15)
    assert world.worker.attempt == 2 and world.worker.session not in ("", old)
    assert [said for _, said in world.db] == ["text m-1", "hand-over 2", "the next"]
    assert world.worker.crashes == () and world.worker.anew is not None and world.worker.anew.worked
    assert [a.resume for a in world.log if isinstance(a, act.Launch)] == ["", ""]
    assert any("NEW CONVERSATION" in a.text for a in world.log if isinstance(a, act.Note))


def test_a_new_conversation_that_is_too_long_as_well_is_held() -> None:
    world = up()
    busy(world, "m-1")
    world.overflow()
    while not (world.hermes and world.hermes.asked.startswith("hand-over") and world.hermes.told):
        world.tick()
        world.now += 0.05
    world.overflow()
    world.run(10)
    assert world.worker.word == "held" and world.worker.pause.startswith("context:")
    assert world.worker.attempt == 2


def test_a_session_that_is_gone_is_begun_anew() -> None:
    world = up()
    world.send("m-1", "one")
    world.run(4)
    world.gone.add(world.worker.session)
    world.kill()
    world.run(8)
    assert [said for _, said in world.db] == ["one", "hand-over 2"]
    assert world.worker.anew is not None and world.worker.anew.why.endswith("is gone")


def test_a_hand_over_is_bounded_and_says_what_was_not_finished() -> None:
    past = [Past("a" * 9000, "b" * 9000, "ok", ("c" * 9000,) * 99)] * 50 + [Past("last", "", "cut off")]
    told = text("why", past, "/turns")
    assert len(told) < 20_000
    assert "7500 characters more" in told and told.endswith("You had not finished it.")


ENDS = st.lists(
    st.tuples(
        st.sampled_from(["run", "send", "kill", "leave", "overflow", "gone", "supervisor"]), st.integers(0, 9)
    ),
    max_size=16,
)


@settings(max_examples=15 * MORE, deadline=None)
@given(ENDS, st.sampled_from(list(Restart)))
def test_whatever_ends_it_no_message_is_doubled_and_a_start_brings_it_back(
    steps: list[tuple[str, int]], policy: Restart
) -> None:
    world = up(policy)
    generation = 1
    for number, (what, much) in enumerate(steps):
        match what:
            case "run":
                world.run(0.1 + much * 0.3)
            case "send":
                world.send(f"m-{number:03d}", f"text {number}")
            case "kill":
                world.kill()
            case "leave" if world.hermes:
                world.leave()
            case "overflow" if world.hermes and world.hermes.asked:
                world.overflow()
            case "gone":
                world.gone.add(world.worker.session)
            case "supervisor":
                world.kill_supervisor(much)
            case _:
                pass
        world.tick()
    for _ in range(2):
        generation += 1
        world.want(generation=generation)
        world.run(60, step=0.2)
    said = [text for _, text in world.db]
    assert len(said) == len(set(said)), said
    assert world.worker.phase is Phase.UP
