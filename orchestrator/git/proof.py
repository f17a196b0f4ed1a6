"""Deleting only what a recovery ref was seen to hold: each file is compared with the ref before, by its bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.git.files import GIT, LINKED, blob_id, content, everything, file_of, walk
from orchestrator.git.objects import algorithm, kinds, read_blob, read_blobs
from orchestrator.git.run import Git, GitFailed
from orchestrator.git.status import Target


@dataclass(slots=True)
class Proof:
    """`held` files are in the ref as they are on disk, with the mark of the moment; `missing` are not."""

    held: dict[str, tuple[int, ...]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def manifest_of(git: Git, ref: str) -> dict[str, Any]:
    """Return the manifest of a recovery ref. Raises GitFailed when it is none."""
    try:
        found = json.loads(read_blob(git, f"{ref}:manifest.json"))
    except ValueError as error:
        raise GitFailed(f"{ref} is no recovery ref of hermux: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != 1:
        raise GitFailed(f"{ref} is no recovery ref that this hermux can read")
    return found


def tree_of(git: Git, ref: str, below: str = "worktree") -> dict[str, tuple[str, str]]:
    """Return (mode, id) of each file of a recovery ref."""
    raw = git.read("ls-tree", "-r", "-z", "--full-tree", ref, f"{below}/")
    found = {}
    for row in raw.split(b"\0"):
        if row:
            facts, _, path = row.partition(b"\t")
            mode, _, ident = facts.decode().split()
            found[os.fsdecode(path).removeprefix(f"{below}/")] = (mode, ident)
    return found


def archive_of(git: Git, ref: str, name: str) -> bytes:
    """Return one of the archives of a recovery ref, b"" when it has none."""
    there = git.read("ls-tree", "--full-tree", "--name-only", ref, name)
    return read_blob(git, f"{ref}:{name}") if there.strip() else b""


def check_objects(git: Git, ref: str, new: Sequence[str]) -> None:
    """Raise GitFailed unless all of the ref can be read, and what was written for it reads back as it was."""
    idents = {ident for mode, ident in tree_of(git, ref).values()}
    idents |= {ident for mode, ident in tree_of(git, ref, "staged").values() if mode != "160000"}
    there = kinds(git, sorted(idents))
    lost = [ident for ident in idents if there.get(ident) != "blob"]
    if lost:
        raise GitFailed(f"{len(lost)} objects of {ref} cannot be read back")
    kind = algorithm(git)
    for ident, raw in read_blobs(git, list(dict.fromkeys(new))):
        if hashlib.new(kind, b"blob %d\0" % len(raw) + raw).hexdigest() != ident:
            raise GitFailed(f"the object {ident} of {ref} reads back with other bytes")


def prove(target: Target, ref: str, root: Path) -> Proof:
    """Compare everything below `root` with a recovery ref; nothing is changed. Raises GitFailed, OSError."""
    git, proof = target.git, Proof()
    kept, kind = tree_of(git, ref), algorithm(git)
    brought = {each["path"] for each in manifest_of(git, ref).get("brought") or ()}
    archived = _members(archive_of(git, ref, "nested.tar"))
    found = walk(root)
    for path, file in found.files.items():
        same = kept.get(path) == (file.mode, blob_id(root / path, kind))
        _note(proof, path, file.mark, same or (path in brought and _is_brought(target, root, path)))
    for top in found.git:
        for each in everything(root / top):
            if each.is_dir() and not each.is_symlink():
                continue
            path = each.relative_to(root).as_posix()
            mark = file_of(each.lstat()).mark
            _note(proof, path, mark, archived.get(path) == _digest(each))
    return proof


def _note(proof: Proof, path: str, mark: tuple[int, ...], same: bool) -> None:
    if same:
        proof.held[path] = mark
    else:
        proof.missing.append(path)


def _is_brought(target: Target, root: Path, path: str) -> bool:
    item = next((each for each in target.brought if each.path == path), None)
    here = root / path
    if item is None:
        return False
    if item.link:
        return here.is_symlink() and os.readlink(here) == item.link  # noqa: PTH115
    there = target.repo / path
    return there.is_file() and not here.is_symlink() and there.read_bytes() == here.read_bytes()


def _members(raw: bytes) -> Mapping[str, str]:
    """Return a digest of each file and link of an archive."""
    if not raw:
        return {}
    found = {}
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for member in archive:
            if member.issym():
                found[member.name] = hashlib.sha256(b"l" + os.fsencode(member.linkname)).hexdigest()
            elif not member.isdir():
                file = archive.extractfile(member)
                data = file.read() if file else b""
                found[member.name] = hashlib.sha256(b"f" + data).hexdigest()
    return found


def _digest(path: Path) -> str:
    kind = b"l" if path.is_symlink() else b"f"
    return hashlib.sha256(kind + content(path)).hexdigest() if path.is_symlink() or path.is_file() else ""


def delete(root: Path, proof: Proof) -> list[str]:
    """Delete what is proven and has not changed since, and folders that are empty then; return what stays."""
    left: list[str] = []
    _delete(root, "", proof, left)
    return left


def _delete(root: Path, below: str, proof: Proof, left: list[str]) -> None:
    folder = root / below
    for name in sorted(os.listdir(folder)):  # noqa: PTH208
        path = f"{below}/{name}" if below else name
        full = root / path
        if full.is_dir() and not full.is_symlink():
            _delete(root, path, proof, left)
        elif (not below and name == GIT) or _unchanged(full, proof.held.get(path)):
            _unlink(full)
        elif not (full.is_file() or full.is_symlink()):
            _unlink(full)  # a FIFO or socket: it holds nothing
        else:
            left.append(path)
    _rmdir(folder)


def _unchanged(path: Path, mark: tuple[int, ...] | None) -> bool:
    if mark is None:
        return False
    now = file_of(path.lstat()).mark
    return now == mark or (mark[3] == LINKED and now[:3] == mark[:3])


def _rmdir(folder: Path) -> None:
    try:
        folder.rmdir()
    except PermissionError:
        with suppress(OSError):
            folder.parent.chmod(0o700)
            folder.rmdir()
    except OSError:
        return  # something in it stays


def _unlink(path: Path) -> None:
    try:
        path.unlink()
    except PermissionError:
        path.parent.chmod(0o700)
        path.unlink()
