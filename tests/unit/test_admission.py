"""Memory admission and rolling: tables of machines, and the brain in a modelled world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.admission import MB, Host, Room, headroom, may_roll
from orchestrator.fleet.alerts import alerts
from orchestrator.fleet.decide import decide
from orchestrator.fleet.observation import DesiredSeen, Glanced, Gone, Launched, Observation, Swept, Wanted
from orchestrator.fleet.worker import (
    Glance,
    Life,
    Outcome,
    OutcomeKind,
    Phase,
    PromptKind,
    Want,
    Worker,
)
from orchestrator.health.memory import read_host
from tests.unit.world import NAME, World, spec

GB = 1000 * 1000 * 1000


def worker(name: str, *, up_for: float = 0.0, phase: Phase = Phase.UP, roll: int = 0) -> Worker:
    life = Life("%1", 1, 1.0, 1000.0 - up_for)
    return replace(
        Worker(spec(name), Want.RUN, 1), phase=phase, life=life, attempt=1, roll=roll, session="s1"
    )


@pytest.mark.parametrize(
    ("total", "free"), [(2 * GB, 512 * MB), (16 * GB, 1_600_000_000), (256 * GB, 4096 * MB)]
)
def test_headroom(total: int, free: int) -> None:
    assert headroom(total) == free


def test_the_first_worker_needs_500_mb_above_the_headroom() -> None:
    enough = Host(1500 * MB, 8 * GB, 1000 * MB)
    assert not Room(enough, [], 1000.0).refuses("a")
    said = Room(replace(enough, available=1499 * MB), [], 1000.0).refuses("a")
    assert said == (
        "waits for memory: 1.5 GB available - 500 MB for this worker = 999 MB, and 1.0 GB stay free"
    )


def test_starts_of_one_moment_are_added_up() -> None:
    room = Room(Host(2000 * MB, 8 * GB, 500 * MB), [], 1000.0)
    admitted = []
    for name in ("a", "b", "c", "d"):
        if not room.refuses(name):
            room.take(name)
            admitted.append(name)
    assert admitted == ["a", "b", "c"]
    assert "1.5 GB promised to 3 that grow" in room.refuses("d")


def test_young_workers_are_promised_the_rest_and_grown_ones_measured() -> None:
    young = worker("a", up_for=5.0)
    host = Host(1300 * MB, 8 * GB, 500 * MB, used={"a": 120 * MB})
    assert "380 MB promised to 1" in Room(host, [young], 1000.0).refuses("b")
    grown = worker("a", up_for=100.0)
    assert not Room(host, [grown], 1000.0).refuses("b"), "measured: 120 MB, counted as 200 MB"
    large = replace(host, used={"a": 900 * MB})
    assert "900 MB for this worker" in Room(large, [grown], 1000.0).refuses("b")


def test_a_cgroup_limit_counts_where_it_is_lower(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{3 * GB}\n")
    (tmp_path / "memory.current").write_text(f"{2 * GB}\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {GB}\n")
    host = read_host(root=tmp_path)
    assert host is not None
    assert host.limit == 3 * GB
    assert host.available <= 2 * GB
    assert host.headroom == 512 * MB


def test_nothing_known_of_memory_stops_nobody(tmp_path: Path) -> None:
    host = read_host(root=tmp_path)
    assert host is not None and host.limit > 0
    assert not Room(None, [], 0.0).refuses("a")


class Small(World):
    """A world on a machine with a given amount of memory."""

    host: Host | None = None

    def decided(self, seen: list[Observation]) -> None:
        self.fleet, actions = decide(self.fleet, seen, self.now, self.host)
        self.log += actions


def test_a_worker_is_pending_until_there_is_memory() -> None:
    world = Small()
    world.host = Host(600 * MB, 8 * GB, 500 * MB)
    world.decided([DesiredSeen({NAME: Wanted(spec(), Want.RUN, 1)})])
    for _ in range(5):
        world.now += 1.0
        world.decided([])
    assert (world.worker.phase, world.worker.word) == (Phase.PENDING, "pending")
    assert "600 MB available" in world.worker.why
    assert not any(isinstance(a, act.Launch) for a in world.log)
    assert sum(isinstance(a, act.Note) for a in world.log) == 1, "told once"
    world.host = Host(2000 * MB, 8 * GB, 500 * MB)
    world.now += 1.0
    world.decided([])
    assert sum(isinstance(a, act.Launch) for a in world.log) == 1


def test_a_crash_restart_waits_too_and_keeps_its_count() -> None:
    world = Small()
    world.want()
    world.run(3)
    world.host = Host(600 * MB, 8 * GB, 500 * MB)
    world.hermes = None
    world.decided([Gone(NAME, 1, Outcome(OutcomeKind.SIGNALLED, 9))])
    token = next(a.token for a in reversed(world.log) if isinstance(a, act.Sweep))
    world.decided([Swept(NAME, token, 0)])
    assert world.worker.phase is Phase.PENDING
    assert len(world.worker.crashes) == 1
    world.host = None
    world.now += 2.0
    world.run(4)
    assert (world.worker.word, world.worker.attempt, len(world.worker.crashes)) == ("ready", 2, 1)


def test_one_worker_at_a_time_is_rolled_and_a_failure_stops_it() -> None:
    waiting = worker("a", roll=1)
    for phase in (Phase.STOPPING, Phase.STOPPED, Phase.STARTING, Phase.BACKOFF, Phase.PENDING):
        assert not may_roll(waiting, [waiting, worker("b", roll=1, phase=phase)])
    back = replace(worker("b", roll=1), attempt=2)
    assert may_roll(waiting, [replace(back, phase=Phase.STOPPED, left="a person ended it")])
    assert may_roll(waiting, [back])
    assert not may_roll(waiting, [replace(back, phase=Phase.HELD)])
    assert may_roll(waiting, [replace(back, phase=Phase.HELD, roll=0)]), "its hold is another matter"


def test_idle_workers_are_rolled_one_after_the_other() -> None:
    names = ["a", "b"]
    glance = Glance(PromptKind.READY, 0.0)
    fleet = {name: worker(name, up_for=100.0) for name in names}
    wanted = {name: Wanted(spec(name), Want.RUN, 1, roll=1) for name in names}
    now, away, most = 1000.0, dict[str, float](), 0
    seen: list[Observation] = [DesiredSeen(wanted)]
    order = []
    for _ in range(200):
        now += 0.1
        decided, actions = decide(fleet, seen, now)
        fleet, seen = dict(decided), []
        for action in actions:
            if isinstance(action, act.Paste) and action.line == "/exit" and action.worker not in away:
                away[action.worker] = now
                order.append(action.worker)
            elif isinstance(action, act.Sweep):
                seen.append(Swept(action.worker, action.token, 0))
            elif isinstance(action, act.Launch):
                seen.append(Launched(action.worker, action.attempt, Life("%1", 2, 2.0, now)))
                away.pop(action.worker, None)
            elif isinstance(action, act.Look):
                seen.append(Glanced(action.worker, fleet[action.worker].attempt, replace(glance, at=now)))
        for name, since in away.items():
            if now - since > 1.0 and fleet[name].life is not None:
                seen.append(Gone(name, 1, Outcome(OutcomeKind.EXITED)))
        away_now = sum(each.phase is not Phase.UP for each in fleet.values())
        most = max(most, away_now)
    assert sorted(order) == names
    assert most == 1
    assert [each.attempt for each in fleet.values()] == [2, 2]
    assert all(each.phase is Phase.UP for each in fleet.values())


def test_alerts_say_who_what_and_since_when() -> None:
    late = replace(worker("a", up_for=200.0, phase=Phase.STARTING), since=800.0)
    silent = replace(worker("b", up_for=200.0), since=900.0)
    held = replace(worker("c", phase=Phase.HELD), hold="crash loop", since=950.0)
    assert alerts([late, silent, held], 1000.0) == [
        {"text": "a: not ready after 200 s", "since": 800.0},
        {"text": "b: the plugin is silent, it works on the screen alone", "since": 900.0},
        {"text": "c: held: crash loop", "since": 950.0},
    ]
