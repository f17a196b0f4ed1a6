"""What the kernel says of processes that it ended for want of memory: its counters, and its log where it may be read."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")
KMSG = Path("/dev/kmsg")
RECENT = 60.0
"""Seconds that a line of the kernel log may be old."""


def oom_kills(
    *, root: Path = CGROUP, vmstat: Path = VMSTAT, own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Return how many processes were ended so far in the supervisor's cgroup, whose children the workers are.

    cgroup v2: `oom_kill` of memory.events, which counts the groups below too; v1: of memory.oom_control (since
    4.13); without either the whole machine's, of /proc/vmstat. None where none of them can be read.
    """
    lines = []
    with suppress(OSError):
        lines = own.read_text().splitlines()
    places = [root / line.removeprefix("0::/") / "memory.events" for line in lines if line.startswith("0::/")]
    old = [line.split(":", 2)[2].lstrip("/") for line in lines if ":memory:" in line]
    places += [root / "memory" / place / "memory.oom_control" for place in (*old, "")]
    found = (_count(place) for place in (*places, vmstat))
    return next((count for count in found if count is not None), None)


def _count(path: Path) -> int | None:
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return None
    return next((int(w[1]) for w in words if len(w) == 2 and w[0] == "oom_kill" and w[1].isdigit()), None)


def in_kernel_log(pid: int, *, log: Path = KMSG, now: float | None = None) -> str:
    """Return the kernel's words about this process if it ended it in the last minute; "" if not, or unreadable.

    A line is "6,123,4567890,-;Out of memory: Killed process 77 (hermes) …": the third figure is microseconds
    since the start of the machine.
    """
    now = time.clock_gettime(time.CLOCK_MONOTONIC) if now is None else now
    ended = re.compile(rf"^\d+,\d+,(\d+),[^;]*;(.*\bKilled process {pid} .*)$", re.MULTILINE)
    for stamp, said in reversed(ended.findall(_read(log))):
        if abs(now - int(stamp) / 1e6) <= RECENT:
            return str(said)[:200]
    return ""


def _read(log: Path) -> str:
    """Return what the log holds: /dev/kmsg gives a line a read, and EAGAIN at its end."""
    parts = []
    with suppress(OSError):
        handle = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while part := os.read(handle, 1 << 16):
                parts.append(part)
        except OSError:
            pass
        finally:
            os.close(handle)
    return b"".join(parts).decode(errors="replace")
