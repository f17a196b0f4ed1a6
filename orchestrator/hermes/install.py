"""Finds the Hermes to run, its version and its folders, without starting it where that is possible."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.errors import NotReady

VERSION_TIMEOUT = 30.0
"""Seconds for `hermes --version`, which takes 0.3 s, or 1 s the first time after an install."""
HINT = "install it (pip install hermes-agent==0.19.0 in an environment of its own), or set HERMUX_HERMES"


@dataclass(frozen=True, slots=True)
class HermesInstall:
    """A Hermes on this machine."""

    path: Path
    """What to run."""
    version: str
    """"0.19.0", or "unknown"."""
    python: Path | None
    """Hermes' interpreter, None for a wrapper that doesn't show it."""
    site_packages: Path | None
    """The folder that holds `hermes_cli` and `cli.py`; None where it can't be found."""


def hermes_root(env: Mapping[str, str]) -> Path:
    """Return the folder that holds Hermes' `profiles/`, as Hermes' own get_default_hermes_root does.

    Inside a profile (`HERMES_HOME` = `<root>/profiles/<name>`, so also inside a worker) it is `<root>`.
    """
    native = _home(env) / ".hermes"
    if not env.get("HERMES_HOME", "").strip():
        return native
    given = Path(env["HERMES_HOME"]).expanduser()
    if given.resolve().is_relative_to(native.resolve()):
        return native
    return given.parent.parent if given.parent.name == "profiles" else given


def find_hermes(env: Mapping[str, str]) -> HermesInstall:
    """Return the Hermes to use: `HERMUX_HERMES`, else on PATH, else one that hermux installed.

    Raises NotReady with the next step when there is none, or when the one named cannot be run.
    """
    path = _candidate(env)
    cache = _cache_path(env)
    key = _fingerprint(path)
    found = _cached(cache, key, path)
    if found is None:
        found = _inspect(path)
        _remember(cache, key, found)
    return found


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _candidate(env: Mapping[str, str]) -> Path:
    named = env.get("HERMUX_HERMES", "").strip()
    if named:
        found = shutil.which(named, path=env.get("PATH"))
        if found is None:
            raise NotReady(f"HERMUX_HERMES={named} is no program that can be run", hint=HINT)
        return Path(found).absolute()
    on_path = shutil.which("hermes", path=env.get("PATH", os.defpath))
    if on_path is not None:
        return Path(on_path).absolute()
    data = Path(env.get("XDG_DATA_HOME") or _home(env) / ".local" / "share")
    ours = [p for p in sorted(data.glob("hermux/hermes-*/bin/hermes")) if os.access(p, os.X_OK)]
    if not ours:
        raise NotReady("Hermes is not installed: there is no `hermes` on PATH", hint=HINT)
    return max(ours, key=lambda path: _numbers(path.parent.parent.name))


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", name))


def _inspect(path: Path) -> HermesInstall:
    """Read what the command's first line and its environment say; ask the command only for the rest."""
    python = _interpreter(path)
    folder = _site_packages(python) if python is not None else None
    version = _installed_version(folder) if folder is not None else ""
    if not version:
        said = _ask(path)
        version = _match(r"Hermes Agent v(\S+)", said) or "unknown"
        stated = _match(r"(?:Install directory|Project): (.+)", said)
        folder = Path(stated) if stated and (Path(stated) / "hermes_cli").is_dir() else folder
    return HermesInstall(path, version, python, folder)


def _interpreter(path: Path) -> Path | None:
    """Return the Python in the command's `#!` line, also behind a `#!/bin/sh` trampoline of pip's."""
    with path.resolve().open("rb") as file:
        head = file.read(2048).decode("utf-8", "replace")
    quoted = re.search(r"^'''exec' [\"']?(.+?/python[0-9.]*)[\"']? \"\$0\"", head, re.MULTILINE)
    plain = re.match(r"#!\s*(\S+/python[0-9.]*)\s*$", head, re.MULTILINE)
    match = quoted or plain
    return Path(match.group(1)) if match and Path(match.group(1)).exists() else None


def _site_packages(python: Path) -> Path | None:
    prefix = python.parent.parent
    for folder in sorted(prefix.glob("lib*/python3*/site-packages")):
        if (folder / "hermes_cli").is_dir():
            return folder
    return None


def _installed_version(folder: Path) -> str:
    """Return the version of the distribution that brings the `hermes` command, "" if none says."""
    for info in sorted(folder.glob("*hermes*.dist-info")):
        entries = info / "entry_points.txt"
        if entries.is_file() and "hermes_cli.main:main" in entries.read_text(errors="replace"):
            return info.name.removesuffix(".dist-info").split("-", 1)[1]
    return ""


def _ask(path: Path) -> str:
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotReady(f"{path} --version did not answer: {error}", hint=HINT) from error
    if done.returncode != 0:
        last = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()[-1:]
        raise NotReady(f"{path} --version failed: {''.join(last)[:200]}", hint=HINT)
    return done.stdout.decode("utf-8", "replace")


def _match(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found.group(1).strip() if found else ""


def _fingerprint(path: Path) -> str:
    """Return what changes when the command is installed anew."""
    target = path.resolve()
    try:
        status = target.stat()
    except OSError as error:
        raise NotReady(f"{path} cannot be read: {error.strerror}", hint=HINT) from error
    return f"{target}:{status.st_mtime_ns}:{status.st_size}"


def _cache_path(env: Mapping[str, str]) -> Path:
    base = Path(env.get("XDG_CACHE_HOME") or _home(env) / ".cache")
    return base / "hermux" / "hermes.json"


def _cached(cache: Path, key: str, path: Path) -> HermesInstall | None:
    try:
        raw = json.loads(cache.read_bytes())[key]
        python, folder = raw["python"], raw["site_packages"]
        if folder is not None and not (Path(folder) / "hermes_cli").is_dir():
            return None
        return HermesInstall(
            path, str(raw["version"]), Path(python) if python else None, Path(folder) if folder else None
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _remember(cache: Path, key: str, found: HermesInstall) -> None:
    """Write the cache (one entry: the Hermes used last); a cache that can't be written costs only time."""
    entry = {name: None if value is None else str(value) for name, value in asdict(found).items()}
    try:
        cache.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = cache.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(json.dumps({key: entry}))
        scratch.replace(cache)
    except OSError:
        return
