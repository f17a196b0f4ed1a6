"""What is left on disk that nobody needs: shown first, deleted only when asked to.

Safe beside a fleet that works and beside another `gc`: each thing is deleted only while it is the very one
that was looked at (see store/sweep.py), nothing younger than an hour is named, and whole folders of workers
only under the lock that spawn and rm hold.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.fleet.leftover import Leftover
from orchestrator.store import sweep
from orchestrator.store.desired import DesiredWorker, load_desired
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths, WorkerPaths

OLDER_THAN = 30 * 86400.0
FRESH = 3600.0
"""Seconds: what was written since may be in the middle of being used, whatever age was asked for."""
ATTEMPTS = 10
"""Newest attempts of a worker that stay."""
LOCKED = ("learned", "profile", "worker")
"""Kinds that spawn and rm make and move."""
LEARNED = ("archive", "learned", "worker")
"""Kinds that hold what a worker learned, or its conversation."""
PATIENCE = 2.0
FINISHED = {"done": "its message was delivered", "failed": "its message failed or was taken back"}
_SCRATCH = re.compile(r"\..+\.(\d+)\.tmp|[^.].*\.(\d+)\.tmp|paste|events\.(?:new|old)")
"""`.<file>.<pid>.tmp` of ours, `<turn>.<pid>.tmp` of the plugin, and steps of a paste and of a rotation."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays although it may be nobody's, and why."""

    path: Path
    bytes: int
    why: str


@dataclass(slots=True)
class Found:
    """What may go, and what stays."""

    items: list[Leftover] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Gone:
    """What became of one item: deleted, or why not."""

    item: Leftover
    deleted: bool
    why: str = ""


def find(paths: FleetPaths, env: Mapping[str, str], *, older_than: float, archives: bool) -> Found:
    """Return what may be deleted. `older_than` in seconds; `archives` names what workers learned, too.

    Raises BadFile when `desired.json` can't be read: then nobody knows which workers exist.
    """
    from orchestrator.api.orphans import orphaned, snapshots

    now = time.time()
    workers = load_desired(paths).workers
    found = Found()
    for name, wanted in workers.items():
        found.items += _of_worker(paths.worker(name))
        found.items += _of_profile(paths.worker(name), wanted, env)
    found.items += _rotated(
        paths.root, "journal.1.jsonl", "older lines of the journal, which only `logs` reads"
    )
    found.items += _rotated(paths.root, paths.supervisor_log_before.name, "an older log of the supervisor")
    found.items += _scratch(paths.root, "")
    found.items += snapshots(paths, workers, env)
    found.items += _archives(paths)
    orphaned(paths, env, workers, found)
    _sort_out(found, now, older_than, archives)
    return found


def delete(paths: FleetPaths, items: list[Leftover]) -> Iterator[Gone]:
    """Delete these items, and yield what became of each. Workers' folders and profiles are looked at again."""
    lock = FileLock(paths.spawn_lock)
    for item in items:
        if item.kind in LOCKED:
            yield _delete_locked(paths, item, lock)
        else:
            yield _delete(item)


def parse_age(text: str) -> float:
    """Return seconds; known are `0`, `90s`, `10m`, `8h`, `30d`, `2w`. Raises UsageError."""
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
    matched = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])|(0)", text)
    if not matched:
        raise UsageError(f"--older-than {text!r} is no age", hint="for example: 30d, 12h, 0")
    return float(matched[1]) * units[matched[2]] if matched[1] else 0.0


def _delete(item: Leftover) -> Gone:
    try:
        return Gone(item, sweep.delete(item), "")
    except OSError as error:
        return Gone(item, False, error.strerror or str(error))


def _delete_locked(paths: FleetPaths, item: Leftover, lock: FileLock) -> Gone:
    from orchestrator.api.orphans import still_orphaned

    if paths.root.is_dir() and not lock.try_acquire(patience=PATIENCE):
        return Gone(item, False, "a spawn or rm is at work in this fleet")
    try:
        if not still_orphaned(paths, item):
            return Gone(item, False, "its worker exists again")
        return _delete(item)
    finally:
        lock.release()


