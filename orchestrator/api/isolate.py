"""Where the workers of an order work: together in one directory, or each in a git worktree of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.api.order import Isolation, Order
from orchestrator.errors import HermuxError, UsageError
from orchestrator.fleet.role import Role, WorktreeFiles
from orchestrator.fleet.spec import WorkerSpec, Worktree
from orchestrator.git.repository import Repository, check_usable, find, maybe_inside
from orchestrator.git.run import GitFailed, check_version
from orchestrator.store import worktrees
from orchestrator.store.desired import load_desired
from orchestrator.store.paths import FleetPaths
from orchestrator.store.worktrees import Brought, Record


@dataclass(frozen=True, slots=True)
class Site:
    """`repository` is set when each worker gets a worktree of it; else all work in `cwd` itself."""

    cwd: Path
    repository: Repository | None = None
    files: WorktreeFiles = field(default_factory=WorktreeFiles)
    """What the repository's own `.hermux.yaml` asks for."""
    said: tuple[str, ...] = ()


def choose_site(order: Order, cwd: Path, env: Mapping[str, str]) -> Site:
    """Return where the order's workers will work; nothing is made.

    Raises UsageError for a worktree or `--repo` where there is no repository to make it of, GitFailed when git
    is missing, too old or cannot tell.
    """
    wanted, crowd = order.isolation is Isolation.WORKTREE, order.count + order.beside > 1
    if not (wanted or order.repo or (crowd and maybe_inside(cwd))):
        return Site(cwd)
    check_version(env)
    try:
        found = find(cwd, env)
    except GitFailed as error:  # another user's repository, a damaged one: not known is not "none"
        hint = error.hint or "put that right, or use --shared"
        raise GitFailed(f"{cwd}: {error}", hint=hint, said=error.said) from error
    if wanted or (order.repo and found is None):
        check_usable(found, cwd)
    if found is None:
        return Site(cwd)
    if not wanted and (order.isolation is Isolation.SHARED or not crowd):
        return Site(cwd, said=(_shared(order, cwd, ""),) if crowd else ())
    if not wanted and (found.bare or not found.head):
        why = (
            "it is a bare repository" if found.bare else "it has no commit yet, so git can make no worktrees"
        )
        return Site(cwd, said=(_shared(order, cwd, why),))
    return _isolated(found, cwd)


def _shared(order: Order, cwd: Path, why: str) -> str:
    together = f"{order.count + order.beside} workers share {cwd}" + (f" ({why})" if why else "")
    way = "" if why else " → --worktree gives each its own"
    return f"{together}: they may overwrite each other's files{way}"


def _isolated(found: Repository, cwd: Path) -> Site:
    from orchestrator.store.repofile import load_repofile

    where = found.branch or "no branch"
    said = [f"worktrees of {found.top} begin at {found.head[:8]} ({where})"]
    if found.changed:
        changes = "1 uncommitted change" if found.changed == 1 else f"{found.changed} uncommitted changes"
        said.append(f"{changes} in {found.top} {'is' if found.changed == 1 else 'are'} not in them")
    files = load_repofile(found.top)
    if files.setup:
        said.append(
            f"each runs before it is ready: {' '.join(files.setup.split())[:200]} (from .hermux.yaml)"
        )
    return Site(cwd, found, files, tuple(said))


def names_in_use(site: Site, fleet: str, env: Mapping[str, str]) -> set[str]:
    """Return worker names whose worktree or branch an earlier worker left: new numbers pass over them."""
    if site.repository is None:
        return set()
    kept = {each.worker for each in worktrees.records(env, fleet=fleet) if each.state == worktrees.MADE}
    prefix = f"refs/heads/hermux/{fleet}/"
    refs = os.fsdecode(site.repository.git.read("for-each-ref", "--format=%(refname)", prefix))
    unused = {each.worker for each in _unused(site, fleet, env)}
    return (kept | {ref.removeprefix(prefix) for ref in refs.split()}) - unused


def _unused(site: Site, fleet: str, env: Mapping[str, str]) -> list[Record]:
    """Return what killed spawns left of this repository: worktrees that no worker ever had."""
    assert site.repository is not None
    common = str(site.repository.common)
    left = worktrees.records(env, fleet=fleet)
    return [each for each in left if each.state == worktrees.MAKING and each.common == common]


def check_room(site: Site, name: str, fleet: str, env: Mapping[str, str]) -> None:
    """Raise UsageError when a worker of that name cannot have a worktree of its own."""
    from orchestrator.git.worktree import check_free

    if site.repository is None or any(each.worker == name for each in _unused(site, fleet, env)):
        return
    where = worktrees.plan(env, site.repository.common, top=site.repository.top, fleet=fleet, worker=name)
    if worktrees.record_at(where.path) is not None:
        raise UsageError(
            f"the worktree of an earlier {name} is still there: {where.path}",
            hint=f"hermux worktree rm {name}, or choose another name",
        )
    check_free(site.repository, where.path, where.branch)


