"""Removing a worktree so that nothing is lost, whatever goes wrong and wherever it is killed.

The order: look → recovery ref, on disk → the ref is compared with the disk, file by file → the folder is moved aside
→ git's entry goes → the branch goes if it is merged → what was proven is deleted. Until the comparison has passed
nothing is touched; after a kill the next removal finds the folder aside and begins again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.git.lock import repository_lock
from orchestrator.git.objects import flush
from orchestrator.git.proof import check_objects, delete, prove
from orchestrator.git.recovery import LIMIT, Recovery, refs, take
from orchestrator.git.repository import commit_of
from orchestrator.git.run import GitFailed
from orchestrator.git.status import Status, Target, commits, look
from orchestrator.git.worktree import admin_dir, delete_branch, drop_entry, entries

Step = Callable[[str], None]
"""Called with the name of each step when it is done."""


@dataclass(frozen=True, slots=True)
class Parted:
    """What became of a worktree."""

    kept: bool
    why: str = ""
    """Why it was kept; "" when it is gone."""
    before: bool = False
    """It was gone before, and nothing of it was left to be removed."""
    recovery: str = ""
    """The ref that has everything."""
    ignored: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What of a kept worktree is not in the ref."""
    branch_deleted: bool = False
    left: tuple[str, ...] = ()
    """Files that appeared while it was removed: they lie in `aside`."""
    aside: str = ""


def quiet_step(name: str) -> None:
    """Say nothing."""


def part(
    target: Target,
    *,
    force: bool = False,
    unused: bool = False,
    limit: int = LIMIT,
    step: Step = quiet_step,
) -> Parted:
    """Remove a worktree that is clean and merged, or with `force` any; keep it when in doubt, and say why.

    A recovery ref is left in each case; only an `unused` one (no worker ever had it) that holds nothing of its own
    leaves none. Raises nothing for a git that fails: that is a reason to keep.
    """
    try:
        with repository_lock(target.common, timeout=60):
            return _part(target, force or unused, unused, limit, step)
    except (GitFailed, OSError) as error:
        return Parted(True, f"it is not known what it holds: {error}")


def aside_of(target: Target) -> Path:
    """Return where a worktree lies while it is being removed."""
    return target.path.with_name(f".{target.path.name}.removing")


def _part(target: Target, force: bool, unused: bool, limit: int, step: Step) -> Parted:
    done = _go_on(target, step)
    if done is not None:
        return done
    if not os.path.lexists(target.path):
        return _by_hand(target, limit, step)
    status = look(target)
    why = _must_stay(status, busy=status.busy and not (unused and _nobody_in(target.path)))
    if not why and not force:
        why = ", ".join(status.unsaved())
    if why:
        return _kept(target, status, why, limit)
    if unused and _holds_nothing(target, status):
        return _unused(target, status, step)
    recovery = take(target, status, ignored=True, limit=limit)
    step("written")
    if recovery.left_out:
        why = "too large for a recovery ref: " + "; ".join(recovery.left_out[:3])
        return _staying(why, recovery)
    check_objects(target.git, recovery.ref, recovery.new)
    proof = prove(target, recovery.ref, target.path)
    if proof.missing:
        return _staying(f"it changed meanwhile: {', '.join(proof.missing[:3])}", recovery)
    step("proven")
    target.path.rename(aside_of(target))
    flush(target.path.parent)
    step("aside")
    return _forget(target, status, recovery, step)


def _staying(why: str, recovery: Recovery) -> Parted:
    return Parted(True, why, recovery=recovery.ref, ignored=recovery.ignored, left_out=recovery.left_out)


def _kept(target: Target, status: Status, why: str, limit: int) -> Parted:
    """Keep a worktree; the ref that it gets all the same is no condition."""
    try:
        recovery = take(target, status, ignored=False, limit=limit)
    except (GitFailed, OSError) as error:
        return Parted(True, f"{why}; no recovery ref could be made: {error}")
    return _staying(why, recovery)


