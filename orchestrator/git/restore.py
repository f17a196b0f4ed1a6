"""Bringing a worktree back from its recovery ref, byte for byte: files, index, and what was under way."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.git.bring import digest_of
from orchestrator.git.files import LINK
from orchestrator.git.lock import repository_lock
from orchestrator.git.objects import read_blobs
from orchestrator.git.proof import archive_of, manifest_of, tree_of
from orchestrator.git.repository import commit_of
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.worktree import admin_dir, entries

PERSONAL = ("index", "HEAD")


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a worktree is again."""

    path: Path
    branch: str
    """The branch that is checked out, "" = the head is detached."""
    head: str
    notes: tuple[str, ...] = ()


def restore(git: Git, ref: str, to: Path | None = None) -> Restored:
    """Make the worktree of a recovery ref again, at its old place or in a new folder.

    Raises UsageError when the ref is none of ours or the folder is there already, GitFailed, OSError.
    """
    if not commit_of(git, ref):
        raise UsageError(f"no recovery ref {ref}", hint="hermux worktree ls --recovery")
    manifest = manifest_of(git, ref)
    path = to or Path(manifest["path"])
    if os.path.lexists(path):
        raise UsageError(
            f"{path} exists already", hint=f"name another folder: hermux worktree restore {ref} DIR"
        )
    if not manifest.get("head"):
        raise UsageError(f"{ref} names no commit that was checked out", hint=f"git show {ref}:manifest.json")
    notes: list[str] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    with repository_lock(git.where, timeout=60):
        _prune_same(git, path)
        git.write(
            "worktree", "add", "--quiet", "--no-checkout", "--detach", "--", str(path), manifest["head"]
        )
    admin = admin_dir(git, path)
    if admin is None:
        raise GitFailed(f"git made no entry for {path}")
    if manifest.get("files"):
        _write_files(git, ref, path, manifest)
        _unpack(archive_of(git, ref, "nested.tar"), path)
    else:
        Git(path, git.env).write("reset", "--hard", "--quiet", "--no-recurse-submodules")
    _unpack(archive_of(git, ref, "gitdir.tar"), admin)
    _relink(path, admin)
    _bring_again(path, manifest, notes)
    branch = _head(git, admin, path, manifest, notes)
    notes += _missing(Git(path, git.env), manifest)
    return Restored(path, branch, commit_of(Git(path, git.env), "HEAD"), tuple(notes))


def _prune_same(git: Git, path: Path) -> None:
    """Drop the entry of a folder that is gone, if there is one for just this path."""
    if path in entries(git):
        git.write("worktree", "remove", "--force", str(path))


def _write_files(git: Git, ref: str, root: Path, manifest: Mapping[str, Any]) -> None:
    modes = manifest.get("modes") or {}
    files = tree_of(git, ref)
    paths = list(files)
    contents = read_blobs(git, [files[path][1] for path in paths])
    for path, (_, raw) in zip(paths, contents, strict=True):
        full = root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        mode = files[path][0]
        if mode == LINK:
            full.symlink_to(os.fsdecode(raw))
            continue
        full.write_bytes(raw)
        full.chmod(int(str(modes[path]), 8) if path in modes else 0o755 if mode == "100755" else 0o644)
    for path in manifest.get("empty") or ():
        (root / path).mkdir(parents=True, exist_ok=True)


def _unpack(raw: bytes, root: Path) -> None:
    if raw:
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            archive.extractall(root, filter="tar")


def _bring_again(root: Path, manifest: Mapping[str, Any], notes: list[str]) -> None:
    """Copy and link in again what hermux had brought from the user's checkout."""
    for each in manifest.get("brought") or ():
        target, source = root / each["path"], Path(str(manifest["repo"])) / each["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        if each["link"]:
            target.symlink_to(each["link"])
        elif digest_of(source) == each["sha256"]:
            shutil.copy2(source, target)
        else:
            notes.append(f"{each['path']} was a copy of {source}, which has changed: it is not there again")


def _relink(path: Path, admin: Path) -> None:
    """Point submodules that were checked out to where their git directories are now, and those back to them."""
    for link in path.rglob(".git"):
        if link.parent == path or not link.is_file():
            continue
        old = link.read_text().removeprefix("gitdir:").strip()
        _, found, name = old.partition("/modules/")
        home = admin / "modules" / name
        if found and home.is_dir():
            link.write_text(f"gitdir: {os.path.relpath(home, link.parent)}\n")
            Git(home, {}).write(
                "config", "-f", str(home / "config"), "core.worktree", os.path.relpath(link.parent, home)
            )


def _head(git: Git, admin: Path, path: Path, manifest: Mapping[str, Any], notes: list[str]) -> str:
    """Check out the branch again where it still is what it was; else leave the head detached, and say so."""
    branch, head, here = str(manifest["branch"]), str(manifest["head"]), Git(path, git.env)
    head_file = admin / "HEAD"
    head_file.write_text(f"{head}\n")
    own = str(manifest.get("own_branch") or "")
    tip = str(manifest.get("tip") or "")
    if own and tip and own != branch and not commit_of(git, f"refs/heads/{own}"):
        git.write("update-ref", f"refs/heads/{own}", tip, "")
    if not branch:
        return ""
    now = commit_of(git, f"refs/heads/{branch}")
    used = [entry.path for entry in entries(git).values() if entry.branch == branch and entry.path != path]
    if used:
        notes.append(f"{branch} is checked out in {used[0]}: the head is detached at {head[:8]}")
        return ""
    if now and now != head:
        notes.append(f"{branch} has moved on to {now[:8]}: the head is detached at {head[:8]}")
        return ""
    if not now:
        here.write("update-ref", f"refs/heads/{branch}", head, "")
    head_file.write_text(f"ref: refs/heads/{branch}\n")
    return branch


def _missing(git: Git, manifest: Mapping[str, Any]) -> list[str]:
    """Say what is not there again, and put back stashes that were dropped since."""
    told = []
    listed = (
        git.line("log", "--walk-reflogs", "--format=%H", "refs/stash").split()
        if commit_of(git, "refs/stash")
        else []
    )
    for commit, text in reversed(manifest.get("stashes") or []):
        if commit not in listed:
            git.write("stash", "store", "-m", str(text).partition(": ")[2] or str(text), str(commit))
            told.append(f"stash put back: {text}")
    for key, what in (
        ("special", "held no content (FIFO, socket)"),
        ("left_out", "left out"),
    ):
        paths = [str(path) for path in manifest.get(key) or ()]
        if paths:
            told.append(
                f"{what}: {', '.join(paths[:5])}" + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
            )
    return told
