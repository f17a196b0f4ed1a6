"""Writing into a repository's object store: blobs from raw bytes, trees from lists, and flushing it all to disk."""

from __future__ import annotations

import ctypes
import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestrator.git.run import Git, GitFailed

ARGUMENTS = 60_000
"""Bytes of file names for one git process."""
AT_ONCE = 500
"""Blobs that one git process is asked for."""
_IDENTITY = {
    "GIT_AUTHOR_NAME": "hermux",
    "GIT_AUTHOR_EMAIL": "hermux@localhost",
    "GIT_COMMITTER_NAME": "hermux",
    "GIT_COMMITTER_EMAIL": "hermux@localhost",
}
_BARE_NAMES = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")


def algorithm(git: Git) -> str:
    """Return the repository's hash: sha1 or sha256."""
    try:
        return git.line("rev-parse", "--show-object-format")
    except GitFailed:  # before git 2.28 there was only one
        return "sha1"


def write_files(git: Git, root: Path, paths: Sequence[str]) -> list[str]:
    """Store the raw bytes of files and links, and return their ids in order. Raises GitFailed, OSError."""
    with tempfile.TemporaryDirectory(prefix="hermux-") as scratch:
        named = []
        for place, path in enumerate(paths):
            full = root / path
            if full.is_symlink():
                copy = Path(scratch) / str(place)
                copy.write_bytes(os.fsencode(os.readlink(full)))  # noqa: PTH115
                full = copy
            named.append(str(full))
        return [each for batch in _batches(named) for each in _store(git, batch)]


def _store(git: Git, paths: Sequence[str]) -> list[str]:
    found = git.write("hash-object", "-w", "--no-filters", "-t", "blob", "--", *paths).decode().split()
    if len(found) != len(paths):
        raise GitFailed(f"git hash-object gave {len(found)} ids for {len(paths)} files")
    return found


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if batch and size + length > ARGUMENTS:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch


def write_blob(git: Git, data: bytes) -> str:
    """Store bytes and return their id."""
    return git.write("hash-object", "-w", "--stdin", data=data).decode().strip()


def write_tree(git: Git, entries: Mapping[str, tuple[str, str]]) -> str:
    """Store a tree of (mode, id) by path, and return its id. No index of a worktree is read or changed."""
    lines = [
        f"{mode} {ident}\t".encode() + os.fsencode(path) + b"\0" for path, (mode, ident) in entries.items()
    ]
    with _scratch_index() as index:
        git.write(*_BARE_NAMES, "update-index", "-z", "--index-info", data=b"".join(lines), extra=index)
        return git.write(*_BARE_NAMES, "write-tree", extra=index).decode().strip()


@contextmanager
def _scratch_index() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="hermux-") as scratch:
        yield {"GIT_INDEX_FILE": str(Path(scratch) / "index")}


def write_commit(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Store a commit in hermux's name, and return its id."""
    named = [word for parent in parents for word in ("-p", parent)]
    made = git.write("commit-tree", tree, *named, data=message.encode(), extra=_IDENTITY)
    return made.decode().strip()


def flush(path: Path) -> None:
    """Have everything that was written to the file system of `path` on disk when this returns."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None or syncfs(handle) != 0:
            os.sync()
    finally:
        os.close(handle)


def kinds(git: Git, idents: Sequence[str]) -> dict[str, str]:
    """Return the kind of each object that exists, by its id; nothing is fetched."""
    if not idents:
        return {}
    data = "".join(f"{ident}\n" for ident in idents).encode()
    lines = git.read("cat-file", "--batch-check", data=data, extra={"GIT_NO_LAZY_FETCH": "1"}).decode()
    rows = (line.split() for line in lines.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 3}


def read_blobs(git: Git, idents: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the content of each blob, many to one git process. Raises GitFailed."""
    for start in range(0, len(idents), AT_ONCE):
        batch = idents[start : start + AT_ONCE]
        stream = io.BytesIO(git.read("cat-file", "--batch", data="".join(f"{i}\n" for i in batch).encode()))
        for ident in batch:
            head = stream.readline().split()
            if len(head) != 3:
                raise GitFailed(f"the object {ident} cannot be read")
            yield ident, stream.read(int(head[2]))
            stream.read(1)


def read_blob(git: Git, name: str) -> bytes:
    """Return the content of a blob by id or `REF:path`. Raises GitFailed."""
    return git.read("cat-file", "blob", name)
