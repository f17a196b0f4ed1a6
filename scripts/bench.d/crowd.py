"""Fleets of stand-ins: what 10 to 200 idle workers and 20 busy ones cost, beside supervisord and circus."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import standin
from home import Home, fresh_home, rehearsal
from idling import SETTLE, cpu, tmux_pid
from peers import Peers
from row import Row, Series
from spawning import spawn

IDLE_LIMIT, BUSY_LIMIT = 1.0, 3.0
"""% of a core."""
MEMORY_LIMIT = 60.0
"""MiB, the tmux server left out."""
SIZES = (10, 50, 100, 200)
IDLE, BUSY = 100, 20
AT_ONCE = 50
"""`hermux spawn` makes at most 64 workers in one go."""
WHAT = "stand-ins for Hermes (scripts/bench.d/standin.py) in the panes"


@dataclass(frozen=True, slots=True)
class Cost:
    """Shares in % of a core, memory in MiB."""

    supervisor: float
    client: float
    server: float
    memory: float

    @property
    def total(self) -> float:
        return self.supervisor + self.client + self.server


def measure(names: list[str], *, quick: bool) -> Iterator[Row]:
    """Return the rows asked for: `idle100` and `linear` share a fleet that grows."""
    seconds = 5.0 if quick else 20.0
    with rehearsal() as url:
        if "idle100" in names or "linear" in names:
            with fresh_home() as home:
                sizes = SIZES if "linear" in names else (IDLE,)
                costs = _grow(standin.install(home), url, sizes, seconds)
            if "idle100" in names:
                yield _idle(costs[IDLE], seconds)
            if "linear" in names:
                yield _linear(costs, seconds)
        if "busy20" in names:
            with fresh_home() as home:
                yield _busy(standin.install(home), url, seconds)


def _grow(home: Home, url: str, sizes: tuple[int, ...], seconds: float) -> dict[int, Cost]:
    costs, there = dict[int, Cost](), 0
    for size in sizes:
        while there < size:
            more = min(AT_ONCE, size - there)
            spawn(home, url, more, role="idle")
            there += more
        time.sleep(SETTLE)
        costs[size] = _cost(home, seconds)
        print(f"  {size} idle: {costs[size].total:.2f} % of a core, {costs[size].memory:.0f} MiB", flush=True)
    return costs


def _cost(home: Home, seconds: float) -> Cost:
    client = int(json.loads((home.paths.root / "control.json").read_text())["pid"])
    pids = [home.supervisor(), client, tmux_pid(home)]
    supervisor, client_share, server = _shares(pids, seconds)
    memory = sum(psutil.Process(pid).memory_info().rss for pid in pids[:2]) / 2**20
    return Cost(supervisor, client_share, server, memory)


def _shares(pids: list[int], seconds: float) -> list[float]:
    before, began = [cpu(pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [100 * (cpu(pid) - was) / took for pid, was in zip(pids, before, strict=True)]


def _idle(cost: Cost, seconds: float) -> Row:
    series, memory, note = [], [], ""
    with fresh_home() as home:
        peers = Peers(home)
        note = peers.note
        for name in peers.names:
            with peers.run(name, IDLE) as peer:
                time.sleep(SETTLE)
                series.append(Series(name, "% of a core", tuple(_shares([peer.pid], seconds))))
                memory.append(f"{name} {psutil.Process(peer.pid).memory_info().rss / 2**20:.0f}")
    return Row(
        "idle100",
        f"{IDLE} idle workers, {WHAT}, over {seconds:g} s: supervisor, control client and tmux server",
        Series("all three", "% of a core", (cost.total,)),
        series,
        limit=IDLE_LIMIT,
        limit_is_ratio=False,
        also=[
            (
                f"{cost.memory:.0f} MiB without the tmux server",
                cost.memory <= MEMORY_LIMIT,
                f"≤ {MEMORY_LIMIT:g} MiB",
            )
        ],
        notes=[
            f"supervisor {cost.supervisor:.2f} %, control client {cost.client:.2f} %, tmux server {cost.server:.2f} %.",
            f"MiB resident: hermux {cost.memory:.0f} without the tmux server; {', '.join(memory)}.",
            f"the peers watch {IDLE} `sleep`, without a terminal. {note}",
        ],
    )


def _busy(home: Home, url: str, seconds: float) -> Row:
    spawn(home, url, BUSY, role="busy")
    time.sleep(SETTLE)
    cost, server = _cost(home, seconds), tmux_pid(home)
    os.kill(home.supervisor(), signal.SIGSTOP)
    [alone] = _shares([server], seconds / 2)
    os.kill(home.supervisor(), signal.SIGCONT)
    ours = cost.supervisor + cost.client + max(0.0, cost.server - alone)
    return Row(
        "busy20",
        f"{BUSY} busy workers, {WHAT}, {standin.EVENTS_PER_SECOND} events and repaints a second each, "
        f"over {seconds:g} s",
        Series("supervisor, control client and the tmux server's share", "% of a core", (ours,)),
        [Series("the tmux server alone, the supervisor stopped", "% of a core", (alone,))],
        limit=BUSY_LIMIT,
        limit_is_ratio=False,
        notes=[
            f"supervisor {cost.supervisor:.2f} %, control client {cost.client:.2f} %; the tmux server took "
            f"{cost.server:.2f} %, of which {alone:.2f} % is what the panes print.",
        ],
    )


def _linear(costs: dict[int, Cost], seconds: float) -> Row:
    """Judge what one more worker costs between the two largest fleets against what one cost on the way there."""
    small, middle, large = SIZES[0], SIZES[-2], SIZES[-1]
    more = (costs[large].total - costs[middle].total) / (large - middle)
    less = (costs[middle].total - costs[small].total) / (middle - small)
    each = [f"{n}: {c.total:.2f} %, {c.memory:.1f} MiB" for n, c in costs.items()]
    return Row(
        "linear",
        f"{small} to {large} idle workers, {WHAT}, over {seconds:g} s each: the share that one more worker takes",
        Series(f"from {middle} to {large}", "‰ of a core", (10 * more,)),
        [Series(f"from {small} to {middle}", "‰ of a core", (10 * less,))],
        limit=1.25,
        notes=[
            f"supervisor, control client and tmux server together, memory without the server: {'; '.join(each)}."
        ],
    )
