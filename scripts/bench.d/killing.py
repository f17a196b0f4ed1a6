"""kill -9 of Hermes until the next attempt's process exists, beside two loops that start `sleep` again."""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from home import Home, child, fresh_home, rehearsal, until
from peers import Peers
from row import Row, Series
from spawning import spawn

from orchestrator.hermes.launch import read_pid

LIMIT, P99_LIMIT = 30.0, 100.0
"""Milliseconds."""
FASTER = 10.0
"""Times that supervisord and circus take longer."""
POLL = 0.0002
ROLE_FILE = """\
description: A worker that may die as often as it likes
restart: {max_restarts: 1000, period: 0.001, backoff: 0.001, backoff_cap: 0.001}
"""
CHILD = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec sleep 1000'
WAIT_LOOP = """
import subprocess, sys
while True:
    subprocess.Popen(["/bin/sh", "-c", sys.argv[1], sys.argv[2]]).wait()
"""


def measure(*, quick: bool) -> Row:
    """Kill in turn. Every third time Hermes is ready, else it is booting; its conversation is there always."""
    ready: list[float] = []
    booting: list[float] = []
    waits: list[float] = []
    shells: list[float] = []
    stages = Stages()
    with rehearsal() as url, fresh_home() as home, ExitStack() as stack:
        mortal(home)
        spawn(home, url, 1, role="mortal")
        home.hermux("ask", "mortal-1", "hello")
        loops = [home.path / name for name in ("waiting", "shell")]
        home.run("tmux", "-L", "peer", "-f", "/dev/null", "new-session", "-d", _shell_loop(loops[1]))
        others = Peers(home)
        running = [stack.enter_context(others.run(name, 1)) for name in others.names]
        peers: dict[str, list[float]] = {name: [] for name in others.names}
        with child([sys.executable, "-c", WAIT_LOOP, CHILD, str(loops[0])], home.env):
            for kill in range(12 if quick else 100):
                if kill and kill % 9 == 0:
                    print(f"  kill: {kill} done", flush=True)
                if kill % 3 == 0:
                    home.hermux("wait", "mortal-1")
                    ready.append(_ours(home, stages))
                else:
                    booting.append(_ours(home, stages))
                if kill % 3 == 0:
                    waits.append(_peer(loops[0]))
                    shells.append(_peer(loops[1]))
                if kill % 8 == 0:
                    for peer in running:
                        time.sleep(
                            random.uniform(0, 1)
                        )  # they look at their children at moments of their own
                        peers[peer.name].append(_peer(peer.files[0]))
    return Row(
        "kill",
        "kill -9 of Hermes until the next attempt's process has written its pid",
        Series("hermux", "ms", (*ready, *booting)),
        [
            Series("a Python wait() loop around sleep, no tmux", "ms", tuple(waits)),
            Series("a shell loop around sleep in a tmux pane", "ms", tuple(shells)),
            *(Series(name, "ms", tuple(values)) for name, values in peers.items()),
        ],
        also=_promises([*ready, *booting], peers),
        limit=LIMIT,
        limit_is_ratio=False,
        notes=[
            f"median of {len(ready)} kills of a ready Hermes {statistics.median(ready):.1f} ms, "
            f"of {len(booting)} while it booted {statistics.median(booting):.1f} ms.",
            f"the 99th percentile of all is {_p99([*ready, *booting]):.1f} ms.",
            others.note,
            stages.note,
            "hermux' time holds the end of launch.sh (exit.json), the last screen, a look into Hermes' own "
            "database, the search for processes that outlived it, and two records of the decision.",
        ],
    )


def _promises(ours: list[float], peers: dict[str, list[float]]) -> list[tuple[str, bool, str]]:
    slowest = _p99(ours)
    found = [(f"p99 {slowest:.0f} ms", slowest <= P99_LIMIT, f"p99 ≤ {P99_LIMIT:g} ms")]
    median = statistics.median(ours)
    for name, values in peers.items():
        times = statistics.median(values) / median
        found.append((f"{times:.1f} × {name}", times >= FASTER, f"≥ {FASTER:g} × faster than {name}"))
    return found


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def mortal(home: Home) -> None:
    """Make the role of a worker that may die as often as it likes."""
    folder = home.path / ".config" / "hermux" / "roles" / "mortal"
    folder.mkdir(parents=True)
    (folder / "role.yaml").write_text(ROLE_FILE)
    (folder / "SOUL.md").write_text("You are mortal.\n")


def _shell_loop(file: Path) -> str:
    return f"while true; do /bin/sh -c '{CHILD}' {file}; done"


@dataclass(slots=True)
class Stages:
    """Where the time goes, by the times of the files that are written on the way."""

    ends: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)

    def add(self, killed: float, attempt: Path, following: Path) -> None:
        """Take in one kill; `killed` is seconds since the epoch."""
        marks = [killed, *(_written(attempt / name) for name in ("exit.json", "screen.txt"))]
        marks.append(_written(following / "pid"))
        for values, (before, after) in zip(
            (self.ends, self.looks, self.starts), pairwise(marks), strict=True
        ):
            values.append(1000 * (after - before))

    @property
    def note(self) -> str:
        """Return the medians in words."""
        end, look, start = (statistics.median(each) for each in (self.ends, self.looks, self.starts))
        return (
            f"medians of its stages: until exit.json {end:.1f} ms (Hermes' death, launch.sh), until the supervisor "
            f"kept the last screen {look:.1f} ms, until the new process wrote its pid {start:.1f} ms."
        )


def _written(file: Path) -> float:
    return file.stat().st_mtime_ns / 1e9


def _ours(home: Home, stages: Stages) -> float:
    """Kill the newest attempt's Hermes, once it has run for a while, and return the milliseconds."""
    worker = home.paths.worker("mortal-1")
    attempt = max(int(path.name) for path in worker.attempts.iterdir())
    until(lambda: read_pid(worker.attempt(attempt)), timeout=30, every=0.01, what="a pid")
    time.sleep(0.3)
    pid = read_pid(worker.attempt(attempt))
    assert pid
    killed = time.time()
    took = _killed(pid, lambda: read_pid(worker.attempt(attempt + 1)))
    stages.add(killed, worker.attempt(attempt), worker.attempt(attempt + 1))
    return took


def _peer(file: Path) -> float:
    until(file.exists, timeout=10, every=0.01, what=file.name)
    pid = int(file.read_text())
    time.sleep(0.05)
    return _killed(pid, lambda: int(file.read_text()) != pid)


def _killed(pid: int, back: Callable[[], object]) -> float:
    began = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    return 1000 * (until(back, timeout=30, every=POLL, what="a new process") - began)
