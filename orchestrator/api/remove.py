"""Forgetting workers: what Hermes learned is archived unless it is purged; nothing else is touched."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from orchestrator.api.picture import settled
from orchestrator.api.ready import pictures
from orchestrator.errors import UsageError
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store.desired import edit_desired
from orchestrator.store.paths import FleetPaths, make_private

SETTLE = 5.0
"""Seconds that the supervisor gets to let go of a worker's files."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A worker that is gone, and what of it stays on disk."""

    name: str
    archive: Path | None
    """Memories, skills, sessions, conversation, events; None when purged."""
    cwd: str
    """Its working directory, which is never touched."""


def check_stopped(paths: FleetPaths, names: Sequence[str]) -> None:
    """Raise UsageError, naming each, unless all of these workers are stopped."""
    for picture in pictures(paths, timeout=SETTLE):
        workers = {name: picture.workers[name] for name in names if name in picture.workers}
        if all(settled(worker) for worker in workers.values()):
            break
    running = {name: worker for name, worker in workers.items() if worker.get("phase") != "stopped"}
    if running:
        told = ", ".join(f"{name} is {worker.get('word')}" for name, worker in running.items())
        raise UsageError(
            f"only stopped workers can be removed: {told}", hint=f"hermux stop {' '.join(running)}"
        )


def remove(
    paths: FleetPaths, env: Mapping[str, str], names: Sequence[str], *, purge: bool = False
) -> list[Removed]:
    """Forget stopped workers. Raises UsageError when one is not stopped; then none is removed."""
    from orchestrator.hermes.install import hermes_root

    check_stopped(paths, names)
    with edit_desired(paths) as desired:
        gone = [desired.workers.pop(name).spec for name in names if name in desired.workers]
    _let_go(paths, names)
    roots = [Path(spec.hermes_root) if spec.hermes_root else hermes_root(env) for spec in gone]
    take = _purged if purge else _archived
    return [take(paths, spec, root) for spec, root in zip(gone, roots, strict=True)]


def put_aside(paths: FleetPaths, spec: WorkerSpec, root: Path) -> Path | None:
    """Move the files and the Hermes profile of a worker to the archive, its key left out.

    Returns the folder, None when there was nothing. A profile that lost our mark stays where it is.
    """
    from orchestrator.hermes.home import archive_home, is_ours, profile_dir

    files, home = paths.worker(spec.name).dir, profile_dir(root, spec.hermes_profile)
    if not files.exists() and not home.exists():
        return None
    place = _place(paths, spec.name)
    if home.exists() and is_ours(root, spec.hermes_profile):
        archive_home(root, spec.hermes_profile, place)
    if files.exists():
        (files / "env").unlink(missing_ok=True)
        shutil.move(files, place / "worker")
    return place


def _archived(paths: FleetPaths, spec: WorkerSpec, root: Path) -> Removed:
    return Removed(spec.name, put_aside(paths, spec, root), spec.cwd)


def _purged(paths: FleetPaths, spec: WorkerSpec, root: Path) -> Removed:
    from orchestrator.hermes.home import is_ours, remove_home

    if is_ours(root, spec.hermes_profile):
        remove_home(root, spec.hermes_profile)
    shutil.rmtree(paths.worker(spec.name).dir, ignore_errors=True)
    return Removed(spec.name, None, spec.cwd)


def _let_go(paths: FleetPaths, names: Sequence[str]) -> None:
    """Wait until the supervisor has forgotten these workers, so that it writes no file of theirs again."""
    for picture in pictures(paths, timeout=SETTLE):
        if picture.supervisor is None or not _seen(paths, names):
            return


def _seen(paths: FleetPaths, names: Sequence[str]) -> bool:
    from orchestrator.store.state import read_state

    state = read_state(paths)
    return state is not None and any(name in state.workers for name in names)


def _place(paths: FleetPaths, name: str) -> Path:
    """Make and return a new folder in the archive."""
    base = time.strftime(f"{name}-%Y%m%d-%H%M%S")
    for number in count(1):
        place = paths.archive / (base if number == 1 else f"{base}-{number}")
        with suppress(FileExistsError):
            make_private(paths.archive)
            place.mkdir(mode=0o700)
            return place
    raise AssertionError("unreachable")
