"""Recovery refs: everything of a worktree that would be lost with it, byte for byte, in the repository itself.

`refs/hermux/recovery/<fleet>/<worker>/<time>` is a commit. Its parents are the head and every commit that only the
worktree's own git directory knew (detached work, the two ends of a rebase, its reflog, stashes). Its tree:

    manifest.json    where it was, on which branch; file modes that git does not keep, names of what is not in it
    worktree/…       each file as it lay there
    staged/<n>/…     the index (stage 0; 1 to 3 of a conflict)
    gitdir.tar       the worktree's own git directory: index, HEAD, a rebase or merge under way, submodules
    nested.tar       the `.git` of repositories inside the worktree
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.git.bring import as_brought
from orchestrator.git.files import EXECUTABLE, LINK, REGULAR, File, Walk, blob_id, everything, walk
from orchestrator.git.objects import (
    algorithm,
    flush,
    kinds,
    write_blob,
    write_commit,
    write_files,
    write_tree,
)
from orchestrator.git.repository import commit_of
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.status import Status, Target, stashes
from orchestrator.git.worktree import admin_dir

PREFIX = "refs/hermux/recovery"
LIMIT = 256 << 20
"""Bytes that a recovery ref may add to a repository. A worktree with more of its own is kept."""
NOT_STATE = ("gitdir", "commondir", "locked")
"""Files of the worktree's git directory that only say where it is."""
_USUAL = {REGULAR: 0o644, EXECUTABLE: 0o755, LINK: 0o777}


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovery ref that was made. `left_out` = why something is not in it; empty = all is."""

    ref: str
    commit: str
    ignored: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """Objects that were written for it."""


@dataclass(slots=True)
class _Draft:
    """A recovery commit while it is put together."""

    git: Git
    root: Path
    algorithm: str
    limit: int
    entries: dict[str, tuple[str, str]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    size: int = 0

    def room(self, size: int, what: str) -> bool:
        if self.size + size > self.limit:
            self.left_out.append(f"{what}: {size >> 20} MiB, and {self.limit >> 20} MiB is the most in all")
            return False
        self.size += size
        return True

    def blob(self, path: str, data: bytes) -> None:
        ident = write_blob(self.git, data)
        self.new.append(ident)
        self.entries[path] = (REGULAR, ident)


def take(target: Target, status: Status | None, *, ignored: bool, limit: int = LIMIT) -> Recovery:
    """Make a recovery ref of a worktree, on disk when this returns. Nothing of the worktree changes.

    `status` is None for a worktree whose folder is gone: then what git's own files know of it is kept. Without
    `ignored`, ignored files are only named. Raises GitFailed, OSError: then no ref was made.
    """
    git = target.git
    draft = _Draft(git, target.path, algorithm(git), limit)
    admin = admin_dir(git, target.path)
    manifest = _head(target, status)
    if status is not None:
        manifest |= _files(target, draft, with_ignored=ignored)
    parents = _git_state(target, draft, admin, status)
    manifest["stashes"] = [list(each) for each in stashes(target)]
    manifest["left_out"] = draft.left_out
    draft.blob("manifest.json", json.dumps(manifest, indent=1).encode() + b"\n")
    ref = _name(git, target)
    commit = write_commit(git, write_tree(git, draft.entries), parents, _message(target, ref))
    flush(target.common)
    git.write("update-ref", "-m", "hermux: kept before a removal", ref, commit, "")
    flush(target.common)
    return Recovery(ref, commit, tuple(manifest.get("ignored", ())), tuple(draft.left_out), tuple(draft.new))


def _head(target: Target, status: Status | None) -> dict[str, Any]:
    git = target.git
    tip = commit_of(git, f"refs/heads/{target.branch}")
    return {
        "schema": 1,
        "fleet": target.fleet,
        "worker": target.worker,
        "time": time.time(),
        "path": str(target.path),
        "repo": str(target.repo),
        "own_branch": target.branch,
        "base": target.base,
        "tip": tip,
        "files": status is not None,
        "head": status.head if status else tip,
        "branch": status.branch if status else target.branch,
    }


def _files(target: Target, draft: _Draft, *, with_ignored: bool) -> dict[str, Any]:
    """Put the files into the draft, and return what of them stands in the manifest."""
    found = walk(target.path)
    ignored = _ignored(target, found)
    ours = {item.path for item in as_brought(target.path, target.brought) if _still_there(target, item.path)}
    passed = ours | (set() if with_ignored else set(ignored))
    chosen = {path: file for path, file in found.files.items() if path not in passed}
    ids = _stored(draft, chosen, _index_ids(target.inside))
    for path, ident in ids.items():
        draft.entries[f"worktree/{path}"] = (chosen[path].mode, ident)
    nested = found.git if with_ignored else [each for each in found.git if not _below(each, ignored)]
    _tar(draft, "nested.tar", target.path, nested)
    modes = {p: f"{f.permissions:o}" for p, f in chosen.items() if f.permissions != _USUAL[f.mode]}
    return {
        "ignored": ignored,
        "brought": [asdict(item) for item in target.brought if item.path in ours],
        "modes": {path: mode for path, mode in modes.items() if found.files[path].mode != LINK},
        "empty": found.empty,
        "nested": found.nested,
        "special": found.special,
    }


def _ignored(target: Target, found: Walk) -> list[str]:
    """Return the files that git ignores, without those in ignored repositories of their own but with their folder."""
    raw = target.inside.read("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    named = [os.fsdecode(path) for path in raw.split(b"\0") if path]
    folders = tuple(path for path in named if path.endswith("/"))
    inside = [path for path in found.files if folders and path.startswith(folders)]
    return sorted({*(path for path in named if not path.endswith("/")), *inside})


def _below(path: str, ignored: Sequence[str]) -> bool:
    folder = path.rpartition("/")[0] + "/"
    return any(each.startswith(folder) for each in ignored)


def _still_there(target: Target, path: str) -> bool:
    """Whether a file that was brought in still is in the user's checkout just so: then it is no work."""
    here, there = target.path / path, target.repo / path
    try:
        return here.is_symlink() or (there.is_file() and there.read_bytes() == here.read_bytes())
    except OSError:
        return False


