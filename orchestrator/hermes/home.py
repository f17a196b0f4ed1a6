"""A worker's Hermes profile: `<hermes root>/profiles/hx-<fleet>-<worker>/`, made and kept by hermux.

Hermes recognises a folder there as a profile; making it takes no Hermes process. Only folders that
carry our mark `.hermux` are ever changed, moved or removed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.hermes.config import PLUGIN, endpoint_config, worker_config

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MARK = ".hermux"
PROFILE_RULE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Hermes' own rule for profile names."""
PLUGIN_SOURCE = Path(__file__).parent / "plugin"
LEARNED = ("memories", "skills", "sessions", "state.db")
"""What Hermes adds to a profile while it works: worth an archive."""


def profile_dir(root: Path, profile: str) -> Path:
    """Return the folder of a Hermes profile; `default` is the root itself."""
    return root if profile == "default" else root / "profiles" / profile


def fleet_of(spec: WorkerSpec) -> str:
    """Return the fleet's name out of `hx-<fleet>-<worker>`, "" for a profile named otherwise."""
    head, tail = "hx-", f"-{spec.name}"
    name = spec.hermes_profile
    return name[len(head) : -len(tail)] if name.startswith(head) and name.endswith(tail) else ""


def write_home(
    root: Path,
    spec: WorkerSpec,
    *,
    soul: str,
    key: bool,
    approvals_timeout: float = 86400,
    overrides: Mapping[str, Any] | None = None,
    state: Path | None = None,
) -> Path:
    """Create or refresh a worker's profile and return its folder; what is right already isn't touched.

    `state` is the folder of the fleet's files, noted in the mark: without it nobody could tell later
    whether the worker still exists.

    Hermes rewrites its config.yaml: keys of its own stay, ours win, `overrides` (a role's) win over
    both. Raises UsageError when the folder belongs to somebody else, NotReady when it can't be written.
    """
    home = profile_dir(root, spec.hermes_profile)
    _check_owner(home, spec)
    try:
        _make(home, spec, state)
        _write_config(
            home / "config.yaml",
            worker_config(spec, key=key, approvals_timeout=approvals_timeout),
            overrides or {},
        )
        write_file(home / "SOUL.md", soul.encode())
        copy_plugin(home / "plugins" / PLUGIN)
    except OSError as error:
        raise NotReady(
            f"the Hermes profile {home} cannot be written: {error.strerror or error}",
            hint="free space, or make the folder writable, and try again",
        ) from error
    return home


def outdated(
    root: Path,
    spec: WorkerSpec,
    *,
    soul: str,
    key: bool,
    approvals_timeout: float,
    overrides: Mapping[str, Any],
) -> list[str]:
    """Return the files of a worker's profile that `write_home` would change, less the plugin's."""
    home = profile_dir(root, spec.hermes_profile)
    before = _read_config(home / "config.yaml")
    wanted = _laid_over(before, worker_config(spec, key=key, approvals_timeout=approvals_timeout), overrides)
    persona = home / "SOUL.md"
    same = persona.is_file() and persona.read_bytes() == soul.encode()
    return [*(["config.yaml"] if wanted != before else []), *([] if same else ["SOUL.md"])]


def check_home(root: Path, profile: str) -> list[str]:
    """Return what is missing of a worker's profile, in words; empty = complete."""
    home = profile_dir(root, profile)
    if not home.is_dir():
        return [f"the Hermes profile {profile} ({home})"]
    plugin = [f"plugins/{PLUGIN}/{name}" for name in sorted(_plugin_files())]
    empty = [part for part in (MARK, "config.yaml", *plugin) if not _has_content(home / part)]
    missing = [] if (home / "SOUL.md").is_file() else ["SOUL.md"]
    return [f"{part} in {home}" for part in (*empty, *missing)]


def refresh_plugin(root: Path, profile: str) -> None:
    """Bring the plugin in a profile of ours to this version; takes 1 ms where nothing changed."""
    copy_plugin(_ours(root, profile) / "plugins" / PLUGIN)


def refresh_model(root: Path, spec: WorkerSpec, *, key: bool) -> None:
    """Bring a worker's profile to the endpoint of its spec; 2 ms where it is there already.

    A profile of the user's is left alone, and so is a config.yaml that no YAML reader understands: Hermes
    says that itself. Raises UsageError for a folder that is not ours, OSError.
    """
    if spec.user_profile:
        return
    path = _ours(root, spec.hermes_profile) / "config.yaml"
    before = _read_config(path)
    after = merge(before or {}, endpoint_config(spec, key=key))
    if before is not None and after != before:
        text = yaml.dump(after, Dumper=Dumper, sort_keys=False, allow_unicode=True)
        write_file(path, text.encode(), sync=True)


def has_learned(root: Path, profile: str) -> bool:
    """Whether Hermes has kept anything in the profile: memories, skills or conversations."""
    home = profile_dir(root, profile)
    return any(_has_content(home / part) for part in LEARNED)


