"""Git LFS: files that are still pointers in a checkout."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.git.run import Git

_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def pointers(tree: Path, env: Mapping[str, str]) -> list[str]:
    """Return the files of a worktree that Git LFS has not filled in. Raises GitFailed."""
    git = Git(tree, env)
    names = git.read("ls-files", "-z")
    found = git.read("check-attr", "-z", "--stdin", "filter", data=names).split(b"\0")
    marked = [found[at] for at in range(0, len(found) - 2, 3) if found[at + 2] == b"lfs"]
    return [os.fsdecode(path) for path in marked if _is_pointer(tree / os.fsdecode(path))]


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False