def _index_ids(git: Git) -> set[str]:
    """Return the ids of all blobs that the index names: they are in the repository already."""
    rows = git.read("ls-files", "-s", "-z").split(b"\0")
    return {row.split()[1].decode() for row in rows if row and not row.startswith(b"160000")}


def _stored(draft: _Draft, files: Mapping[str, File], known: set[str]) -> dict[str, str]:
    """Return the id of each file's raw bytes; those that git does not have are written."""
    ids = {path: blob_id(draft.root / path, draft.algorithm) for path in files}
    there = kinds(draft.git, sorted(known))
    missing = [p for p, ident in ids.items() if ident not in there and draft.room(files[p].size, p)]
    for path, ident in zip(missing, write_files(draft.git, draft.root, missing), strict=True):
        if ident != ids[path]:
            raise GitFailed(f"{path} changed while it was read", hint="stop what writes there, and try again")
    draft.new += [ids[path] for path in missing]
    kept = set(missing)
    return {path: ident for path, ident in ids.items() if ident in there or path in kept}


def _tar(draft: _Draft, name: str, root: Path, paths: Sequence[str]) -> None:
    """Put files and folders as one archive into the draft: what git's trees do not take, and modes and times."""
    if not paths:
        return
    inside = [path for each in paths for path in everything(root / each)]
    size = sum(path.lstat().st_size for path in inside if path.is_file() and not path.is_symlink())
    if not draft.room(size, f"{name} ({', '.join(paths[:3])})"):
        return
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each in paths:
            archive.add(root / each, arcname=each, filter=_no_sockets)
    draft.blob(name, buffer.getvalue())


def _no_sockets(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return member if member.isfile() or member.isdir() or member.issym() or member.islnk() else None


def _git_state(target: Target, draft: _Draft, admin: Path | None, status: Status | None) -> list[str]:
    """Put the index and the git directory's state into the draft; return the commits to be kept, head first."""
    head = status.head if status else commit_of(target.git, f"refs/heads/{target.branch}")
    found = [head, commit_of(target.git, f"refs/heads/{target.branch}"), *(c for c, _ in stashes(target))]
    if admin is not None:
        names = sorted(path.name for path in admin.iterdir())
        state = [n for n in names if n not in NOT_STATE and not n.endswith(".lock")]
        _tar(draft, "gitdir.tar", admin, state)
        found += [ident for name in state for ident in _named_in(admin / name)]
        _staged(draft, Git(admin, target.env), admin)
    objects = kinds(target.git, list(dict.fromkeys(each for each in found if each)))
    commits = [each for each in dict.fromkeys(found) if objects.get(each) == "commit"]
    return _tips(target.git, commits)


def _named_in(path: Path) -> list[str]:
    """Return whatever in small text files looks like an object's id."""
    found: list[str] = []
    for each in everything(path):
        if each.is_file() and not each.is_symlink() and each.name != "index" and "modules" not in each.parts:
            raw = each.read_bytes()[: 1 << 20]
            found += [match.decode() for match in re.findall(rb"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b", raw)]
    return [ident for ident in found if ident.strip("0")]


def _staged(draft: _Draft, git: Git, admin: Path) -> None:
    """Keep each blob of the index; its raw file, with the flags, is in the archive of the git directory."""
    if not (admin / "index").is_file():
        return
    rows = git.read(
        "ls-files", "-s", "-z", extra={"GIT_INDEX_FILE": str(admin / "index"), "GIT_DIR": str(admin)}
    )
    write_blob(draft.git, b"")  # what `git add -N` names and does not write
    for row in rows.split(b"\0"):
        if row:
            facts, _, path = row.partition(b"\t")
            mode, ident, stage = facts.decode().split()
            draft.entries[f"staged/{stage}/{os.fsdecode(path)}"] = (mode, ident)


def _tips(git: Git, commits: list[str]) -> list[str]:
    """Return the first commit and those of the others that are not in its history."""
    if not commits:
        return []
    first, rest = commits[0], commits[1:]
    data = "".join(f"{each}\n" for each in [*rest, f"^{first}"]).encode()
    beyond = set(git.read("rev-list", "--stdin", data=data).decode().split()) if rest else set()
    return [first, *(each for each in rest if each in beyond)]


def _name(git: Git, target: Target) -> str:
    base = f"{PREFIX}/{target.fleet}/{target.worker}/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    taken = set(refs(git, target.fleet, target.worker))
    names = [base, *(f"{base}-{n}" for n in range(2, 1000))]
    return next(name for name in names if name not in taken)


def refs(git: Git, fleet: str = "", worker: str = "") -> list[str]:
    """Return the recovery refs of a repository, oldest first."""
    below = "/".join(part for part in (PREFIX, fleet, worker) if part)
    return git.line("for-each-ref", "--sort=refname", "--format=%(refname)", f"{below}/").split()


def _message(target: Target, ref: str) -> str:
    return (
        f"hermux: all of the worktree of {target.worker} (fleet {target.fleet})\n\n"
        f"It was {target.path}, on the branch {target.branch}.\n"
        f"Bring it back: hermux worktree restore {ref}\n"
        "A single file: git show REF:worktree/PATH\n"
    )
