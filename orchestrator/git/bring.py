"""Files that a worktree needs beside what git checks out: copied or linked from the user's checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.git.run import Git, GitFailed


@dataclass(frozen=True, slots=True)
class Item:
    """One file or link that was put into the worktree."""

    path: str
    link: str = ""
    sha256: str = ""


@dataclass(slots=True)
class Bringing:
    """What was brought, and what a person should hear."""

    items: list[Item] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Patterns that match nothing in the checkout."""
    there: list[str] = field(default_factory=list)
    """Paths that the worktree has already: they are left as they are."""


def bring(top: Path, tree: Path, *, copy: Sequence[str], link: Sequence[str]) -> Bringing:
    """Copy and link what the patterns mean in `top` into the same places of `tree`. Raises OSError.

    Nothing that the worktree has already is replaced, and nothing is written outside of it.
    """
    done = Bringing()
    for pattern, linked in [*((each, False) for each in copy), *((each, True) for each in link)]:
        found = matches(top, pattern)
        if not found:
            done.missing.append(pattern)
        for path in found:
            _one(top, tree, path, done, linked=linked)
    return done


def matches(top: Path, pattern: str) -> list[str]:
    """Return the paths below `top` that a pattern means, outermost only; never `.git`."""
    bare = pattern.rstrip("/")
    if os.path.lexists(top / bare):
        found = [bare]
    else:
        found = sorted(path.relative_to(top).as_posix() for path in top.glob(bare))
    inside = [path for path in found if path not in ("", ".") and ".git" not in path.split("/")]
    return [path for path in inside if not any(path.startswith(f"{outer}/") for outer in inside)]


def _one(top: Path, tree: Path, path: str, done: Bringing, *, linked: bool) -> None:
    source, target = top / path, tree / path
    if not _stays_inside(tree, target):
        done.there.append(path)
        return
    if linked and not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
        done.items.append(Item(path, link=str(source)))
    elif linked or (os.path.lexists(target) and not (source.is_dir() and target.is_dir())):
        done.there.append(path)
    elif source.is_dir():
        for inner in sorted(os.listdir(source)):  # noqa: PTH208
            if inner != ".git":
                _one(top, tree, f"{path}/{inner}", done, linked=False)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
        done.items.append(Item(path, sha256=digest_of(target)))


def _stays_inside(tree: Path, target: Path) -> bool:
    """Whether no link on the way leads out of the worktree."""
    parent = target.parent
    while not os.path.lexists(parent):
        parent = parent.parent
    return parent.is_dir() and parent.resolve().is_relative_to(tree.resolve())


def digest_of(path: Path) -> str:
    """Return the sha256 of a file's content, "" when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def as_brought(tree: Path, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items that still are what was brought."""
    for item in items:
        path = tree / item.path
        if item.link:
            if path.is_symlink() and os.readlink(path) == item.link:  # noqa: PTH115
                yield item
        elif path.is_file() and not path.is_symlink() and digest_of(path) == item.sha256:
            yield item


def not_ignored(git: Git, items: Sequence[Item]) -> list[str]:
    """Return the brought paths that git would take for new files: a commit of everything would hold them."""
    if not items:
        return []
    paths = b"".join(os.fsencode(item.path) + b"\0" for item in items)
    try:
        ignored = git.read("check-ignore", "-z", "--stdin", data=paths)
    except GitFailed as error:
        if error.said:
            raise
        ignored = b""
    known = {os.fsdecode(path) for path in ignored.split(b"\0")}
    return [item.path for item in items if item.path not in known]
