"""Which repository a directory is in, and whether worktrees can be made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.git.run import Git, GitFailed


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout, as it was found. All paths are absolute."""

    top: Path
    """The top of the checkout that the directory is in; of a bare repository, its git directory."""
    common: Path
    """The git directory that all worktrees share."""
    below: str
    """The directory's place below `top`, "" for the top itself."""
    head: str = ""
    """The commit that is checked out, "" when there is none yet."""
    branch: str = ""
    """The branch that is checked out, "" when the head is detached."""
    bare: bool = False
    changed: int = 0
    """Files with uncommitted changes, untracked ones among them."""
    submodules: tuple[str, ...] = ()
    lfs: bool = False
    """Its attributes name Git LFS."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def git(self) -> Git:
        """git in this checkout."""
        return Git(self.top, self.env)


def maybe_inside(directory: Path) -> bool:
    """Whether a directory looks as if it were in a repository; no process is asked."""
    return any((folder / ".git").exists() for folder in (directory, *directory.parents)) or (
        (directory / "HEAD").is_file() and (directory / "objects").is_dir()
    )


def find(directory: Path, env: Mapping[str, str]) -> Repository | None:
    """Return the repository that a directory is in, None when git says that it is in none.

    Raises GitFailed when git is missing or cannot tell (another user's repository, a damaged one).
    """
    git = Git(directory, env)
    try:
        answers = git.line("rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--git-common-dir")
    except GitFailed as error:
        if "not a git repository" in error.said and not _broken_link(directory):
            return None
        raise
    bare, inside, common = answers.split("\n", 2)
    shared = Path(os.path.normpath(directory / common)).resolve()
    if bare == "true" or inside != "true":
        return Repository(shared, shared, "", bare=True, env=env)
    top = Path(_one(git, "--show-toplevel"))
    below = _one(git, "--show-prefix").rstrip("/")
    return _looked_into(Repository(top, shared, below, env=env))


def _one(git: Git, flag: str) -> str:
    return os.fsdecode(git.read("rev-parse", flag).removesuffix(b"\n"))


def _looked_into(found: Repository) -> Repository:
    git = found.git
    head = commit_of(git, "HEAD")
    try:
        branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        branch = ""
    status = git.read("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames")
    changed = len([entry for entry in status.split(b"\0") if entry])
    modules = _submodules(git) if head else ()
    return Repository(
        found.top,
        found.common,
        found.below,
        head,
        branch,
        False,
        changed,
        modules,
        _uses_lfs(found.top),
        found.env,
    )


def commit_of(git: Git, name: str) -> str:
    """Return the full hash of a commit, "" when there is none of that name."""
    try:
        return git.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except GitFailed as error:
        if error.said:
            raise
        return ""


def _submodules(git: Git) -> tuple[str, ...]:
    entries = git.read("ls-tree", "-r", "-z", "HEAD").split(b"\0")
    return tuple(os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(b"160000 "))


def _uses_lfs(top: Path) -> bool:
    try:
        return "filter=lfs" in (top / ".gitattributes").read_text(errors="replace")
    except OSError:
        return False


def _broken_link(directory: Path) -> bool:
    """Whether a `.git` file on the way up points to nothing: a worktree whose repository was moved or removed."""
    return any((folder / ".git").is_file() for folder in (directory, *directory.parents))


def check_usable(found: Repository | None, directory: Path) -> Repository:
    """Return the repository, or raise UsageError with the reason why no worktree can be made of it."""
    if found is None:
        raise UsageError(
            f"{directory} is in no git repository, so it has no worktrees",
            hint="leave --worktree out, or name a repository: --repo DIR",
        )
    if found.bare:
        raise UsageError(
            f"{found.top} is a bare repository: it has no checkout to work from",
            hint=f"clone it first: git clone {found.top} DIR",
        )
    if not found.head:
        raise UsageError(
            f"{found.top} has no commit yet, so git cannot make worktrees of it",
            hint=f"commit something first: git -C {found.top} commit --allow-empty -m begin",
        )
    return found
