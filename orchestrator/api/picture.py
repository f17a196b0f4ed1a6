"""The picture of a fleet for readers: what the supervisor last saw, and what is wanted since.

It needs no supervisor and imports nothing heavy: `hermux ls` is this and a table.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

from orchestrator.api.supervisor import HAND_OVER, other_version, running
from orchestrator.store.files import read_json
from orchestrator.store.paths import FleetPaths, fleet_paths
from orchestrator.store.state import State, read_state

STALE = 5.0
"""Seconds after which a picture of a running supervisor is said to be old; it draws one a second or so."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is known of a fleet: `workers` has an entry of the shape of `state.json` for each wanted worker."""

    fleet: str
    time: float
    """When the supervisor drew it, seconds since the epoch; 0 if it never did."""
    age: float
    supervisor: dict[str, Any] | None
    """`{pid, start, version}` of the supervisor that runs now."""
    workers: dict[str, dict[str, Any]]
    alerts: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    """Names and globs of workers by group name."""

    @property
    def warning(self) -> str:
        """What a reader must know before believing the picture; "" when it is current."""
        if all(worker.get("want") != "run" for worker in self.workers.values()):
            return ""  # with nothing to run the supervisor ends by itself
        if self.supervisor is None:
            drawn = f"this picture is {span(self.age)} old" if self.time else "nothing was seen yet"
            wanted = [name for name, worker in self.workers.items() if worker.get("want") == "run"]
            return f"no supervisor runs: {drawn} → hermux start {' '.join(wanted)}"
        if told := other_version(self.supervisor):
            return f"{told} → {HAND_OVER}"
        if self.time and self.age > STALE:
            return f"the supervisor (pid {self.supervisor.get('pid')}) has been silent for {span(self.age)}"
        return ""

    @property
    def rehearsal(self) -> list[str]:
        """The workers that talk to the rehearsal model."""
        return [name for name, worker in self.workers.items() if _endpoint(worker).get("kind") == "rehearsal"]


def open_picture(fleet: str) -> Picture:
    """Read the picture of a fleet by name; raises BadName, and BadFile naming a file that is damaged."""
    return read_picture(fleet_paths(fleet, os.environ))


def read_picture(paths: FleetPaths) -> Picture:
    """Read the picture; raises BadFile naming a file that is damaged."""
    state = read_state(paths)
    desired = read_json(paths.desired) or {}
    wanted = desired.get("workers") or {}
    seen = state.workers if state else {}
    workers = {name: merged(entry, seen.get(name)) for name, entry in wanted.items()}
    return Picture(
        fleet=paths.fleet,
        time=state.time if state else 0.0,
        age=state.age if state else 0.0,
        supervisor=running(paths),
        workers=workers,
        alerts=_alerts(state),
        groups=groups_of(desired),
    )


def groups_of(desired: dict[str, Any]) -> dict[str, list[str]]:
    """Return the groups that `desired.json` holds: names and globs of workers by group name."""
    groups = desired.get("groups") or {}
    return {name: list(each.get("members") or ()) for name, each in groups.items()}


def merged(wanted: dict[str, Any], seen: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is shown of a worker: the supervisor's entry, or `pending` before it has seen it."""
    spec = wanted.get("spec") or {}
    shown: dict[str, Any] = {
        "role": spec.get("role", ""),
        "cwd": spec.get("cwd", ""),
        "hermes_profile": spec.get("hermes_profile", ""),
        "endpoint": spec.get("endpoint") or {},
    }
    if seen is None:
        shown |= {"phase": "pending", "word": "pending", "witness": "", "since": 0.0, "why": ""}
    shown |= seen or {}
    stops = wanted.get("want") == "stopped"
    return shown | {
        "want": _want(wanted, seen or {}),
        "draining": bool(stops and wanted.get("drain") and shown.get("pid")),
        "wanted_generation": wanted.get("generation", 1),
        "renew": wanted.get("renew", 0),
    }


def _want(wanted: dict[str, Any], seen: dict[str, Any]) -> str:
    """Return what is wanted: `stopped` too where a person ended a worker in its pane, until it is started."""
    want = str(wanted.get("want", "run"))
    same = seen.get("generation") == wanted.get("generation", 1)
    return str(seen.get("want") or want) if same and want == "run" else want


OWN = ("wanted_generation", "renew", "memory")
"""Keys of an entry that are nobody's business but ours."""


def settled(worker: dict[str, Any]) -> bool:
    """Whether the supervisor has taken up the newest wish for this worker."""
    if int(worker.get("generation") or 0) < int(worker.get("wanted_generation") or 0):
        return False
    return worker.get("want") != "run" or int(worker.get("attempt") or 0) > int(worker.get("renew") or 0)


def seconds_left(dialog: dict[str, Any]) -> float | None:
    """Return the seconds until Hermes gives a dialog up, None where that is not known yet."""
    deadline = dialog.get("deadline")
    return max(0.0, float(deadline) - time.time()) if deadline else None


def span(seconds: float) -> str:
    """Return a duration in at most six characters: `9 s`, `4 m`, `3 h`, `12 d`."""
    seconds = max(0.0, seconds)
    for size, unit, below in ((1, "s", 100), (60, "m", 100), (3600, "h", 72)):
        if seconds < size * below:
            return f"{int(seconds / size)} {unit}"
    return f"{int(seconds / 86400)} d"


def _endpoint(worker: dict[str, Any]) -> dict[str, Any]:
    found = worker.get("endpoint")
    return found if isinstance(found, dict) else {}


def _alerts(state: State | None) -> list[dict[str, Any]]:
    found = state.data.get("alerts") if state else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