def check_replaceable(site: Site, name: str, paths: FleetPaths, env: Mapping[str, str]) -> None:
    """Raise UsageError when the worktree of the worker that is to be replaced would have to stay."""
    from orchestrator.api.worktree import record_of, target_of
    from orchestrator.git.status import look

    entry = load_desired(paths).workers.get(name)
    if site.repository is None or entry is None or entry.spec.worktree is None:
        return
    record = record_of(paths, env, name)
    unsaved = look(target_of(record, env)).unsaved() if record.path.is_dir() else []
    if unsaved:
        raise UsageError(
            f"{name} cannot be replaced: its worktree {record.path} holds {', '.join(unsaved)}",
            hint=f"merge or commit that, or: hermux stop {name}; hermux worktree rm {name} --force",
        )


def settle(
    site: Site,
    spec: WorkerSpec,
    role: Role,
    *,
    fleet: str,
    env: Mapping[str, str],
    begun: Callable[[Record], None],
) -> tuple[WorkerSpec, list[str]]:
    """Make the worktree of a worker, and return its spec in it and what a person should hear.

    `begun` gets the record before anything is made. Raises UsageError, GitFailed, TimedOut, OSError.
    """
    from orchestrator.git.worktree import add

    repository = site.repository
    if repository is None:
        return spec, []
    for left in _unused(site, fleet, env):
        if left.worker == spec.name:
            _clear(left, env)
    check_room(site, spec.name, fleet, env)
    place = worktrees.plan(env, repository.common, top=repository.top, fleet=fleet, worker=spec.name)
    tree = Worktree(str(repository.top), str(place.path), place.branch, repository.head)
    record = Record(fleet, spec.name, str(repository.common), tree, created=time.time())
    begun(record)
    worktrees.write_record(record)
    add(repository, place.path, place.branch)
    said = _bring(site, role, record, env)
    cwd = place.path / repository.below
    if not cwd.is_dir():
        said.append(f"{spec.name}: {repository.below} is in no commit; it works in {place.path}")
        cwd = place.path
    setup = _both(site.files.setup, role.worktree.setup)
    return replace(spec, cwd=str(cwd), worktree=tree, setup=setup), [
        *said,
        *_not_isolated(repository, place.path),
    ]


def _bring(site: Site, role: Role, record: Record, env: Mapping[str, str]) -> list[str]:
    from orchestrator.git.bring import bring, not_ignored
    from orchestrator.git.run import Git

    top, tree = Path(record.worktree.repo), record.path
    copy, link = (*site.files.copy, *role.worktree.copy), (*site.files.link, *role.worktree.link)
    if not copy and not link:
        return []
    done = bring(top, tree, copy=list(dict.fromkeys(copy)), link=list(dict.fromkeys(link)))
    brought = tuple(Brought(item.path, item.link, item.sha256) for item in done.items)
    worktrees.write_record(replace(record, brought=brought))
    seen = not_ignored(Git(tree, env), done.items)
    told = [
        (done.missing, f"not in {top}, so not brought in"),
        (done.there, "in git already, so left as committed"),
        (seen, "brought in, but not ignored by git: a commit of everything would hold it → .gitignore"),
    ]
    return [f"{record.worker}: {_some(paths)}: {what}" for paths, what in told if paths]


def _not_isolated(repository: Repository, path: Path) -> list[str]:
    from orchestrator.git.lfs import pointers

    said = []
    if repository.submodules:
        command = f"git -C {path} submodule update --init"
        said.append(f"submodules are not checked out: {_some(list(repository.submodules))} → {command}")
    if repository.lfs:
        left = pointers(path, repository.env)
        what = f"{_some(left)}: pointers only → git -C {path} lfs pull" if left else "its files are shared"
        said.append(f"Git LFS: {what}")
    return said


def _both(first: str, second: str) -> str:
    """Return one shell command out of two, the second only after the success of the first."""
    commands = [each.strip() for each in dict.fromkeys((first, second)) if each.strip()]
    return commands[0] if len(commands) == 1 else " && ".join(f"{{\n{each}\n}}" for each in commands)


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:5])
    return shown + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def unsettle(record: Record, env: Mapping[str, str]) -> None:
    """Take back a worktree that a spawn made and then could not use; what cannot be taken back has its record."""
    with suppress(HermuxError, OSError):
        _clear(record, env)


def _clear(record: Record, env: Mapping[str, str]) -> None:
    """Remove a worktree that no worker ever had. What is in it and not in git gets a recovery ref first."""
    from orchestrator.api.worktree import clear_unused

    clear_unused(record, env)
