"""The git branch of a directory, read from its files: no git process, and nothing is written."""

from __future__ import annotations

from pathlib import Path


def branch_of(cwd: str) -> str:
    """Return the branch that `cwd` is on, a commit's first 8 digits when on none, "" outside a repository."""
    here = Path(cwd)
    for folder in (here, *here.parents):
        git = folder / ".git"
        try:
            if git.is_file():
                git = folder / git.read_text().removeprefix("gitdir:").strip()
            head = (git / "HEAD").read_text().strip()
        except (OSError, UnicodeDecodeError):
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:8]
    return ""
