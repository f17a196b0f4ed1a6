"""The tmux server's death: one event, nobody's fault, and one worker after the other comes back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.alerts import alerts
from orchestrator.fleet.decide import decide
from orchestrator.fleet.memory import dump, load
from orchestrator.fleet.observation import Gone, Launched, Observation, ServerLost, Swept
from orchestrator.fleet.talk import Talk
from orchestrator.fleet.worker import Glance, Life, Outcome, OutcomeKind, Phase, PromptKind, Want, Worker
from tests.unit.world import World, spec

NAMES = ("a", "b", "c")
DEAD = Outcome(OutcomeKind.SIGNALLED, 1)


def fleet() -> dict[str, Worker]:
    """Three workers that are up, each in a session of its own."""
    return {
        name: Worker(
            spec(name), Want.RUN, 1, phase=Phase.UP, attempt=1, session=f"s-{name}", since=1.0, word="ready",
            life=Life(f"%{name}", 100, 1.0, 1.0), talk=Talk(plugin=True),
        )
        for name in NAMES
    }  # fmt: skip


def turn(
    workers: dict[str, Worker], seen: list[Observation], now: float
) -> tuple[dict[str, Worker], list[str]]:
    """Decide, answer launches and sweeps as the hands do, and return who was launched."""
    launched: list[str] = []
    while True:
        found, actions = decide(workers, seen, now)
        workers, seen = {n: load(dump(w)) for n, w in found.items()}, []
        for action in actions:
            if isinstance(action, act.Launch):
                launched.append(action.worker)
                seen.append(Launched(action.worker, action.attempt, Life("%9", 200, 2.0, now)))
            elif isinstance(action, act.Sweep):
                seen.append(Swept(action.worker, action.token, 0))
        if not seen:
            return workers, launched


def ready(workers: dict[str, Worker], name: str, now: float) -> dict[str, Worker]:
    shown = replace(workers[name], glance=Glance(PromptKind.READY, now), talk=Talk(plugin=True))
    return workers | {name: shown}


@pytest.mark.parametrize("order", ["server first", "deaths first"])
def test_no_budget_is_spent_and_each_comes_after_the_other(order: str) -> None:
    deaths: list[Observation] = [Gone(name, 1, DEAD) for name in NAMES]
    workers, now = fleet(), 500.0
    if order == "server first":
        workers, launched = turn(workers, [ServerLost(now), *deaths], now)
        assert launched == ["a"]
        assert len([a for a in alerts(workers.values(), now) if "tmux server died" in a["text"]]) == 1
        for before, name in pairwise(NAMES):
            for _ in range(20):
                now += 1.0
                workers, launched = turn(workers, [], now)
                assert not launched, f"{name} waits for {before}"
            workers, launched = turn(ready(workers, before, now), [], now + 0.2)
            now += 0.5
            workers, more = turn(workers, [], now)
            assert launched + more == [name]
        workers, _ = turn(ready(workers, "c", now), [], now + 0.2)
        assert not [a for a in alerts(workers.values(), now) if "tmux" in a["text"]]
    else:
        workers, _ = turn(workers, deaths[:2], now)
        workers, _ = turn(workers, [ServerLost(now + 0.1), deaths[2]], now + 0.5)
    assert {w.crashes for w in workers.values()} == {()}
    assert {w.session for w in workers.values()} == {f"s-{n}" for n in NAMES}


def test_one_that_does_not_come_up_holds_the_others_up_for_a_minute_only() -> None:
    workers, _ = turn(fleet(), [ServerLost(500.0), *(Gone(name, 1, DEAD) for name in NAMES)], 500.0)
    workers, launched = turn(workers, [], 561.0)
    workers, more = turn(workers, [], 562.0)
    assert launched + more == ["b"]


def test_a_failed_start_lets_the_next_one_go_and_counts() -> None:
    workers, _ = turn(fleet(), [ServerLost(500.0), *(Gone(name, 1, DEAD) for name in NAMES)], 500.0)
    workers, launched = turn(workers, [Gone("a", 2, DEAD)], 501.0)
    workers, more = turn(workers, [], 502.0)
    assert "b" in launched + more
    assert len(workers["a"].crashes) == 1 and workers["b"].crashes == ()


def test_what_outlives_the_server_is_ended() -> None:
    workers, _ = turn(fleet(), [ServerLost(500.0)], 500.0)
    _, actions = decide(workers, [], 502.0)
    assert not [a for a in actions if isinstance(a, act.Signal)]
    _, actions = decide(workers, [], 506.0)
    assert [a.worker for a in actions if isinstance(a, act.Signal)] == list(NAMES)


def test_a_message_under_way_comes_once() -> None:
    world = World()
    world.want()
    world.run(3)
    for instant in range(0, 40, 3):
        ident = f"m-{instant:02d}"
        world.send(ident, ident)
        world.run(instant * 0.05, step=0.05)
        world.seen.append(ServerLost(world.now))
        world.kill(1)
        world.run(25, step=0.2)
        assert world.inbox[ident] == "done"
        assert [text for _, text in world.db].count(ident) == 1
    assert world.worker.crashes == () and world.worker.restarts == 0
