"""What a worktree holds that is nowhere else. A question that git does not answer makes it "not known", never "clean"."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.git.bring import Item, as_brought
from orchestrator.git.files import walk
from orchestrator.git.repository import commit_of
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.worktree import admin_dir, entries

UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
    "sequencer": "a sequence of picks",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A worktree of ours. `repo` is the checkout that it was made from, `common` their shared git directory."""

    fleet: str
    worker: str
    repo: Path
    common: Path
    path: Path
    branch: str
    base: str
    brought: tuple[Item, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def git(self) -> Git:
        """git in the shared git directory, which outlives the worktree."""
        return Git(self.common, self.env)

    @property
    def inside(self) -> Git:
        """git in the worktree."""
        return Git(self.path, self.env)


@dataclass(frozen=True, slots=True)
class Status:
    """What is in a worktree, counted."""

    head: str = ""
    branch: str = ""
    """The branch that is checked out, "" = a detached head."""
    tip: str = ""
    """Where the worker's own branch points; "" = it is gone."""
    ahead: int = 0
    """Commits of head or branch since the base."""
    unmerged: int = 0
    """Of those, the ones that no branch outside hermux/ and not the user's checkout has."""
    staged: int = 0
    changed: int = 0
    untracked: int = 0
    conflicts: int = 0
    under_way: tuple[str, ...] = ()
    stashes: tuple[tuple[str, str], ...] = ()
    """Commit and text of the stashes that were made on this branch."""
    nested: tuple[str, ...] = ()
    """Repositories inside the worktree."""
    linked: tuple[str, ...] = ()
    """Worktrees inside the worktree whose state lies in a repository elsewhere."""
    locked: str | None = None
    """The reason of `git worktree lock`."""
    busy: bool = False
    """A git command holds the index, or died holding it."""
    size: int = 0
    """Bytes on disk."""

    @property
    def dirty(self) -> int:
        """Files that differ from what is committed."""
        return self.staged + self.changed + self.untracked + self.conflicts

    def unsaved(self) -> list[str]:
        """Return in words what would be lost with the worktree; empty = nothing."""
        counts = (
            (self.conflicts, "in conflict"),
            (self.staged, "staged"),
            (self.changed, "changed"),
            (self.untracked, "untracked"),
        )
        told = [f"{number} {what}" for number, what in counts if number]
        told += (
            [f"{self.unmerged} unmerged commit{'s' if self.unmerged > 1 else ''}"] if self.unmerged else []
        )
        told += [f"{each} under way" for each in self.under_way]
        told += [f"a repository of its own in {path}" for path in self.nested]
        return told


def look(target: Target) -> Status:
    """Return the status of a worktree whose folder is there. Raises GitFailed, OSError."""
    git = target.inside
    if not _is_its_top(git, target.path):
        raise GitFailed(f"{target.path} is no worktree that git knows: its link to the repository is broken")
    admin = admin_dir(target.git, target.path)
    if admin is None:
        raise GitFailed(f"git has no entry for the worktree {target.path}")
    found = walk(target.path)
    counts = _counts(git, target)
    head, tip = commit_of(git, "HEAD"), commit_of(git, f"refs/heads/{target.branch}")
    try:
        branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        branch = ""
    ahead, unmerged = commits(target, [each for each in (head, tip) if each])
    entry = entries(target.git).get(target.path)
    return Status(
        head=head,
        branch=branch,
        tip=tip,
        ahead=ahead,
        unmerged=unmerged,
        **counts,
        under_way=tuple(dict.fromkeys(what for name, what in UNDER_WAY.items() if (admin / name).exists())),
        stashes=stashes(target),
        nested=tuple(found.nested),
        linked=tuple(path for path in found.nested if _leads_out(target.path, path, admin)),
        locked=entry.locked if entry else None,
        busy=(admin / "index.lock").exists(),
        size=found.size,
    )


def _leads_out(top: Path, path: str, admin: Path) -> bool:
    """Whether a nested `.git` is a file that points to neither this worktree nor its own git directory."""
    link = top / path / ".git"
    if link.is_dir():
        return False
    text = os.fsdecode(link.read_bytes()).removeprefix("gitdir:").strip()
    home = Path(os.path.normpath(link.parent / text))
    return not any(home.is_relative_to(each) for each in (top, admin, top.resolve(), admin.resolve()))


def _is_its_top(git: Git, path: Path) -> bool:
    top = os.fsdecode(git.read("rev-parse", "--show-toplevel").removesuffix(b"\n"))
    return Path(top).resolve() == path.resolve()


def _counts(git: Git, target: Target) -> dict[str, int]:
    """Count what git calls not clean, less the files that hermux itself brought in and that still are so."""
    raw = git.read(
        "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"
    )
    ours = {item.path for item in as_brought(target.path, target.brought)}
    counts = dict.fromkeys(("staged", "changed", "untracked", "conflicts"), 0)
    for entry in raw.split(b"\0"):
        kind, _, rest = entry.partition(b" ")
        if kind == b"?":
            counts["untracked"] += os.fsdecode(rest) not in ours
        elif kind == b"u":
            counts["conflicts"] += 1
        elif kind in (b"1", b"2"):
            counts["staged"] += rest[:1] != b"."
            counts["changed"] += rest[1:2] != b"."
    return counts


def commits(target: Target, tips: list[str]) -> tuple[int, int]:
    """Return how many commits these tips have beyond the base, and how many of them are on no other branch.

    A HEAD does not count: it may be on this very branch, or on none.
    """
    git = target.git
    if not tips:
        return 0, 0
    known = [commit_of(git, target.base)] if commit_of(git, target.base) else []
    ahead = int(git.line("rev-list", "--count", *tips, "--not", *known))
    others = ("--exclude=hermux/*", "--branches")
    return ahead, int(git.line("rev-list", "--count", *tips, "--not", *known, *others))


def stashes(target: Target) -> tuple[tuple[str, str], ...]:
    """Return commit and text of the stashes that were made on the worker's branch: all worktrees share one list."""
    git = target.git
    if not commit_of(git, "refs/stash"):
        return ()
    lines = git.line("log", "--walk-reflogs", "--format=%H %gs", "refs/stash").splitlines()
    pairs = [line.partition(" ") for line in lines]
    marks = (f"on {target.branch}:", f"On {target.branch}:")
    return tuple((commit, text) for commit, _, text in pairs if any(mark in text for mark in marks))
