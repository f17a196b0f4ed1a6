"""What a worker takes over from the user's own Hermes profile: skills, MCP servers, memories.

The user's profile is only read. Values of an MCP server's `env` and `headers` never stand in a worker's
config.yaml: a reference does, and the value goes into the worker's `env` file (0600, gone with `rm`)
under a name that Hermes strips from its tools' environment. OAuth logins are refused: their refresh
tokens are good for one use, so a copy would log the user out.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.role import Role
from orchestrator.hermes.config import SECRET
from orchestrator.hermes.install import HermesInstall
from orchestrator.hermes.model import default_home, read_dotenv, read_profile_config

_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
"""As Hermes reads it: `${NAME}`, or Cursor's `${env:NAME}`."""
_NO_SKILLS = frozenset(
    (".git", ".hub", ".archive", "node_modules", ".venv", "venv", "__pycache__", ".curator_backups")
)
_SUPPORT = frozenset(("references", "templates", "assets", "scripts"))
MEMORIES = ("MEMORY.md", "USER.md")


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a role's workers take over, read and checked; nothing is written yet."""

    home: Path
    """The user's profile."""
    mcp: Mapping[str, Any] | None = None
    """None = not inherited; else the servers, with references in place of secrets."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the worker's `env` file."""
    skills: tuple[Path, ...] = ()
    """Folders below `home/skills`, relative to it."""
    disabled: tuple[str, ...] = ()
    """Names of skills that Hermes is told not to show."""
    memories: bool = False
    notes: tuple[str, ...] = ()

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the servers: each is a toolset."""
        return tuple(self.mcp or ())


def read_inheritance(role: Role, root: Path, install: HermesInstall, env: Mapping[str, str]) -> Inheritance:
    """Read what a role inherits. Raises UsageError for an OAuth login and for a skill that is not there."""
    home = default_home(root)
    mcp, secrets = _servers(role, home, env) if "mcp" in role.inherit else (None, {})
    skills, disabled = _skills(role, home, install)
    notes = []
    if mcp and install.site_packages and not (install.site_packages / "mcp").is_dir():
        notes.append(
            f"role {role.name} inherits MCP servers ({', '.join(mcp)}), but this Hermes cannot run any: its Python"
            f" has no package `mcp` → {install.python or 'python'} -m pip install mcp"
        )
    return Inheritance(
        home, mcp, secrets, skills, disabled, memories="memories" in role.inherit, notes=tuple(notes)
    )


def bequeath(inherited: Inheritance | None, home: Path) -> None:
    """Copy skills and memories into a worker's new profile. Raises NotReady when the disk refuses.

    What the worker has there already stays.
    """
    if inherited is None:
        return
    try:
        for skill in inherited.skills:
            _copy_skill(inherited.home / "skills" / skill, home / "skills" / skill)
        for name in MEMORIES if inherited.memories else ():
            source, target = inherited.home / "memories" / name, home / "memories" / name
            if source.is_file() and not target.exists():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    except (OSError, shutil.Error) as error:
        raise NotReady(f"what {home.name} inherits cannot be copied: {error}") from error


def _copy_skill(source: Path, target: Path) -> None:
    if target.exists():
        return
    if source.is_file():  # Hermes' own list of the skills that it brought itself
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_NO_SKILLS))


def _servers(role: Role, home: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    servers = read_profile_config(home).get("mcp_servers")
    entries = (
        {str(name): each for name, each in servers.items() if _on(each)} if isinstance(servers, dict) else {}
    )
    logins = [name for name, entry in entries.items() if _by_oauth(name, entry, home)]
    if logins:
        raise UsageError(
            f"role {role.name} inherits MCP servers, and {', '.join(logins)} in {home / 'config.yaml'} rests on"
            " an OAuth login: its refresh token is good for one use, so a copy of it would log you out",
            hint="give the server a token of its own (headers: in that file), or take `mcp` out of `inherit`",
        )
    vault = _Vault({**env, **read_dotenv(home / ".env")})
    return {name: vault.entry(entry) for name, entry in entries.items()}, vault.kept


def _on(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("enabled", True) is not False


def _by_oauth(name: str, entry: Mapping[str, Any], home: Path) -> bool:
    file = re.sub(r"[^\w\-]", "_", name).strip("_")[:128] or "default"  # Hermes' own rule
    tokens = home / "mcp-tokens" / f"{file}.json"
    return (
        str(entry.get("auth") or "").strip().lower() == "oauth" or bool(entry.get("oauth")) or tokens.exists()
    )


class _Vault:
    """Takes secrets out of server entries and keeps them under names of ours; equal values share one."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.kept: dict[str, str] = {}

    def entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return a server's entry without a secret in it."""
        return {key: self._part(key, value) for key, value in entry.items()}

    def _part(self, key: str, value: Any) -> Any:
        if key in ("env", "headers") and isinstance(value, dict):
            return {name: self._value(each) for name, each in value.items()}
        if key == "url" and re.search(r"[?@]", str(value)):  # a key in the query, or a password
            return self._value(value)
        return self._references(value)

    def _value(self, value: Any) -> str:
        """Return the reference that stands for a whole value."""
        text = _REFERENCE.sub(lambda match: self._variables.get(match[1], match[0]), str(value))
        return self._reference(text) if text else ""

    def _references(self, value: Any) -> Any:
        """Return a value with its `${NAME}` led to ours: the worker does not have the user's variables."""
        if isinstance(value, str):
            return _REFERENCE.sub(
                lambda match: (
                    self._reference(self._variables[match[1]]) if match[1] in self._variables else match[0]
                ),
                value,
            )
        if isinstance(value, list):
            return [self._references(each) for each in value]
        if isinstance(value, dict):
            return {key: self._references(each) for key, each in value.items()}
        return value

    def _reference(self, text: str) -> str:
        name = next((name for name, kept in self.kept.items() if kept == text), "")
        if not name:
            name = SECRET.format(name=f"MCP{len(self.kept) + 1}")
            self.kept[name] = text
        return f"${{{name}}}"