def is_ours(root: Path, profile: str) -> bool:
    """Whether there is a profile that carries our mark."""
    home = profile_dir(root, profile)
    return bool(PROFILE_RULE.fullmatch(profile)) and not home.is_symlink() and (home / MARK).is_file()


def archive_home(root: Path, profile: str, to: Path) -> Path:
    """Move a profile of ours into the folder `to` and return where it is now.

    Hermes' logs and request dumps are left out: where an endpoint repeats a key in its errors, they
    hold it (seen on 0.19.0).
    """
    home = _ours(root, profile)
    shutil.rmtree(home / "logs", ignore_errors=True)
    for dump in home.rglob("request_dump_*.json"):
        dump.unlink(missing_ok=True)
    target = to / profile
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(home, target)
    return target


def remove_home(root: Path, profile: str) -> None:
    """Delete a profile of ours; nothing happens if there is none."""
    if os.path.lexists(profile_dir(root, profile)) or not PROFILE_RULE.fullmatch(profile):
        shutil.rmtree(_ours(root, profile))


def _ours(root: Path, profile: str) -> Path:
    """Return the folder of a profile that carries our mark; raise UsageError for any other."""
    home = profile_dir(root, profile)
    if not is_ours(root, profile):
        raise UsageError(f"{home} was not made by hermux, so it is left as it is", hint=f"look at {home}")
    return home


def _check_owner(home: Path, spec: WorkerSpec) -> None:
    if not os.path.lexists(home):
        return
    try:
        mark = json.loads((home / MARK).read_bytes())
        owner = (str(mark["fleet"]), str(mark["worker"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            f"there is a Hermes profile {spec.hermes_profile} already, and hermux didn't make it",
            hint=f"use another worker name, or move {home} away",
        ) from None
    if owner != (fleet_of(spec), spec.name):
        raise UsageError(
            f"the Hermes profile {spec.hermes_profile} belongs to the worker {owner[1]} of fleet {owner[0]}",
            hint="use another worker or fleet name",
        )


def _make(home: Path, spec: WorkerSpec, state: Path | None) -> None:
    """Make the folder with its mark in it: never a moment in which it exists unmarked."""
    if home.exists():
        return
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = home.with_name(f".{home.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    mark = {"schema": 1, "fleet": fleet_of(spec), "worker": spec.name, "state": str(state or "")}
    write_file(scratch / MARK, json.dumps(mark).encode() + b"\n")
    scratch.rename(home)


def _write_config(path: Path, ours: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    before = _read_config(path)
    after = _laid_over(before, ours, overrides)
    if after != before:
        text = yaml.dump(after, Dumper=Dumper, sort_keys=False, allow_unicode=True)
        write_file(path, text.encode(), sync=True)


def _laid_over(
    before: Mapping[str, Any] | None, ours: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return config.yaml as it is to be: what Hermes keeps there, ours over it, the role's over both."""
    after = merge(merge(before or {}, ours), overrides)
    after["hooks"] = dict(overrides.get("hooks") or {})  # a shell hook would run unseen, and cost 30 ms each
    after["plugins"]["enabled"] = _with_ours(before, after["plugins"].get("enabled"))
    return after


def _with_ours(before: Mapping[str, Any] | None, wanted: Any) -> list[str]:
    """Return the plugins to enable: ours, those wanted, and those that were enabled by hand before."""
    plugins = (before or {}).get("plugins")
    earlier = plugins.get("enabled") if isinstance(plugins, dict) else None
    names = [PLUGIN, *(wanted or []), *(earlier if isinstance(earlier, list) else [])]
    return list(dict.fromkeys(str(name) for name in names))


def _read_config(path: Path) -> dict[str, Any] | None:
    """Return what is in config.yaml, None where it is missing or nothing that YAML can read."""
    try:
        content = yaml.load(path.read_bytes(), Loader=Loader)
    except (FileNotFoundError, yaml.YAMLError, UnicodeDecodeError):
        return None
    return content if isinstance(content, dict) else None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` laid on it, mapping by mapping; a list is replaced whole."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return result


def _plugin_files() -> dict[str, Path]:
    return {path.name: path for path in PLUGIN_SOURCE.iterdir() if path.suffix in (".py", ".yaml")}


def copy_plugin(target: Path) -> None:
    """Bring the plugin's folder up to date, file by file, and drop what no longer belongs to it."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    sources = _plugin_files()
    for name, source in sources.items():
        write_file(target / name, source.read_bytes())
    for stale in target.glob("*.py"):
        if stale.name not in sources:
            stale.unlink()


def write_file(path: Path, data: bytes, *, sync: bool = False) -> None:
    """Replace a file atomically, mode 0600, unless it holds exactly `data`.

    Only `sync` survives a power cut for certain; nine of them would take 40 ms, and `check_home` sees
    a file that such a cut left empty.
    """
    if path.is_file() and path.read_bytes() == data:
        return
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)
        if sync:
            stream.flush()
            os.fsync(stream.fileno())
    scratch.replace(path)


def _has_content(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.is_file() and path.stat().st_size > 0
