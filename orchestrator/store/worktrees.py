"""What is known of every worktree that hermux made, kept beside it: also when its worker is long gone.

`$XDG_DATA_HOME/hermux/worktrees/<repository>-<hash>/<fleet>-<worker>` is the worktree and `….json` its record.
The record is written before git is asked for anything, so what a killed command left has a name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.fleet.memory import build
from orchestrator.fleet.spec import Worktree
from orchestrator.store.files import BadFile, read_json, write_json
from orchestrator.store.paths import make_private

MAKING, MADE = "making", "made"


@dataclass(frozen=True, slots=True)
class Record:
    """One worktree. `made` once its worker stands in `desired.json`; one left in `making` was never used."""

    fleet: str
    worker: str
    common: str
    """The git directory that it shares with the user's checkout."""
    worktree: Worktree
    state: str = MAKING
    created: float = 0.0
    brought: tuple[Brought, ...] = ()

    @property
    def path(self) -> Path:
        return Path(self.worktree.path)


@dataclass(frozen=True, slots=True)
class Brought:
    """A file or link that hermux put into a worktree beside what git checked out."""

    path: str
    """Relative to the worktree."""
    link: str = ""
    """Where the link points to; "" = a copy."""
    sha256: str = ""
    """Of a copy's content."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the worktree of a worker would lie."""

    path: Path
    branch: str


def data_root(env: Mapping[str, str]) -> Path:
    """Return hermux's folder for data; a relative XDG_DATA_HOME is ignored, as its rule says."""
    xdg = env.get("XDG_DATA_HOME", "")
    if xdg.startswith("/"):
        return Path(xdg) / "hermux"
    home = env.get("HOME", "")
    return (Path(home) if home else Path.home()) / ".local" / "share" / "hermux"


def worktrees_root(env: Mapping[str, str]) -> Path:
    """Return the folder of all worktrees that hermux makes."""
    return data_root(env).resolve() / "worktrees"  # git resolves links in the paths that it keeps


def plan(env: Mapping[str, str], common: Path, *, top: Path, fleet: str, worker: str) -> Plan:
    """Return path and branch of a worker's worktree: the same for all checkouts of one repository."""
    mark = hashlib.sha256(str(common).encode(errors="surrogateescape")).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", top.name, flags=re.ASCII)[:40].strip("-.") or "repository"
    path = worktrees_root(env) / f"{name}-{mark}" / f"{fleet}-{worker}"
    return Plan(path, f"hermux/{fleet}/{worker}")


def write_record(record: Record) -> None:
    """Keep a record; it is on disk when this returns. Raises OSError, NotReady."""
    make_private(record.path.parent)
    write_json(_file(record.path), {"schema": 1, **asdict(record)})


def made(record: Record) -> Record:
    """Note that the worktree is in use, and return the record."""
    done = replace(record_at(record.path) or record, state=MADE)
    write_record(done)
    return done


def drop_record(record: Record) -> None:
    """Forget a worktree that is gone; folders that are empty then go too."""
    _file(record.path).unlink(missing_ok=True)
    for folder in (record.path.parent, record.path.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            return


def records(env: Mapping[str, str], *, fleet: str = "") -> list[Record]:
    """Return what is known of all worktrees, or of one fleet's; a damaged record is passed over."""
    return [each for each in _all(env) if not fleet or each.fleet == fleet]


def find(env: Mapping[str, str], fleet: str, worker: str) -> list[Record]:
    """Return the worktrees of one worker: more than one when it lived in several repositories."""
    return [each for each in records(env, fleet=fleet) if each.worker == worker]


def record_at(path: Path) -> Record | None:
    """Return the record of the worktree at a path, None when there is none."""
    try:
        raw = read_json(_file(path))
        return None if raw is None else _record(raw)
    except (BadFile, TypeError, ValueError, KeyError, AttributeError):
        return None


def _all(env: Mapping[str, str]) -> Iterator[Record]:
    for file in sorted(worktrees_root(env).glob("*/*.json")):
        found = record_at(file.with_name(file.name.removesuffix(".json")))
        if found is not None:
            yield found


def _record(raw: Mapping[str, Any]) -> Record:
    return build(Record, raw)


def _file(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")
