"""The brain in a modelled world: histories one can read, and invariants under random ones."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.fleet import action as act
from orchestrator.fleet.message import MessageKind
from orchestrator.fleet.worker import Outcome, OutcomeKind, Phase, Want
from tests.unit.world import NAME, World

MORE = int(os.environ.get("HERMUX_TEST_MORE", "1"))
"""`scripts/prove` sets it: so many times as many instants and histories."""
STRIDE = max(1, 5 // MORE)


def up() -> World:
    world = World()
    world.want()
    world.run(3)
    assert world.worker.word == "ready"
    return world


def test_a_worker_comes_up_once() -> None:
    world = up()
    assert [type(a) for a in world.log].count(act.Launch) == 1
    assert world.worker.phase is Phase.UP


def test_a_message_is_taken_once_and_has_its_receipt() -> None:
    world = up()
    world.send("m-1", "hello")
    world.run(5)
    assert world.inbox["m-1"] == "done"
    assert world.db == [(world.worker.session, "hello")]
    moves = [a.move for a in world.log if isinstance(a, act.MoveMessage)]
    assert moves[0].digest and moves[0].turn == "t1"


def test_messages_go_in_order_one_by_one() -> None:
    world = up()
    for number in range(5):
        world.send(f"m-{number}", f"text {number}")
    world.run(20)
    assert [text for _, text in world.db] == [f"text {n}" for n in range(5)]


def test_enter_is_pressed_again_while_the_text_stands_there() -> None:
    world = up()
    world.deaf = 2
    world.send("m-1", "hello")
    world.run(8)
    assert [text for _, text in world.db] == ["hello"]
    assert sum(isinstance(a, act.Paste) for a in world.log) == 1


def test_enter_waits_a_fifth_of_a_second_after_the_text() -> None:
    world = up()
    world.send("m-1", "hello")
    pasted = entered = 0.0
    while not entered:
        before = len(world.log)
        world.tick()
        for action in world.log[before:]:
            pasted = world.now if isinstance(action, act.Paste) else pasted
            entered = world.now if isinstance(action, act.Press) else entered
        world.now += 0.03
    assert entered - pasted >= 0.2


def test_a_draft_is_kept_and_the_message_waits() -> None:
    world = up()
    assert world.hermes is not None
    world.hermes.prompt = "half a thought"
    world.send("m-1", "hello")
    world.run(8)
    assert world.inbox["m-1"] == "new" and world.worker.word == "draft"
    assert world.hermes.prompt == "half a thought"
    world.hermes.prompt = ""
    world.run(5)
    assert world.inbox["m-1"] == "done"


def test_an_interrupt_overtakes_waiting_texts_and_never_hits_an_idle_prompt() -> None:
    world = up()
    world.send("m-1", "long work")
    while not (world.hermes and world.hermes.told):
        world.tick()
        world.now += 0.05
    world.hermes.turn_ends = world.now + 99
    world.send("m-2", "next")
    world.order("m-3", MessageKind.INTERRUPT)
    world.order("m-4", MessageKind.INTERRUPT)
    world.run(10)
    assert [world.inbox[f"m-{n}"] for n in (1, 2, 3, 4)] == ["done"] * 4
    presses = [a for a in world.log if isinstance(a, act.Press) and "C-c" in a.keys]
    assert len(presses) == 1


def test_killed_between_enter_and_storing_the_message_is_sent_again_after_the_resume() -> None:
    world = up()
    world.send("m-1", "one")
    world.run(4)
    world.send("m-2", "two")
    while not (world.hermes and world.hermes.asked == "two"):
        world.tick()
        world.now += 0.05
    session = world.worker.session
    world.hermes.turn_ends = world.now + 99
    world.kill()
    world.run(8)
    assert Counter(text for _, text in world.db) == {"one": 1, "two": 1}
    assert {s for s, _ in world.db} == {session}


def test_crash_resumes_its_own_session_at_once() -> None:
    world = up()
    world.send("m-1", "one")
    world.run(4)
    world.kill()
    world.tick()
    launches = [a for a in world.log if isinstance(a, act.Launch)]
    assert len(launches) == 2 and launches[1].resume == world.worker.session != ""


def test_crash_loop_is_held_and_start_lifts_it() -> None:
    world = up()
    for _ in range(6):
        world.kill()
        world.run(40, step=0.5)
    assert world.worker.phase is Phase.HELD and "crash loop" in world.worker.hold
    world.want(generation=2)
    world.run(4)
    assert world.worker.word == "ready"


def test_backoff_grows() -> None:
    world = up()
    waits = []
    for _ in range(4):
        world.kill()
        died = world.now
        count = sum(isinstance(a, act.Launch) for a in world.log)
        while sum(isinstance(a, act.Launch) for a in world.log) == count:
            world.tick()
            world.now += 0.1
        waits.append(world.now - died)
        world.run(2)
    assert waits[0] < 0.3 < waits[1] < waits[2] < waits[3]


def test_stop_asks_first_and_start_brings_the_conversation_back() -> None:
    world = up()
    world.send("m-1", "one")
    world.run(4)
    session = world.worker.session
    world.want(Want.STOPPED)
    world.run(4)
    assert world.worker.phase is Phase.STOPPED and world.hermes is None
    assert not any(isinstance(a, act.Signal) for a in world.log)
    world.want(generation=2)
    world.run(4)
    assert world.worker.word == "ready" and world.hermes is not None and world.hermes.session == session
    assert world.worker.crashes == ()


def test_restart_on_request_spends_nothing() -> None:
    world = up()
    world.want(generation=2, renew=1)
    world.run(6)
    assert world.worker.attempt == 2 and world.worker.word == "ready" and world.worker.crashes == ()


def test_without_plugin_the_screen_is_enough() -> None:
    world = World(plugin=False)
    world.want()
    world.run(4)
    assert world.worker.word == "ready"
    world.send("m-1", "hello")
    world.run(5)
    assert world.inbox["m-1"] == "done"


def test_an_outcome_reads_as_in_the_journal() -> None:
    assert str(Outcome(OutcomeKind.SIGNALLED, 9)) == "signalled(9)"
    assert str(Outcome(OutcomeKind.FAILED_TO_START, why="no such directory")) == (
        "failed_to_start(no such directory)"
    )


def settled(world: World) -> None:
    """The message ended in exactly one place, and Hermes holds it exactly once."""
    world.run(30, step=0.2)
    if world.worker.flights:  # in doubt while it lives: its death decides
        world.kill()
        world.run(20, step=0.2)
    assert world.inbox["m-1"] == "done"
    assert [text for _, text in world.db] == ["hello"]


@pytest.mark.parametrize("lag", [0.0, 0.4, 1.5])
def test_killed_at_every_instant_of_a_delivery(lag: float) -> None:
    for instant in range(0, 60, STRIDE):
        world = up()
        world.lag = lag
        world.send("m-1", "hello")
        world.run(instant * 0.05, step=0.05)
        world.kill()
        settled(world)


@pytest.mark.parametrize("carried_out", [0, 1, 2])
def test_supervisor_killed_at_every_instant_of_a_delivery(carried_out: int) -> None:
    for instant in range(0, 60, STRIDE):
        world = up()
        world.send("m-1", "hello")
        world.run(instant * 0.05, step=0.05)
        world.kill_supervisor(carried_out)
        settled(world)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["run", "kill", "supervisor", "send", "draft", "clear", "stop", "drain", "pause", "start"]
        ),
        st.integers(0, 9),
    ),
    min_size=3,
    max_size=25,
)


@settings(max_examples=20 * MORE, deadline=None)
@given(STEPS, st.sampled_from([0.0, 0.25, 1.5]), st.integers(0, 2))
def test_whatever_happens_nothing_is_lost_or_doubled(
    steps: list[tuple[str, int]], lag: float, deaf: int
) -> None:
    world = World(lag=lag, deaf=deaf)
    world.want()
    world.run(2.5)
    sent, generation, drafted = 0, 1, False
    for what, number in steps:
        match what:
            case "run":
                world.run(0.07 + number * 0.31, step=0.07)
            case "kill":
                world.kill()
            case "supervisor":
                world.kill_supervisor(number)
            case "send":
                sent += 1
                world.send(f"m-{sent:03d}", f"message {sent}")
            case "draft" if world.hermes and not world.hermes.prompt and not world.late:
                world.hermes.prompt, drafted = "draft", True
            case "clear" if world.hermes and world.hermes.prompt == "draft":
                world.hermes.prompt, drafted = "", False
            case "stop":
                world.want(Want.STOPPED, generation)
            case "drain":
                world.want(Want.STOPPED, generation, drain=True)
            case "pause":
                world.want(Want.PAUSED, generation)
            case "start":
                generation += 1
                world.want(Want.RUN, generation)
            case _:
                pass
        world.tick()
        assert world.worker.op is None or world.worker.op.step
    for _ in range(2):
        if world.hermes and world.hermes.prompt == "draft":
            world.hermes.prompt = ""
        generation += 1
        world.want(Want.RUN, generation)
        world.run(25 + 6 * sent, step=0.2)
        if world.worker.flights:  # in doubt while it lives: its death decides
            world.kill()
    counts = Counter(text for _, text in world.db)
    for number in range(1, sent + 1):
        ident, text = f"m-{number:03d}", f"message {number}"
        assert counts[text] <= 1, (text, world.inbox)
        assert (counts[text] == 1) == (world.inbox[ident] == "done"), (ident, world.inbox, counts)
        assert world.inbox[ident] != "failed", (ident, drafted)
    assert all(a.reason for a in world.log)
    assert world.fleet[NAME].phase is Phase.UP
