"""A death for want of memory, from the kernel's counters and log, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.fleet import action as act
from orchestrator.fleet.observation import Gone
from orchestrator.fleet.outcome import Traces, for_memory
from orchestrator.fleet.worker import Outcome, OutcomeKind
from orchestrator.health.oom import in_kernel_log, oom_kills
from tests.unit.world import NAME, World

KILLED = Outcome(OutcomeKind.SIGNALLED, 9)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_version_two_counts_in_the_groups_events(tmp_path: Path) -> None:
    own = put(tmp_path / "cgroup", "0::/user.slice/a\n")
    put(tmp_path / "user.slice/a/memory.events", "low 0\noom 3\noom_kill 2\n")
    assert oom_kills(root=tmp_path, own=own, vmstat=tmp_path / "none") == 2


@pytest.mark.parametrize("place", ["box/1", "."])
def test_version_one_counts_in_oom_control_also_seen_from_inside_a_container(
    tmp_path: Path, place: str
) -> None:
    own = put(tmp_path / "cgroup", "4:memory:/box/1\n0::/\n")
    put(tmp_path / "memory" / place / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert oom_kills(root=tmp_path, own=own, vmstat=tmp_path / "none") == 5


def test_without_a_group_the_machine_counts_and_without_that_nobody(tmp_path: Path) -> None:
    vmstat = put(tmp_path / "vmstat", "nr_free_pages 7\noom_kill 1\n")
    assert oom_kills(root=tmp_path, own=tmp_path / "none", vmstat=vmstat) == 1
    assert oom_kills(root=tmp_path, own=tmp_path / "none", vmstat=tmp_path / "none") is None


def test_the_kernel_log_names_the_process_within_a_minute(tmp_path: Path) -> None:
    said = "Out of memory: Killed process 77 (hermes) total-vm:9kB, anon-rss:8kB"
    log = put(tmp_path / "kmsg", f"6,1,1000000,-;booted\n3,2,500000000,-;{said}\n")
    assert in_kernel_log(77, log=log, now=510.0) == said
    assert in_kernel_log(7, log=log, now=510.0) == in_kernel_log(77, log=log, now=900.0) == ""
    assert in_kernel_log(77, log=tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("outcome", "traces", "kind"),
    [
        (KILLED, Traces(kills=1), OutcomeKind.OUT_OF_MEMORY),
        (KILLED, Traces(said="Killed process 77"), OutcomeKind.OUT_OF_MEMORY),
        (KILLED, Traces(resident=10**9), OutcomeKind.SIGNALLED),
        (Outcome(OutcomeKind.SIGNALLED, 11), Traces(kills=1), OutcomeKind.SIGNALLED),
        (Outcome(OutcomeKind.EXITED), Traces(kills=1), OutcomeKind.EXITED),
        (Outcome(OutcomeKind.UNKNOWN), Traces(kills=1), OutcomeKind.OUT_OF_MEMORY),
    ],
)
def test_only_a_kill_with_the_kernels_word_for_it(
    outcome: Outcome, traces: Traces, kind: OutcomeKind
) -> None:
    assert for_memory(outcome, traces).kind is kind


def test_its_figures_are_told_and_it_waits_for_memory() -> None:
    world = World()
    world.want()
    world.run(3)
    outcome = for_memory(KILLED, Traces(kills=1, resident=1_900_000_000, age=4))
    assert "it had 1900 MB 4 s before" in str(outcome)
    world.hermes = None
    world.seen.append(Gone(NAME, 1, outcome))
    world.run(9)
    assert sum(isinstance(a, act.Launch) for a in world.log) == 1
    assert "out_of_memory" in world.worker.why
    world.run(6)
    assert world.worker.word == "ready" and world.worker.ended_by.startswith("out_of_memory(")
