"""Roles as people see them: the list, one role whole, and a new one in the user's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import BadName, NotReady, UsageError
from orchestrator.fleet.role import ROLE_RULE
from orchestrator.store.files import write_text
from orchestrator.store.roles import (
    FoundRole,
    find_role,
    list_roles,
    packaged_roles,
    role_files,
    schema_file,
    user_roles,
)

PACKAGED, OWN, MIXED = "packaged", "own", "own persona"


@dataclass(frozen=True, slots=True)
class Listed:
    """A role in a list."""

    name: str
    source: str
    """packaged, own, or "own persona": a SOUL.md of the user's with a packaged role.yaml."""
    description: str
    """One line; "" for a role that cannot be used."""
    trouble: str
    """What is wrong with it, its first line; "" = nothing."""
    folder: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a role as it holds."""

    field: str
    value: Any
    origin: str
    """`FILE:LINE`, or "default"."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A role, whole."""

    name: str
    source: str
    settings: tuple[Setting, ...]
    soul: str
    soul_file: str


def listed(env: Mapping[str, str]) -> list[Listed]:
    """Return all roles, also those that cannot be used."""
    return [_listed(name, env) for name in list_roles(env)]


def _listed(name: str, env: Mapping[str, str]) -> Listed:
    source, folder = _source(name, env)
    try:
        role = find_role(name, env).role
    except UsageError as error:
        return Listed(name, source, "", str(error).splitlines()[0], folder)
    return Listed(name, source, role.description, "", folder)


def _source(name: str, env: Mapping[str, str]) -> tuple[str, str]:
    role, soul = role_files(name, env)
    mine = user_roles(env)
    own = [path.is_relative_to(mine) for path in (role, soul)]
    return (OWN if own[0] else MIXED if own[1] else PACKAGED), str(role.parent)


def shown(name: str, env: Mapping[str, str]) -> Shown:
    """Return a role with every field, defaults too. Raises UsageError for an unknown or malformed one."""
    found = find_role(name, env)
    role = found.role
    return Shown(name, _source(name, env)[0], tuple(_settings(found)), role.soul, role.soul_source)


NO_FIELDS = ("name", "soul", "source", "soul_source")


def _settings(found: FoundRole) -> Iterator[Setting]:
    for field, value in asdict(found.role).items():
        if field in NO_FIELDS:
            continue
        inner = value if isinstance(value, dict) else {}
        for name, each in inner.items() or [("", value)]:
            whole = f"{field}.{name}" if name else field
            line = found.line(whole)
            yield Setting(whole, each, f"{found.file.path}:{line}" if line else "default")


def new(name: str, env: Mapping[str, str], *, like: str = "") -> Path:
    """Write `role.yaml` and `SOUL.md` into the user's folder and return it; nothing is overwritten.

    `like`: the role to begin with; "" = a commented one, or the packaged role of that name. Raises BadName,
    UsageError when it is there already, NotReady when the disk refuses.
    """
    if not re.fullmatch(ROLE_RULE, name):
        raise BadName(
            f"{name!r} is no role name", hint="use 1 to 20 of a-z, 0-9 and '-', starting with a letter"
        )
    folder = user_roles(env) / name
    there = [str(folder / file) for file in ("role.yaml", "SOUL.md") if (folder / file).exists()]
    if there:
        raise UsageError(
            f"{' and '.join(there)}: there already, and left as it is",
            hint=f"edit it, or choose another name: hermux role new NAME --from {name}",
        )
    like = like or (name if (packaged_roles() / name).is_dir() else "")
    texts = _copied(like, env) if like else _template(name)
    made = _make(folder)
    try:
        for file, text in texts.items():
            write_text(folder / file, text, mode=0o644)
    except OSError as error:
        for file in texts:
            (folder / file).unlink(missing_ok=True)
        for empty in made:
            with suppress(OSError):
                empty.rmdir()
        raise NotReady(f"{folder} cannot be written: {error.strerror or error}") from error
    return folder


def _make(folder: Path) -> list[Path]:
    """Make a folder with its parents, and return those that were not there, the innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"{folder} cannot be made: {error.strerror or error}") from error
    return missing


def _copied(like: str, env: Mapping[str, str]) -> dict[str, str]:
    find_role(like, env)  # a malformed one is not multiplied
    role, soul = role_files(like, env)
    text = role.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    return {"role.yaml": _headed(text), "SOUL.md": soul.read_bytes().decode("utf-8-sig")}


def _template(name: str) -> dict[str, str]:
    folder = packaged_roles() / "_template"
    texts = {file: (folder / file).read_text(encoding="utf-8") for file in ("role.yaml", "SOUL.md")}
    filled = {file: text.replace("@NAME@", name) for file, text in texts.items()}
    return {**filled, "role.yaml": _headed(filled["role.yaml"])}


def _headed(text: str) -> str:
    """Return a role.yaml that tells editors its schema: a file of this installation."""
    bare = re.sub(r"\A# yaml-language-server:.*\n", "", text)
    return f"# yaml-language-server: $schema={os.fspath(schema_file())}\n{bare}"
