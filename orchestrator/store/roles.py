"""Roles on disk: `role.yaml` and `SOUL.md` in the user's folder or in the one that ships with hermux.

`$XDG_CONFIG_HOME/hermux/roles/<role>/` comes first, file by file: a folder with nothing but a SOUL.md
gives a packaged role another persona.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.fleet.role import ROLE_RULE, Approvals, Checkpoints, Fallback, Role, Skills, WorktreeFiles
from orchestrator.fleet.spec import ROLE_ORDER, Restart, RestartPolicy, StallPolicy, StallStep
from orchestrator.store.role_faults import faults_of, known_fields
from orchestrator.store.yamlfile import Located, Place, read

LARGEST_SOUL = 64 * 1024
"""Bytes: the persona is sent with every model call."""


@dataclass(frozen=True, slots=True)
class FoundRole:
    """A role, and where each of its fields was written."""

    role: Role
    file: Located

    def line(self, field: str) -> int:
        """Return the line of a field such as `approvals.timeout`, 0 where the default holds."""
        place = tuple(field.split("."))
        return self.file.lines.get(place) or (self.file.lines.get(place[:1], 0) if self._short(place) else 0)

    def _short(self, place: Place) -> bool:
        """Whether the field was given by its parent's short form: `restart: never`."""
        return place == ("restart", "policy") and not isinstance(self.file.data.get("restart"), dict)


def load_role(name: str, env: Mapping[str, str]) -> Role:
    """Return the role called `name`.

    Raises UsageError: for an unknown role, naming the nearest; for a malformed one, naming every
    fault as "file:line: field: what".
    """
    return find_role(name, env).role


def find_role(name: str, env: Mapping[str, str]) -> FoundRole:
    """Return the role and where its fields stand; raises what `load_role` raises."""
    role_file, soul_file = role_files(name, env)
    found = read(role_file)
    faults = [(0, f"{soul_file}: missing (the persona)")] if not soul_file.is_file() else []
    faults += found.faults
    checked = _checked(found, faults)
    souls: list[str] = []
    soul = _soul(soul_file, souls)
    if faults or souls or checked is None:
        lines = [text for _, text in sorted(faults, key=lambda fault: fault[0])]
        raise UsageError("\n".join([*lines, *souls]), hint="the fields: " + ", ".join(known_fields(())))
    return FoundRole(_role(name, checked, soul, role_file.parent, soul_file), found)


def list_roles(env: Mapping[str, str]) -> list[str]:
    """Return the names of all roles: the packaged ones in their order, then the user's own."""
    names = {
        entry.name
        for folder in _folders(env)
        if folder.is_dir()
        for entry in folder.iterdir()
        if re.fullmatch(ROLE_RULE, entry.name) and entry.is_dir()
    }
    order = {role: place for place, role in enumerate(ROLE_ORDER)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))


def user_roles(env: Mapping[str, str]) -> Path:
    """Return the folder of the user's own roles; it need not exist."""
    config = Path(env.get("XDG_CONFIG_HOME", ""))
    if not config.is_absolute():  # the XDG rule: a relative value is ignored
        config = Path(env.get("HOME") or Path.home()) / ".config"
    return config / "hermux" / "roles"


def packaged_roles() -> Path:
    """Return the folder of the roles that ship: in the wheel, or in the checkout beside the package."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def role_files(name: str, env: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the role.yaml and the SOUL.md of a role; the user's come first. Raises UsageError for an unknown one."""
    places = [folder / name for folder in _folders(env)] if re.fullmatch(ROLE_RULE, name) else []
    if not any(place.is_dir() for place in places):
        raise _unknown(name, env)
    return _first(places, "role.yaml"), _first(places, "SOUL.md")


def schema_file() -> Path:
    """Return the schema of role.yaml for editors: in the wheel, or in the checkout beside the package."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_role.schema.json"
    return inside if inside.is_file() else package.parent / "docs" / "role.schema.json"


def _folders(env: Mapping[str, str]) -> list[Path]:
    return [user_roles(env), packaged_roles()]


def _first(places: list[Path], file: str) -> Path:
    """Return the first of the files that exists; if none does, where it should be."""
    there = [place for place in places if place.is_dir()]
    return next((place / file for place in there if (place / file).is_file()), there[0] / file)


def _unknown(name: str, env: Mapping[str, str]) -> UsageError:
    known = list_roles(env)
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(f"no role {name!r}", hint=f"{hint}the roles: {', '.join(known)}")


def _soul(path: Path, faults: list[str]) -> str:
    if not path.is_file():
        return ""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig").strip()
    except OSError as error:
        faults.append(f"{path}: cannot be read: {error.strerror or error}")
        return ""
    except UnicodeDecodeError as error:
        faults.append(f"{path}:{error.object[: error.start].count(10) + 1}: not UTF-8")
        return ""
    if not text:
        faults.append(f"{path}: empty")
    if len(raw) > LARGEST_SOUL:
        faults.append(f"{path}: {len(raw)} bytes; {LARGEST_SOUL} at most, it is sent with every call")
    return text + "\n"


def _checked(found: Located, faults: list[tuple[int, str]]) -> Any:
    """Return the validated `RoleFile`, or None after adding every fault."""
    from pydantic import ValidationError

    from orchestrator.store.role_schema import RoleFile

    if not isinstance(found.data, dict):
        what = "empty" if found.data is None else "not a list of fields"
        if () not in found.bad and not (found.data is None and faults):
            faults.append((1, f"{found.path}:1: {what}; write for example `description: what it is for`"))
        return None
    try:
        return RoleFile.model_validate(found.data)
    except ValidationError as error:
        faults.extend(faults_of(found, error))
        return None


def restart_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked fields of a `restart:` as those of a `RestartPolicy`."""
    return {name: Restart(value) if name == "policy" else value for name, value in fields.items()}


def _role(name: str, checked: Any, soul: str, folder: Path, soul_file: Path) -> Role:
    asks, tree, skills = checked.approvals, checked.worktree, checked.skills
    return Role(
        name=name,
        description=checked.description,
        soul=soul,
        toolsets=tuple(checked.toolsets),
        max_turns=checked.max_turns,
        model=checked.model,
        endpoint=checked.endpoint,
        key_env=checked.key_env,
        fallback=tuple(Fallback(**each.model_dump()) for each in checked.fallback),
        max_tokens=checked.max_tokens,
        temperature=checked.temperature,
        approvals=Approvals(asks.mode, asks.timeout, tuple(asks.allow), tuple(asks.deny)),
        checkpoints=Checkpoints(**checked.checkpoints.model_dump()),
        skills=Skills(None if skills.allow is None else tuple(skills.allow), tuple(skills.deny)),
        inherit=tuple(dict.fromkeys(checked.inherit)),
        nudge=checked.nudge,
        restart=RestartPolicy(**restart_fields(checked.restart.model_dump())),
        stall=StallPolicy(checked.stall.turn, checked.stall.tool, StallStep(checked.stall.then)),
        worktree=WorktreeFiles(tuple(tree.copy_), tuple(tree.link), tree.setup),
        source=str(folder),
        soul_source=str(soul_file),
    )
