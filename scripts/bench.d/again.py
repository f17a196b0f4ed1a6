"""kill -9 of a ready Hermes until its prompt stands again, beside starts of a bare, configured Hermes."""

from __future__ import annotations

import os
import signal
import time

from home import Home, fresh_home, rehearsal, until
from killing import mortal
from row import Row, Series
from spawning import POLL, bare, spawn

from orchestrator.fleet.prompt import PromptKind
from orchestrator.hermes.launch import read_pid
from orchestrator.hermes.prompt import read_prompt

MORE = 0.5
"""Seconds that coming back may take longer than a bare start."""
SOCKET = "hermux-bench"


def measure(*, quick: bool) -> Row:
    """Alternate the two. Both are looked at in the same manner: the prompt line, ten times a second."""
    ours: list[float] = []
    starts: list[float] = []
    with rehearsal() as url, fresh_home() as home:
        mortal(home)
        spawn(home, url, 1, role="mortal")
        home.hermux("ask", "mortal-1", "hello")
        for _ in range(3 if quick else 9):
            home.hermux("wait", "mortal-1")
            ours.append(_back(home))
            starts.append(bare(url, 1).seconds)
    middle = Series("a bare start", "s", tuple(starts))
    back = Series("hermux", "s", tuple(ours))
    return Row(
        "again",
        "kill -9 of a ready Hermes until its prompt line stands again, in its own conversation",
        back,
        [middle],
        limit=round(middle.median + MORE, 2),
        limit_is_ratio=False,
        notes=[f"the promise is the bare start of this run and {MORE:g} s."],
    )


def _back(home: Home) -> float:
    worker = home.paths.worker("mortal-1")
    attempt = max(int(path.name) for path in worker.attempts.iterdir())
    time.sleep(1.0)
    pid = read_pid(worker.attempt(attempt))
    assert pid
    began = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    until(lambda: read_pid(worker.attempt(attempt + 1)), timeout=30, every=0.002, what="a new process")
    return until(lambda: _ready(home), timeout=60, every=POLL, what="the prompt") - began


def _ready(home: Home) -> bool:
    screen = home.run("tmux", "-L", SOCKET, "-u", "capture-pane", "-p", "-t", "=mortal-1:")
    return read_prompt(screen, profile="hx-bench-mortal-1").kind is PromptKind.READY
