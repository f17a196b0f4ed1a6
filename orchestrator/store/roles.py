"""Roles on disk: `role.yaml` and `SOUL.md` in the user's folder or in the one that ships with hermux.

`$XDG_CONFIG_HOME/hermux/roles/<role>/` comes first, file by file: a folder with nothing but a SOUL.md
gives a packaged role another persona.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError
from orchestrator.fleet.role import ROLE_RULE, Role
from orchestrator.fleet.spec import ROLE_ORDER, RestartPolicy
from orchestrator.store.yamlfile import Located, Place, load

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

LARGEST_SOUL = 64 * 1024
"""Bytes: the persona is sent with every model call."""


def load_role(name: str, env: Mapping[str, str]) -> Role:
    """Return the role called `name`.

    Raises UsageError: for an unknown role, naming the nearest; for a malformed one, naming every
    fault as "file:line: field: what".
    """
    folders = _folders(env)
    places = [folder / name for folder in folders] if re.fullmatch(ROLE_RULE, name) else []
    if not any(place.is_dir() for place in places):
        raise _unknown(name, env)
    role_file = _first(places, "role.yaml")
    soul_file = _first(places, "SOUL.md")
    found = load(role_file)
    faults = [] if soul_file.is_file() else [f"{soul_file}: missing (the persona)"]
    checked = _checked(found, faults)
    soul = _soul(soul_file, faults)
    if faults or checked is None:
        raise UsageError("\n".join(faults), hint="the fields: " + ", ".join(_known(())))
    return _role(name, checked, soul, role_file.parent)


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


def _checked(found: Located, faults: list[str]) -> Any:
    """Return the validated `RoleFile`, or None after adding every fault."""
    from pydantic import ValidationError

    from orchestrator.store.role_schema import RoleFile

    if not isinstance(found.data, dict):
        what = "empty" if found.data is None else "not a list of fields"
        faults.append(f"{found.path}:1: {what}; write for example `description: what it is for`")
        return None
    try:
        return RoleFile.model_validate(found.data)
    except ValidationError as error:
        faults.extend(_faults(found, error))
        return None


def _faults(found: Located, error: ValidationError) -> list[str]:
    details = sorted(error.errors(include_url=False), key=lambda detail: found.line(detail["loc"]))
    return [f"{found.at(d['loc'])}: {_what(d['loc'], d['type'], d['msg'], d['input'])}" for d in details]


def _what(place: Place, kind: str, message: str, value: Any) -> str:
    """Return one fault in our words."""
    if kind == "extra_forbidden":
        near = get_close_matches(str(place[-1]), _known(place[:-1]), n=1, cutoff=0.5)
        return "unknown field" + (f"; did you mean {near[0]!r}?" if near else "")
    if kind == "missing":
        return "missing"
    said = message.removeprefix("Input should be ").removeprefix("a valid ")
    if kind == "string_pattern_mismatch":
        said = "text without blanks, commas or line breaks where none belong"
    return f"must be {said}, not {value!r:.60}" if value is not None else f"must be {said}, but is empty"


def _known(place: Place) -> list[str]:
    from orchestrator.store import role_schema

    models: dict[Place, type[BaseModel]] = {
        ("approvals",): role_schema.Approvals,
        ("restart",): role_schema.Restart,
    }
    return list(models.get(place, role_schema.RoleFile).model_fields)


def _role(name: str, checked: Any, soul: str, folder: Path) -> Role:
    return Role(
        name=name,
        description=checked.description,
        soul=soul,
        toolsets=tuple(checked.toolsets),
        max_turns=checked.max_turns,
        model=checked.model,
        approvals_timeout=checked.approvals.timeout,
        nudge=checked.nudge,
        restart=RestartPolicy(**checked.restart.model_dump()),
        source=str(folder),
    )
