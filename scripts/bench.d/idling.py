"""What a supervisor of eight ready workers costs while nothing happens, beside a subprocess a second."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil
from home import FLEET, Home, child
from row import Row, Series

SETTLE = 5.0
FORMAT = "#{session_name} #{pane_id} #{pane_pid} #{pane_dead} #{window_activity}"
POLLER = """
import resource, subprocess, sys, time
began, spent = time.monotonic(), lambda: sum(
    resource.getrusage(who)[0] + resource.getrusage(who)[1]
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
before = spent()
while time.monotonic() - began < float(sys.argv[1]):
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, check=True)
    time.sleep(1)
print(100 * (spent() - before) / (time.monotonic() - began), flush=True)
time.sleep(60)
"""


def measure(home: Home, *, quick: bool) -> Row:
    """One after the other on the same server, so that neither adds to the other's share."""
    seconds = 5.0 if quick else 20.0
    time.sleep(SETTLE)
    pids = {"supervisor": home.supervisor(), "tmux": tmux_pid(home)}
    before = {name: cpu(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    share = {name: 100 * (cpu(pid) - before[name]) / took for name, pid in pids.items()}
    argv = ["tmux", "-L", f"hermux-{FLEET}", "list-panes", "-a", "-F", FORMAT]
    with child([sys.executable, "-c", POLLER, str(seconds), *argv], home.env) as poller:
        assert poller.stdout
        polled = float(poller.stdout.readline())
    memory = psutil.Process(pids["supervisor"]).memory_info().rss / 2**20
    return Row(
        "idle",
        f"an idle supervisor of eight ready workers, over {seconds:g} s",
        Series("supervisor", "% of a core", (share["supervisor"],)),
        [Series("one `tmux list-panes -a` subprocess a second", "% of a core", (polled,))],
        notes=[f"its tmux server took {share['tmux']:.2f} %; the supervisor holds {memory:.0f} MiB."],
    )


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process: to the nanosecond on Linux, else to the clock tick."""
    tasks = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    if tasks:
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def tmux_pid(home: Home) -> int:
    """Return the pid of the fleet's tmux server."""
    return int(json.loads(home.paths.state.read_text())["tmux"]["pid"])
