"""What a worktree changed since its base: commits, uncommitted and untracked files in one patch."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.git.bring import as_brought
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.status import Target
from orchestrator.git.worktree import admin_dir


def diff(target: Target, *, stat: bool = False, color: bool = False) -> bytes:
    """Return the patch against the base, or its `--stat`; the worktree and its index stay as they are."""
    form = ["--stat=120"] if stat else ["--patch"]
    return _diff(target, *form, "--color=always" if color else "--color=never")


def numbers(target: Target) -> list[tuple[str, int | None, int | None]]:
    """Return (path, lines added, lines removed) of each changed file; None for a binary one."""
    rows = _diff(target, "--numstat", "-z", "--no-renames").split(b"\0")
    found = []
    for row in rows:
        added, _, rest = row.partition(b"\t")
        removed, _, path = rest.partition(b"\t")
        if path:
            found.append((os.fsdecode(path), _number(added), _number(removed)))
    return found


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


def _diff(target: Target, *form: str) -> bytes:
    git = target.inside
    with _all_in_index(target) as index:
        ours = [f":(exclude,top,literal){item.path}" for item in as_brought(target.path, target.brought)]
        return git.read("diff", *form, "--no-ext-diff", target.base, "--", ":/", *ours, extra=index)


@contextmanager
def _all_in_index(target: Target) -> Iterator[dict[str, str]]:
    """Give an index of our own in which untracked files are announced, so that a diff shows them."""
    git: Git = target.inside
    admin = admin_dir(target.git, target.path)
    with tempfile.TemporaryDirectory(prefix="hermux-") as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        if admin is not None and (admin / "index").is_file():
            shutil.copy2(admin / "index", Path(scratch) / "index")
        with suppress(GitFailed):  # a nested repository without a commit cannot be announced; the rest is
            git.write("add", "--intent-to-add", "--ignore-errors", "--", ":/", extra=index)
        yield index
