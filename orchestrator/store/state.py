"""`state.json`: the last picture that the supervisor drew; readers show its age."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.store.files import read_json, write_json
from orchestrator.store.paths import FleetPaths


@dataclass(frozen=True, slots=True)
class State:
    """The picture and its age in seconds when it was read."""

    data: dict[str, Any]
    time: float
    """Seconds since the epoch."""
    age: float

    @property
    def workers(self) -> dict[str, dict[str, Any]]:
        found = self.data.get("workers")
        return found if isinstance(found, dict) else {}


def write_state(paths: FleetPaths, data: Mapping[str, Any]) -> None:
    """Replace the picture atomically. Not synced: after a power cut the next picture comes anyway."""
    write_json(paths.state, {"schema": 1, **data}, sync=False)


def read_state(paths: FleetPaths) -> State | None:
    """Return the last picture, None when there is none yet; raises BadFile naming the file."""
    data = read_json(paths.state)
    if data is None:
        return None
    drawn = float(data.get("time") or 0.0)
    return State(data, drawn, max(0.0, time.time() - drawn))