def _of_worker(worker: WorkerPaths) -> Iterator[Leftover]:
    for name in _old_attempts(worker):
        yield from _seen("attempt", worker.dir, name, f"the newest {ATTEMPTS} attempts stay")
    taken = sweep.names(worker.dir, "inbox/cur")
    for folder in ("done", "failed"):
        for name in sweep.names(worker.dir, f"inbox/{folder}"):
            # one that lies in `cur` too was finished in a crash: it would be delivered again without this file
            if name.endswith((".json", ".bad")) and name not in taken:
                yield from _seen("message", worker.dir, f"inbox/{folder}/{name}", FINISHED[folder])
    for name in taken:
        if name.endswith(".txt") and f"{name.removesuffix('.txt')}.json" not in taken:
            yield from _seen("text", worker.dir, f"inbox/cur/{name}", "its message is delivered")
    yield from _rotated(
        worker.dir, "events.1.jsonl", "older events; what was asked and answered is in turns/"
    )
    for folder in ("", "turns", "inbox/new", "inbox/cur", "inbox/done", "inbox/failed"):
        yield from _scratch(worker.dir, folder)


def _old_attempts(worker: WorkerPaths) -> list[str]:
    numbers = sorted(int(name) for name in sweep.names(worker.dir, "attempts") if name.isdigit())
    return [f"attempts/{number}" for number in numbers[:-ATTEMPTS]]


def _of_profile(worker: WorkerPaths, wanted: DesiredWorker, env: Mapping[str, str]) -> list[Leftover]:
    """Return what is beyond the bounds in a worker's Hermes profile; nothing of a profile of the user's."""
    from orchestrator.hermes.home import is_ours, profile_dir
    from orchestrator.hermes.install import hermes_root
    from orchestrator.hermes.tidy import surplus

    spec = wanted.spec
    root = Path(spec.hermes_root) if spec.hermes_root else hermes_root(env)
    if spec.user_profile or not is_ours(root, spec.hermes_profile):
        return []
    return surplus(profile_dir(root, spec.hermes_profile), now=time.time(), before=_began(worker))


def _began(worker: WorkerPaths) -> float:
    """Return when the newest attempt began; 0 = unknown, so everything may be in use."""
    numbers = [int(name) for name in sweep.names(worker.dir, "attempts") if name.isdigit()]
    with suppress(OSError):
        return (worker.attempt(max(numbers, default=0)) / "pid").stat().st_mtime
    return 0.0


def _rotated(below: Path, name: str, why: str) -> Iterator[Leftover]:
    yield from _seen("rotated", below, name, why)


def _scratch(below: Path, folder: str) -> Iterator[Leftover]:
    for name in sweep.names(below, folder):
        matched = _SCRATCH.fullmatch(name)
        pid = int(matched[1] or matched[2] or 0) if matched else 0
        if matched and not _runs(pid):
            yield from _seen(
                "scratch", below, f"{folder}/{name}".lstrip("/"), "a command or step died in the middle of it"
            )


def _runs(pid: int) -> bool:
    from orchestrator.terminal.process import Process

    return bool(pid) and Process.of(pid) is not None


def _archives(paths: FleetPaths) -> Iterator[Leftover]:
    for name in sweep.names(paths.root, "archive"):
        yield from _seen("archive", paths.root, f"archive/{name}", "what a removed worker learned")


def _seen(kind: str, below: Path, name: str, why: str) -> Iterator[Leftover]:
    left = sweep.look(kind, below, name, why)
    if left is not None:
        yield left


def _sort_out(found: Found, now: float, older_than: float, archives: bool) -> None:
    """Leave out what is too young, and, unless they were asked for, archives and what is like one."""
    old: list[Leftover] = []
    for item in found.items:
        bounded = item.kind == "cache"  # beyond its bound whatever its age
        if not bounded and now - item.time < max(FRESH, older_than):
            continue
        if item.kind in LEARNED and not archives:
            found.kept.append(Kept(item.path, item.bytes, f"{item.why}: --archives names it"))
        else:
            old.append(item)
    found.items = sorted(old, key=lambda item: (item.kind, str(item.path)))
