"""The worktrees of a fleet: listing them, parting with them so that nothing is lost, bringing them back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.errors import HermuxError, UsageError
from orchestrator.fleet.spec import WorkerSpec, Worktree
from orchestrator.git.bring import Item
from orchestrator.git.remove import Parted, aside_of, part
from orchestrator.git.repository import find
from orchestrator.git.restore import Restored
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.status import Status, Target, look
from orchestrator.store import worktrees
from orchestrator.store.desired import load_desired
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.store.worktrees import Record


@dataclass(frozen=True, slots=True)
class Listed:
    """A worktree and what is in it."""

    record: Record
    owned: bool
    """Its worker is in the fleet; else it is what a removed worker, or a killed spawn, left."""
    there: bool
    """Its folder exists; else it was removed by hand."""
    status: Status | None
    problem: str = ""
    """Why nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Farewell:
    """What became of the worktree of a worker that was removed."""

    path: str
    branch: str
    repo: str
    parted: Parted

    def lines(self) -> list[str]:
        """Return what a person should hear."""
        done, back = self.parted, _back(self.parted.recovery, self.repo)
        if done.kept:
            told = [f"its worktree is kept: {done.why}", f"it is in {self.path}, on the branch {self.branch}"]
            told += [f"all of that is in {done.recovery} too"] if done.recovery and not done.left_out else []
            return told
        if done.before:
            again = [f"it comes back with: {back}"] if done.recovery else []
            return [f"its worktree is gone already: {self.path}", *again]
        branch = "its branch too" if done.branch_deleted else f"the branch {self.branch} stays"
        told = [f"its worktree is gone, {branch}"]
        if done.ignored:
            shown = ", ".join(done.ignored[:5])
            more = f" and {len(done.ignored) - 5} more" if len(done.ignored) > 5 else ""
            told.append(f"ignored files that were in it: {shown}{more}")
        told += [f"{len(done.left)} files appeared meanwhile, they are in {done.aside}"] if done.left else []
        return [*told, *([f"everything comes back with: {back}"] if done.recovery else [])]

    def document(self) -> dict[str, Any]:
        """Return it as `--json` shows it."""
        done = self.parted
        return {
            "path": self.path,
            "branch": self.branch,
            "kept": done.kept,
            "why": done.why,
            "recovery": done.recovery,
            "restore": _back(done.recovery, self.repo) if done.recovery else "",
            "ignored": list(done.ignored),
            "left_out": list(done.left_out),
            "branch_deleted": done.branch_deleted,
            "left": list(done.left),
            "aside": done.aside,
        }


def _back(ref: str, repo: str) -> str:
    return f"hermux worktree restore {ref} --repo {shlex.quote(repo)}"


def target_of(record: Record, env: Mapping[str, str]) -> Target:
    """Return a record as git's side wants it."""
    tree = record.worktree
    return Target(
        record.fleet,
        record.worker,
        Path(tree.repo),
        Path(record.common),
        Path(tree.path),
        tree.branch,
        tree.base,
        tuple(Item(each.path, each.link, each.sha256) for each in record.brought),
        env,
    )


def listed(paths: FleetPaths, env: Mapping[str, str]) -> list[Listed]:
    """Return all worktrees of the fleet, those whose worker is gone among them."""
    wanted = load_desired(paths).workers
    owners = {name: each.spec.worktree.path for name, each in wanted.items() if each.spec.worktree}
    found = {str(each.path): each for each in worktrees.records(env, fleet=paths.fleet)}
    for entry in wanted.values():
        if entry.spec.worktree and entry.spec.worktree.path not in found:
            found[entry.spec.worktree.path] = _of_spec(paths.fleet, entry.spec, env)
    return [_listed(each, owners.get(each.worker) == str(each.path), env) for each in found.values()]


def _listed(record: Record, owned: bool, env: Mapping[str, str]) -> Listed:
    aside = aside_of(target_of(record, env))
    if not record.path.is_dir():
        left = f", and a removal left files in {aside}" if aside.is_dir() else ""
        return Listed(record, owned, False, None, f"its folder is gone{left}")
    try:
        return Listed(record, owned, True, look(target_of(record, env)))
    except (HermuxError, OSError) as error:
        return Listed(record, owned, True, None, str(error))


def record_of(paths: FleetPaths, env: Mapping[str, str], name: str) -> Record:
    """Return the worktree of a worker, living or gone. Raises UsageError when there is none."""
    entry = load_desired(paths).workers.get(name)
    if entry is not None and entry.spec.worktree is not None:
        return worktrees.record_at(Path(entry.spec.worktree.path)) or _of_spec(paths.fleet, entry.spec, env)
    found = worktrees.find(env, paths.fleet, name)
    if len(found) > 1:
        told = ", ".join(str(each.path) for each in found)
        raise UsageError(f"{name} left several worktrees: {told}", hint="remove them one by one with git")
    if found:
        return found[0]
    if entry is not None:
        raise UsageError(
            f"{name} has no worktree of its own: it works in {entry.spec.cwd}",
            hint=f"git -C {shlex.quote(entry.spec.cwd)} status",
        )
    raise UsageError(f"no worker {name!r} in fleet {paths.fleet} has a worktree", hint="hermux worktree ls")


def _of_spec(fleet: str, spec: WorkerSpec, env: Mapping[str, str]) -> Record:
    """Return the record of a worktree whose file was lost."""
    assert spec.worktree is not None
    tree = spec.worktree
    try:
        found = find(Path(tree.repo), env)
    except (HermuxError, OSError):
        found = None
    common = str(found.common) if found else str(Path(tree.repo) / ".git")
    return Record(fleet, spec.name, common, tree, worktrees.MADE)


