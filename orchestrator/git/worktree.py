"""Worktrees: making one, finding those that git knows, dropping one entry."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import UsageError
from orchestrator.git.lock import repository_lock
from orchestrator.git.repository import Repository, commit_of
from orchestrator.git.run import Git, GitFailed

T = TypeVar("T")
AGAIN = 10.0
"""Seconds for which a command is tried again while another git holds a lock file of the repository."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One worktree as `git worktree list` names it."""

    path: Path
    head: str = ""
    branch: str = ""
    """Without `refs/heads/`; "" when the head is detached."""
    locked: str | None = None
    """The reason of `git worktree lock`, None when it is not locked."""


def check_free(repository: Repository, path: Path, branch: str) -> None:
    """Raise UsageError when the branch or the folder of a new worktree exists already."""
    git = repository.git
    if commit_of(git, f"refs/heads/{branch}"):
        raise UsageError(
            f"the branch {branch} exists already in {repository.top}",
            hint=f"choose another name, or look at it: git -C {repository.top} log {branch}",
        )
    clash = _clash(git, branch)
    if clash:
        raise UsageError(
            f"the branch {clash} stands in the way of {branch} in {repository.top}",
            hint="choose another name, or rename that branch",
        )
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already", hint="choose another name, or move it away")


def _clash(git: Git, branch: str) -> str:
    """Return a branch whose name is a folder of the new one's: git can have only one of them."""
    parts = branch.split("/")
    for length in range(1, len(parts)):
        shorter = "/".join(parts[:length])
        if commit_of(git, f"refs/heads/{shorter}"):
            return shorter
    return ""


def add(repository: Repository, path: Path, branch: str, *, timeout: float = 600.0) -> None:
    """Make a worktree with a new branch at the commit of the repository's head.

    Only its entry is made under the repository's lock: a checkout of minutes keeps nobody waiting. The user's
    hooks do not run, nothing is fetched, no upstream is set. Raises GitFailed, TimedOut.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with repository_lock(repository.common, timeout=timeout):
        patiently(
            lambda: repository.git.write(
                *("worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b", branch),
                *("--", str(path), repository.head),
            )
        )
    checkout(Git(path, repository.env))


def checkout(git: Git) -> None:
    """Fill a worktree that has an entry. Where Git LFS cannot fetch, its pointers are left in place."""
    command = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
    try:
        git.write(*command)
    except GitFailed as error:
        if "lfs" not in error.said.lower() and "smudge" not in error.said.lower():
            raise
        git.write(*command, extra={"GIT_LFS_SKIP_SMUDGE": "1"})


def patiently(act: Callable[[], T]) -> T:
    """Do it again for some seconds while another git holds a lock file (`config.lock`, `HEAD.lock`)."""
    deadline = time.monotonic() + AGAIN
    while True:
        try:
            return act()
        except GitFailed as error:
            if ".lock" not in error.said or time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def entries(git: Git) -> dict[Path, Entry]:
    """Return the worktrees that git knows, by path, the user's checkout among them. Raises GitFailed."""
    found: dict[Path, Entry] = {}
    for block in _blocks(git.read("worktree", "list", "--porcelain")):
        path = Path(block.pop("worktree"))
        branch = block.get("branch", "").removeprefix("refs/heads/")
        found[path] = Entry(path, block.get("HEAD", ""), branch, block.get("locked"))
    return found


def _blocks(raw: bytes) -> list[dict[str, str]]:
    blocks: list[dict[str, str]] = []
    for line in os.fsdecode(raw).splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            blocks.append({})
        if key and blocks:
            blocks[-1][key] = value
    return blocks


def admin_dir(git: Git, path: Path) -> Path | None:
    """Return the folder in which git keeps the state of a worktree (also of one that was removed by hand)."""
    common = common_dir(git)
    for folder in sorted((common / "worktrees").glob("*")):
        with suppress(OSError):
            if Path(os.fsdecode((folder / "gitdir").read_bytes()).removesuffix("\n")).parent == path:
                return folder
    return None


def common_dir(git: Git) -> Path:
    """Return the git directory that all worktrees of a repository share."""
    return Path(os.path.normpath(git.where / git.line("rev-parse", "--git-common-dir"))).resolve()


def drop_entry(git: Git, path: Path) -> None:
    """Make git forget one worktree whose folder is gone; no other entry is pruned. Raises GitFailed."""
    if os.path.lexists(path):
        raise GitFailed(f"{path} is still there, so its entry stays")
    if path in entries(git):
        patiently(lambda: git.write("worktree", "remove", "--force", str(path)))


def delete_branch(git: Git, branch: str, tip: str) -> None:
    """Delete a branch that still points to `tip`; one that moved meanwhile stays. Raises GitFailed."""
    patiently(lambda: git.write("update-ref", "-d", f"refs/heads/{branch}", tip))


def at(path: Path, repo: Path, env: Mapping[str, str]) -> Git:
    """Return git where it can be run: in the worktree, or in the checkout that it was made from."""
    return Git(path if path.is_dir() else repo, env)
