"""Folders of workers that are no more, and what their killed processes left in the temporary folder.

A profile is an orphan only if its mark names a fleet of this state folder, and that fleet has no such worker:
not wanted, not remembered, no folder. A mark without that (of an older version) proves nothing.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.api.gc import Found, Kept
from orchestrator.errors import HermuxError
from orchestrator.fleet.leftover import Leftover
from orchestrator.store import sweep
from orchestrator.store.desired import DesiredWorker, load_desired
from orchestrator.store.paths import FleetPaths
from orchestrator.store.state import read_state

SNAPSHOT = re.compile(r"hermes-snap-([0-9a-f]{12})\.sh(?:\.tmp\.\d+)?")
LARGEST = 1 << 20
PREFIX = "hx-"


def orphaned(
    paths: FleetPaths, env: Mapping[str, str], workers: Mapping[str, DesiredWorker], found: Found
) -> None:
    """Add the folders and Hermes profiles of workers that are no more to what was found."""
    known = set(workers) | _remembered(paths)
    for name in sweep.names(paths.root, "workers"):
        if name in known:
            continue
        why = f"no worker {name} exists; `rm` or `spawn` was cut short"
        left = sweep.look("worker", paths.root, f"workers/{name}", why)
        if left is not None and not _in_use(left.path):
            found.items.append(left)
    for root in _roots(workers, env):
        _profiles(paths, root, found)


def _profiles(paths: FleetPaths, root: Path, found: Found) -> None:
    from orchestrator.hermes.home import has_learned

    for name in sweep.names(root, "profiles"):
        left = sweep.look("profile", root, f"profiles/{name}", "") if name.startswith(PREFIX) else None
        if left is None:
            continue
        mark = _mark(left.path)
        if mark is None or _of_another(paths, mark):
            continue
        worker = str(mark.get("worker"))
        if _exists(paths, worker) and str(mark.get("fleet")) == paths.fleet:
            continue
        if not mark.get("state"):
            why = "its mark does not say whose it is: look at it, and delete it by hand"
            found.kept.append(Kept(left.path, left.bytes, why))
        elif not _in_use(left.path):
            learned = has_learned(root, name)
            holds = "and it holds what the worker learned" if learned else "and nothing was learned in it"
            why = f"no worker {worker} exists in fleet {mark['fleet']}, {holds}"
            found.items.append(replace(left, kind="learned" if learned else "profile", why=why))


def _of_another(paths: FleetPaths, mark: Mapping[str, Any]) -> bool:
    """Whether a profile's mark names another fleet that exists, or one of another state folder."""
    state = str(mark.get("state") or "")
    if not state:
        return str(mark.get("fleet")) != paths.fleet
    return state != str(paths.root) and not _vanished(paths, Path(state))


def _vanished(paths: FleetPaths, root: Path) -> bool:
    """Whether a folder was that of a fleet beside ours, and is no more."""
    return root.parent == paths.root.parent and not os.path.lexists(root)


def still_orphaned(paths: FleetPaths, item: Leftover) -> bool:
    """Whether an item is still nobody's, asked under the lock that spawn and rm hold."""
    if item.kind == "worker":
        known = set(load_desired(paths).workers) | _remembered(paths)
        return item.path.name not in known and not _in_use(item.path)
    mark = _mark(item.path)
    if mark is None or _of_another(paths, mark) or _in_use(item.path):
        return False
    return str(mark.get("fleet")) != paths.fleet or not _exists(paths, str(mark.get("worker")))


def _exists(paths: FleetPaths, worker: str) -> bool:
    """Whether anything speaks for the worker; a file that can't be read does."""
    try:
        wanted = worker in load_desired(paths).workers
    except HermuxError:
        return True
    return wanted or worker in _remembered(paths) or os.path.lexists(paths.worker(worker).dir)


def _remembered(paths: FleetPaths) -> set[str]:
    state = read_state(paths)
    return set(state.workers) if state else set()


def _roots(workers: Mapping[str, DesiredWorker], env: Mapping[str, str]) -> list[Path]:
    """Return the Hermes folders to look in: the usual one, and those that workers were made in."""
    from orchestrator.hermes.install import hermes_root

    own = [Path(each.spec.hermes_root) for each in workers.values() if each.spec.hermes_root]
    return list(dict.fromkeys([hermes_root(env), *own]))


def _mark(profile: Path) -> dict[str, Any] | None:
    from orchestrator.hermes.home import MARK

    with suppress(OSError, ValueError):
        found = json.loads((profile / MARK).read_bytes())
        return found if isinstance(found, dict) else None
    return None


def _in_use(folder: Path) -> bool:
    """Whether a process of this user works with a profile (`-p NAME`, HERMES_HOME) or a worker's folder."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error):
            variables = process.environ()
            if str(folder) in (variables.get("HERMES_HOME"), variables.get("HERMUX_DIR")):
                return True
            if folder.name.startswith(PREFIX) and folder.name in process.cmdline():
                return True
    return False


def snapshots(
    paths: FleetPaths, workers: Mapping[str, DesiredWorker], env: Mapping[str, str]
) -> Iterator[Leftover]:
    """Yield the shell snapshots that killed Hermes processes of this fleet left in the temporary folders.

    Each names the worker's folder and attempt inside; it is left over when that attempt is over. Hermes
    deletes those of attempts that end by themselves.
    """
    for folder in _temporary(env):
        for name in sweep.names(folder, ""):
            matched = SNAPSHOT.fullmatch(name)
            owner = _owner(folder / name) if matched else None
            if matched is None or owner is None:
                continue
            worker, attempt = owner
            ours = worker.parent == paths.workers and not _lives(paths, workers, worker.name, attempt)
            if not ours and not _vanished(paths, worker.parent.parent):
                continue
            why = f"attempt {attempt} of {worker.name} was killed and left it"
            for each in (name, f"hermes-cwd-{matched[1]}.txt"):
                left = sweep.look("snapshot", folder, each, why)
                if left is not None:
                    yield left


def _temporary(env: Mapping[str, str]) -> list[Path]:
    named = [env.get(name, "") for name in ("TMPDIR", "TMP", "TEMP")]
    found = [Path(each) for each in (*named, "/tmp", tempfile.gettempdir()) if each.startswith("/")]
    return list(dict.fromkeys(each.resolve() for each in found))


def _owner(path: Path) -> tuple[Path, int] | None:
    """Return the worker's folder and the attempt that a snapshot of this user's names; None = not ours."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_size > LARGEST:
                return None
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    folder = re.search(r'^declare -x HERMUX_DIR="([^"\\$`]+)"$', text, re.MULTILINE)
    attempt = re.search(r'^declare -x HERMUX_ATTEMPT="([0-9]+)"$', text, re.MULTILINE)
    return (Path(folder[1]), int(attempt[1])) if folder and attempt else None


def _lives(paths: FleetPaths, workers: Mapping[str, DesiredWorker], name: str, attempt: int) -> bool:
    """Whether the attempt may still run: only one that wrote its exit, or has a successor, is over."""
    folder = paths.worker(name)
    numbers = [int(each) for each in sweep.names(folder.dir, "attempts") if each.isdigit()]
    if name not in workers and not folder.dir.exists():
        return False
    return attempt >= max(numbers, default=0) and not (folder.attempt(attempt) / "exit.json").exists()
