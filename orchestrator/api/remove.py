"""Forgetting workers: what Hermes learned is archived unless it is purged; nothing else is touched."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.api.picture import settled
from orchestrator.api.ready import pictures
from orchestrator.errors import UsageError
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store.desired import edit_desired
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths, make_private

if TYPE_CHECKING:
    from orchestrator.api.worktree import Farewell

PATIENCE = 600.0
"""Seconds: a spawn of this fleet may be making worktrees."""
SETTLE = 5.0
"""Seconds that the supervisor gets to let go of a worker's files."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A worker that is gone, and what of it stays on disk."""

    name: str
    archive: Path | None
    """Memories, skills, sessions, conversation, events; None when purged."""
    cwd: str
    """Its working directory, which is never touched, unless it was a worktree of its own."""
    worktree: Farewell | None = None
    """What became of its worktree."""
    profile: str = ""
    """What a person should hear of the Hermes profile of theirs that it worked on."""


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
    paths: FleetPaths,
    env: Mapping[str, str],
    names: Sequence[str],
    *,
    purge: bool = False,
    unplug: bool = False,
) -> list[Removed]:
    """Forget stopped workers. Raises UsageError when one is not stopped; then none is removed.

    `unplug`: take our plugin out of a profile of the user's, where hermux put it there.
    """
    from orchestrator.api.profiles import check_unplug, with_profile
    from orchestrator.hermes.install import hermes_root

    if unplug:
        check_unplug(paths, names)
    check_stopped(paths, names)
    with FileLock(paths.spawn_lock, timeout=PATIENCE):
        with edit_desired(paths) as desired:
            gone = [desired.workers.pop(name).spec for name in names if name in desired.workers]
        _let_go(paths, names)
        roots = [Path(spec.hermes_root) if spec.hermes_root else hermes_root(env) for spec in gone]
        take = _purged if purge else _archived
        removed = [take(paths, spec, root) for spec, root in zip(gone, roots, strict=True)]
        removed = [
            with_profile(each, spec, root, unplug=unplug)
            for each, spec, root in zip(removed, gone, roots, strict=True)
        ]
        return [_without_worktree(paths, env, spec, each) for spec, each in zip(gone, removed, strict=True)]


def _without_worktree(
    paths: FleetPaths, env: Mapping[str, str], spec: WorkerSpec, removed: Removed
) -> Removed:
    """Part with the worker's worktree too. It stays when in doubt, `purge` or not."""
    if spec.worktree is None:
        return removed
    from orchestrator.api.worktree import part_of_worker

    return replace(removed, worktree=part_of_worker(paths.fleet, spec, env))


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
        (files / "keys.json").unlink(missing_ok=True)
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