def _skills(role: Role, home: Path, install: HermesInstall) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the skill folders to copy, and the names that are not to be seen."""
    owned = dict(_found(home / "skills")) if "skills" in role.inherit else {}
    bundled = {name for folder in _bundled(install) for name, _ in _found(folder)}
    allow, deny = role.skills.allow, set(role.skills.deny)
    _check_allowed(role, sorted({*owned, *bundled}))
    hidden = deny | (bundled - set(allow) if allow is not None else set())
    wanted = [place for name, place in owned.items() if name not in deny and (allow is None or name in allow)]
    manifest = (
        [Path(".bundled_manifest")] if owned and (home / "skills" / ".bundled_manifest").is_file() else []
    )
    return (*wanted, *manifest), tuple(sorted(hidden))


def _check_allowed(role: Role, known: list[str]) -> None:
    absent = [name for name in role.skills.allow or () if name not in known]
    if not absent:
        return
    told = []
    for name in absent:
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        told.append(f"{name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    has = f"there are: {', '.join(known[:20])}" if known else "there are none"
    hint = has if "skills" in role.inherit else f"{has}; your own come with `inherit: [skills]`"
    raise UsageError(f"role {role.name}: skills.allow names no skill: {' '.join(told)}", hint=hint)


def _bundled(install: HermesInstall) -> Iterator[Path]:
    """Return where a Hermes keeps the skills it brings: none in the wheel, `skills/` in a checkout."""
    if install.site_packages:
        yield install.site_packages / "skills"
    if install.python:
        yield install.python.parent.parent / "skills"


def _found(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return the name of each skill below a folder, as Hermes takes it, and its place in it."""
    for root, folders, files in os.walk(folder, followlinks=True):
        here = "SKILL.md" in files
        folders[:] = sorted(d for d in folders if d not in _NO_SKILLS and not (here and d in _SUPPORT))
        if here and Path(root) != folder:
            yield _skill_name(Path(root)), Path(root).relative_to(folder)


def _skill_name(folder: Path) -> str:
    """Return the name in a SKILL.md's head, else the folder's."""
    try:
        text = (folder / "SKILL.md").read_text(encoding="utf-8", errors="replace")[:4000]
        head = re.match(r"\A\ufeff?---\s*\n(.*?)\n---", text, re.DOTALL)
        found = yaml.safe_load(head[1]) if head else None
    except (OSError, yaml.YAMLError):
        found = None
    name = found.get("name") if isinstance(found, dict) else None
    return str(name or folder.name)[:64]