def _nobody_in(path: Path) -> bool:
    """Whether no process works in a folder: what a killed git left locked is then nobody's."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(path):
                return False
    return True


def _must_stay(status: Status, *, busy: bool) -> str:
    """Return why a worktree is kept whatever was asked for, "" if nothing speaks against it."""
    if busy:
        return "a git command holds its index (index.lock): end it, or delete that file"
    if status.linked:
        inner = status.linked[0]
        return f"it holds a worktree of a repository elsewhere: {inner} (git worktree remove it first)"
    if status.locked is not None:
        return f"it is locked{': ' + status.locked if status.locked else ''} (git worktree unlock)"
    return ""


def _go_on(target: Target, step: Step) -> Parted | None:
    """Finish a removal that was killed; None where there is none, or where it has to begin again.

    The folder was moved aside after a ref was proven to hold all of it. That ref counts: git's own files may be
    half gone by now, so no new one is taken.
    """
    aside = aside_of(target)
    if not aside.is_dir():
        return None
    if os.path.lexists(target.path):  # a new worktree of the same name, or one that was restored
        left = _sweep_aside(target)
        if left:
            told = f"{aside} holds files that are in no recovery ref ({left[0]}); look at it, and remove it"
            raise GitFailed(told)
        return None
    whole = next((ref for ref in reversed(_refs(target)) if not prove(target, ref, aside).missing), "")
    if not whole and admin_dir(target.git, target.path) is not None:
        aside.rename(target.path)
        return None
    _drop_torn(target)
    step("forgotten")
    done = Parted(False, recovery=whole or _newest(target), branch_deleted=_drop_branch(target))
    return _finish(target, done, step)


def _drop_torn(target: Target) -> None:
    """Make git forget a worktree of which it may have forgotten half; what it held is in the recovery ref."""
    admin = admin_dir(target.git, target.path)
    if admin is None:
        return
    with suppress(GitFailed):
        drop_entry(target.git, target.path)
    if admin.is_dir() and admin_dir(target.git, target.path) == admin:
        shutil.rmtree(admin)


def _by_hand(target: Target, limit: int, step: Step) -> Parted:
    """The folder is gone already: keep what git's own files know of it, and drop its entry alone."""
    if admin_dir(target.git, target.path) is None:
        moved = next((path for path in _users(target)[1:] if path.exists()), None)
        if moved is not None:
            back = f"git -C {target.repo} worktree move {moved} {target.path}"
            return Parted(True, f"its branch is checked out in {moved}; if it was moved there: {back}")
        gone = _drop_branch(target)
        return Parted(False, recovery=_newest(target), before=True, branch_deleted=gone)
    recovery = take(target, None, ignored=False, limit=limit)
    step("written")
    if recovery.left_out:
        return _staying("; ".join(recovery.left_out), recovery)
    check_objects(target.git, recovery.ref, recovery.new)
    return _forget(target, None, recovery, step)


def _forget(target: Target, status: Status | None, recovery: Recovery, step: Step) -> Parted:
    drop_entry(target.git, target.path)
    step("forgotten")
    deleted = _drop_branch(target)
    step("branch")
    ignored = recovery.ignored if status else ()
    done = Parted(False, recovery=recovery.ref, ignored=ignored, branch_deleted=deleted)
    return _finish(target, done, step)


def _finish(target: Target, done: Parted, step: Step) -> Parted:
    """Delete the folder that was moved aside, as far as the ref holds it."""
    left = _sweep_aside(target)
    step("deleted")
    return replace(done, left=tuple(left), aside=str(aside_of(target)) if left else "")


def _sweep_aside(target: Target) -> list[str]:
    """Delete what lies aside and is proven to be in one of the refs; return what stays."""
    aside, left = aside_of(target), list[str]()
    if aside.is_dir():
        for ref in reversed(_refs(target)):
            left = delete(aside, prove(target, ref, aside))
            if not left:
                break
        else:
            left = left or ["."]
    return left


def _refs(target: Target) -> list[str]:
    return list(refs(target.git, target.fleet, target.worker))


def _users(target: Target) -> list[Path]:
    """Return the checkouts that have the worker's branch checked out, git's own first entry leading."""
    found = entries(target.git)
    first = next(iter(found), target.repo)
    return [
        first,
        *(path for path, entry in found.items() if entry.branch == target.branch and path != first),
    ]


def _checked_out(target: Target) -> bool:
    return any(entry.branch == target.branch for entry in entries(target.git).values())


def _drop_branch(target: Target) -> bool:
    """Delete the worker's branch if all of it is elsewhere; one that is in use or cannot be judged stays."""
    with suppress(GitFailed, OSError):
        tip = commit_of(target.git, f"refs/heads/{target.branch}")
        if tip and not _checked_out(target) and commits(target, [tip])[1] == 0:
            delete_branch(target.git, target.branch, tip)
            return True
    return False


def _newest(target: Target) -> str:
    found = _refs(target)
    return found[-1] if found else ""


def _holds_nothing(target: Target, status: Status) -> bool:
    """Whether an unused worktree is as git made it: no file, commit or state of its own."""
    return status.head == target.base and status.tip in ("", target.base) and not status.unsaved()


def _unused(target: Target, status: Status, step: Step) -> Parted:
    """Take back a worktree that is as it was made; git itself refuses if that is not so."""
    from orchestrator.git.bring import as_brought

    for item in list(as_brought(target.path, target.brought)):
        (target.path / item.path).unlink()
    target.git.write("worktree", "remove", str(target.path))
    deleted = _drop_branch(target)
    step("deleted")
    return Parted(False, branch_deleted=deleted)
