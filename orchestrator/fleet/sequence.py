"""Start order: a worker that comes after others waits until each of them is ready. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.fleet.worker import Phase, Worker


def waits_for(worker: Worker, others: Mapping[str, Worker]) -> str:
    """Return why a worker is not started yet, "" where nothing holds it up.

    Waited for is who is wanted and on the way; one that is held only before this worker's very first start. One
    that a person stopped, or that is gone, holds up nobody.
    """
    for name in worker.spec.after:
        other = others.get(name)
        if other is None or not other.wanted or other.phase is Phase.UP:
            continue
        if other.phase is not Phase.HELD or worker.attempt == 0:
            return f"starts after {name}, which is {other.word}"
    return ""


def cycle(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Return names that wait for each other in a ring, the first one again at the end; [] where there is none."""
    done: set[str] = set()
    for start in after:
        if ring := _ring(start, after, [], done):
            return ring
    return []


def _ring(name: str, after: Mapping[str, Sequence[str]], way: list[str], done: set[str]) -> list[str]:
    if name in way:
        return [*way[way.index(name) :], name]
    if name in done:
        return []
    for other in after.get(name, ()):
        if ring := _ring(other, after, [*way, name], done):
            return ring
    done.add(name)
    return []


def in_order(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names, each behind those that it comes after, else as they are. There must be no cycle."""
    return [name for wave in waves(after) for name in wave]


def waves(after: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the names in groups: each comes after names of earlier groups only. There must be no cycle."""
    depth: dict[str, int] = {}

    def deep(name: str) -> int:
        if name not in depth:
            depth[name] = max((deep(other) + 1 for other in after[name] if other in after), default=0)
        return depth[name]

    found: list[list[str]] = [[] for _ in range(max(map(deep, after), default=-1) + 1)]
    for name in after:
        found[depth[name]].append(name)
    return found
