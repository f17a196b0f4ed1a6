"""`desired.json`: the workers that should exist. Commands edit it under a lock; the supervisor obeys it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from orchestrator.fleet.memory import build
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.fleet.worker import Want
from orchestrator.store.files import BadFile, read_json, write_json
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.store.state import read_state
from orchestrator.store.wake import poke

__all__ = [
    "GRACE",
    "Desired",
    "DesiredWorker",
    "Group",
    "Want",
    "desired_to_dict",
    "edit_desired",
    "load_desired",
    "spec_from_dict",
    "spec_to_dict",
]

GRACE = 10.0
"""Seconds that a stopping worker gets between being asked and TERM, and again before KILL."""


@dataclass(slots=True)
class DesiredWorker:
    """One worker as wanted. Raising `generation` with `want` run restarts it or lifts a hold."""

    spec: WorkerSpec
    want: Want = Want.RUN
    generation: int = 1
    grace: float = GRACE
    """Seconds; 0 = end it now."""
    renew: int = 0
    """Attempts up to this number are to be ended and replaced: a restart that a person asked for."""
    roll: int = 0
    """Attempts up to this number are to be replaced when idle, one worker of the fleet at a time."""
    drain: bool = False
    """With `want` stopped: what it is doing is finished first, and no new text is begun."""
    source: str = ""
    """The fleet file that declares it, absolute; "" = it was made by hand."""


@dataclass(frozen=True, slots=True)
class Group:
    """Workers that commands take as `@NAME`: names and globs."""

    members: tuple[str, ...]
    source: str = ""
    """The fleet file that declares it."""


@dataclass(slots=True)
class Desired:
    """The whole fleet as wanted, in the order in which the workers were added."""

    fleet: str
    workers: dict[str, DesiredWorker] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)


def load_desired(paths: FleetPaths) -> Desired:
    """Read what is wanted. Raises BadFile naming the file.

    An absent file is an empty fleet, unless a supervisor has recorded workers: then what it knew
    holds, so that a lost file does not stop a fleet.
    """
    found = read_json(paths.desired)
    desired = Desired(paths.fleet)
    if found is None:
        return Desired(paths.fleet, _last_known(paths))
    workers = found.get("workers")
    if not isinstance(workers, dict):
        raise BadFile(f"{paths.desired}: `workers` is no object", hint="restore it from a backup")
    for name, entry in workers.items():
        try:
            desired.workers[name] = _worker_from_dict(entry)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            raise BadFile(
                f"{paths.desired}: worker {name!r}: {error!r}", hint="restore or remove that entry"
            ) from error
    desired.groups = _groups(found.get("groups"))
    return desired


def _last_known(paths: FleetPaths) -> dict[str, DesiredWorker]:
    state = read_state(paths)
    found = {}
    for name, entry in (state.workers if state else {}).items():
        memory = entry.get("memory") or {}
        if memory.get("listed"):
            with suppress(TypeError, ValueError, KeyError, AttributeError, OverflowError):
                found[name] = _worker_from_dict(memory | {"stop": {"grace": memory.get("grace", GRACE)}})
    return found


@contextmanager
def edit_desired(paths: FleetPaths) -> Iterator[Desired]:
    """Hold the lock, hand out what is wanted to be changed, write it whole and wake the supervisor.

    An exception inside leaves the file as it was. Raises TimedOut when another command keeps the lock.
    """
    with FileLock(paths.lock):
        desired = load_desired(paths)
        yield desired
        write_json(paths.desired, desired_to_dict(desired))
    poke(paths.wake)


def desired_to_dict(desired: Desired) -> dict[str, Any]:
    """Return the content of `desired.json`."""
    workers = {
        name: {
            "spec": spec_to_dict(worker.spec),
            "want": str(worker.want),
            "generation": worker.generation,
            "stop": {"grace": worker.grace},
            "renew": worker.renew,
            "roll": worker.roll,
            "drain": worker.drain,
            "source": worker.source,
        }
        for name, worker in desired.workers.items()
    }
    groups = {name: asdict(group) for name, group in desired.groups.items()}
    return {"schema": 1, "fleet": desired.fleet, "workers": workers, "groups": groups}


def spec_to_dict(spec: WorkerSpec) -> dict[str, Any]:
    """Return a spec as JSON values."""
    return asdict(spec)


def spec_from_dict(raw: Mapping[str, Any]) -> WorkerSpec:
    """Read a spec back; keys of a newer version are ignored, missing optional ones get their defaults.

    Raises KeyError, TypeError or ValueError when a value that a worker cannot do without is missing or bad.
    """
    return build(WorkerSpec, raw)


def _worker_from_dict(entry: Mapping[str, Any]) -> DesiredWorker:
    grace = (entry.get("stop") or {}).get("grace", GRACE)
    return DesiredWorker(
        spec=spec_from_dict(entry["spec"]),
        want=Want(entry.get("want", Want.RUN)),
        generation=int(entry.get("generation", 1)),
        grace=float(grace),
        renew=int(entry.get("renew", 0)),
        roll=int(entry.get("roll", 0)),
        drain=bool(entry.get("drain", False)),
        source=str(entry.get("source", "")),
    )


def _groups(found: Any) -> dict[str, Group]:
    """Return the groups; one that is damaged costs no worker, so it is left out."""
    groups = {}
    for name, entry in found.items() if isinstance(found, dict) else ():
        with suppress(TypeError, ValueError, KeyError, AttributeError):
            groups[str(name)] = build(Group, entry)
    return groups
