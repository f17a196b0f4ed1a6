"""What a worker's processes take of the machine's memory."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.store.paths import FleetPaths
from orchestrator.store.state import read_state


def resident_of(paths: FleetPaths, names: Sequence[str]) -> int:
    """Return the resident bytes of the workers' launch scripts and all below them, 0 for those that have none."""
    from orchestrator.health.memory import resident_tree

    state = read_state(paths)
    pids = [int((state.workers.get(name) or {}).get("pid") or 0) for name in names] if state else []
    return sum(resident_tree(pid) for pid in pids if pid)