def part_with(record: Record, env: Mapping[str, str], *, force: bool = False) -> Farewell:
    """Remove a worktree if nothing speaks against it; see `git/remove.py`."""
    return _farewell(record, part(target_of(record, env), force=force))


def part_with_any(paths: FleetPaths, record: Record, env: Mapping[str, str], *, force: bool) -> Farewell:
    """The same, also for what a killed spawn left: no worker ever had that."""
    if record.state != worktrees.MAKING:
        return part_with(record, env, force=force)
    with FileLock(paths.spawn_lock, timeout=60):  # its spawn, if it still ran, would hold it
        return _farewell(record, part(target_of(record, env), unused=True))


def _farewell(record: Record, done: Parted) -> Farewell:
    if not done.kept and not done.left:
        worktrees.drop_record(record)
    return Farewell(record.worktree.path, record.worktree.branch, record.worktree.repo, done)


def part_of_worker(fleet: str, spec: WorkerSpec, env: Mapping[str, str]) -> Farewell | None:
    """Part with the worktree of a worker that is being removed; None when it had none."""
    if spec.worktree is None:
        return None
    record = worktrees.record_at(Path(spec.worktree.path)) or _of_spec(fleet, spec, env)
    return part_with(record, env)


def clear_unused(record: Record, env: Mapping[str, str]) -> None:
    """Remove a worktree that no worker ever had. Raises UsageError when it has to stay."""
    known = worktrees.record_at(record.path) or record
    done = part(target_of(known, env), unused=True)
    if done.kept:
        raise UsageError(
            f"what an earlier spawn left in {record.path} has to stay: {done.why}",
            hint=f"hermux worktree rm {record.worker}",
        )
    worktrees.drop_record(record)


def restore(
    paths: FleetPaths, env: Mapping[str, str], ref: str, to: str, *, repo: Path
) -> tuple[Restored, str]:
    """Bring a worktree back, and return it with the whole name of its ref. Raises UsageError, GitFailed."""
    from orchestrator.git.recovery import PREFIX
    from orchestrator.git.restore import restore as bring_back

    found = find(repo, env)
    if found is None:
        raise UsageError(f"{repo} is in no git repository", hint="name it: --repo DIR")
    git = Git(found.common, env)
    name = ref if ref.startswith("refs/") else f"{PREFIX}/{ref}"
    if not name.startswith(f"{PREFIX}/"):
        raise UsageError(f"{ref} is no recovery ref", hint=f"they begin with {PREFIX}/")
    done = bring_back(git, name, Path(os.path.abspath(to)) if to else None)  # noqa: PTH100
    _record_again(git, name, done, env)
    return done, name


def _record_again(git: Git, ref: str, done: Restored, env: Mapping[str, str]) -> None:
    """Give a worktree that is back at its old place its record back, so that `worktree ls` shows it."""
    from orchestrator.git.proof import manifest_of

    known = manifest_of(git, ref)
    if str(done.path) != known["path"] or not done.path.is_relative_to(worktrees.worktrees_root(env)):
        return
    tree = Worktree(str(known["repo"]), str(done.path), str(known["own_branch"]), str(known["base"]))
    brought = tuple(worktrees.Brought(**each) for each in known.get("brought") or ())
    record = Record(str(known["fleet"]), str(known["worker"]), str(git.where), tree, brought=brought)
    worktrees.made(replace(record, created=float(known["time"])))


def recoveries(paths: FleetPaths, env: Mapping[str, str], *, repo: Path) -> list[tuple[str, str]]:
    """Return (repository, ref) of the fleet's recovery refs: in its repositories, and in the one of `repo`."""
    from orchestrator.git.recovery import refs

    commons = {each.common: each.worktree.repo for each in worktrees.records(env, fleet=paths.fleet)}
    try:
        here = find(repo, env)
    except GitFailed:
        here = None
    if here is not None:
        commons.setdefault(str(here.common), str(here.top))
    return [
        (top, ref)
        for common, top in commons.items()
        if Path(common).is_dir()
        for ref in refs(Git(Path(common), env), paths.fleet)
    ]


def check_owner_stopped(paths: FleetPaths, names: Sequence[str]) -> None:
    """Raise UsageError when a worker whose worktree is to go still runs."""
    from orchestrator.api.remove import check_stopped

    present = [name for name in names if name in load_desired(paths).workers]
    if present:
        check_stopped(paths, present)


def workers(paths: FleetPaths, env: Mapping[str, str]) -> list[str]:
    """Return the fleet's workers, and those that are gone and left a worktree."""
    left = [each.worker for each in worktrees.records(env, fleet=paths.fleet)]
    return list(dict.fromkeys([*load_desired(paths).workers, *left]))


def patch(
    paths: FleetPaths, env: Mapping[str, str], name: str, *, stat: bool = False, color: bool = False
) -> bytes:
    """Return what a worker changed since its base, uncommitted and untracked files too. Raises UsageError."""
    from orchestrator.git.diff import diff

    return diff(_target_there(paths, env, name), stat=stat, color=color)


def changes(paths: FleetPaths, env: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return base, files with their counts of lines, and the patch. Raises UsageError."""
    from orchestrator.git.diff import diff, numbers

    target = _target_there(paths, env, name)
    files = [{"path": path, "added": more, "removed": less} for path, more, less in numbers(target)]
    text = diff(target).decode(errors="replace")
    return {"base": target.base, "files": files, "patch": text}


def _target_there(paths: FleetPaths, env: Mapping[str, str], name: str) -> Target:
    record = record_of(paths, env, name)
    if not record.path.is_dir():
        raise UsageError(
            f"the worktree of {name} was removed by hand: {record.path}", hint=f"hermux worktree rm {name}"
        )
    return target_of(record, env)
