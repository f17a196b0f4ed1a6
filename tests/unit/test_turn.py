"""Whom a turn of the loop concerns, and that the others are left as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.fleet.decide import decide
from orchestrator.fleet.observation import PaneSeen
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.fleet.worker import Glance, Life, Phase, PromptKind, Want, Worker
from orchestrator.store import wake
from orchestrator.supervise.turn import Turns

NOW = 1000.0


def up(name: str) -> Worker:
    endpoint = Endpoint(base_url="http://localhost/v1", model="m", context_length=1000)
    worker = Worker(WorkerSpec(name, "coder", "/", name, endpoint), Want.RUN, 1, attempt=1)
    glance = Glance(PromptKind.READY, NOW - 5)
    life = Life("%1", 1, 1.0, NOW - 60)
    return replace(worker, phase=Phase.UP, life=life, glance=glance, steady_since=NOW - 6, word="ready")


def test_a_turn_is_about_whom_was_named_and_who_is_midway_and_each_second_about_all() -> None:
    fleet = {"a": up("a"), "b": replace(up("b"), phase=Phase.STARTING), "c": up("c")}
    turns = Turns()
    assert turns.next(fleet, NOW).everyone
    turns.name({"a"})
    turn = turns.next(fleet, NOW + 0.1)
    assert turn.workers == {"a", "b"} and not turn.everyone
    assert turns.next(fleet, NOW + 0.2).workers == {"b"}
    turns.name({""})
    assert turns.next(fleet, NOW + 0.3).everyone
    turns.name({"eeea"})  # an older plugin's bytes before a name
    assert turns.next(fleet, NOW + 0.4).everyone
    assert not turns.next(fleet, NOW + 0.5).everyone
    assert turns.next(fleet, NOW + 1.5).everyone
    assert turns.next(fleet, NOW - 500).everyone  # the clock was put back


def test_who_is_not_concerned_stays_the_same_value() -> None:
    fleet = {name: replace(up(name), painted=int(NOW)) for name in "abc"}
    after, actions = decide(fleet, [PaneSeen("b", 1, 1, int(NOW), False)], NOW, None, {"a"})
    assert {action.worker for action in actions} == {"a", "b"}
    assert after["c"] is fleet["c"]
    assert {action.worker for action in decide(fleet, [], NOW)[1]} == {"a", "b", "c"}


def test_a_screen_is_read_again_only_when_it_was_painted_or_the_clock_put_back() -> None:
    worker = up("a")
    assert not decide({"a": worker}, [], NOW + 1e6)[1]
    assert decide({"a": worker}, [], NOW - 100)[1]


def test_the_fifo_names_workers(tmp_path: Path) -> None:
    handle = wake.open_wake(tmp_path / "wake")
    for name in ("a", "b", "a", ""):
        wake.poke(tmp_path / "wake", name)
    assert wake.drain(handle) == {"a", "b", ""}
    assert wake.drain(handle) == set()
