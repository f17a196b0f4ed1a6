"""`state.json`: the last picture that the supervisor drew; readers show its age."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.store.files import BadFile, read_json, write_text
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


def write_state(paths: FleetPaths, data: Mapping[str, Any], *, redact: Callable[[str], str] = str) -> None:
    """Replace the picture atomically, keys redacted.

    Not synced: after a power cut the next supervisor finds out what it needs from the other files.
    """
    text = json.dumps({"schema": 1, **data}, ensure_ascii=False, separators=(",", ":"))
    write_text(paths.state, redact(text) + "\n", sync=False)


def read_state(paths: FleetPaths) -> State | None:
    """Return the last picture, None when there is none yet, or none that can be read."""
    try:
        data = read_json(paths.state)
        drawn = float((data or {}).get("time") or 0.0)
    except (BadFile, TypeError, ValueError):
        return None
    if data is None:
        return None
    return State(data, drawn, max(0.0, time.time() - drawn))
