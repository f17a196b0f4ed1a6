"""A Hermes profile that the user had before: read for what it is, and never changed here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.hermes.home import MARK, PROFILE_RULE, profile_dir
from orchestrator.hermes.model import read_profile_config, read_profile_model

LOGINS = ("nous", "openai-codex", "xai-oauth", "qwen-oauth", "minimax-oauth", "copilot-acp")
"""Hermes' providers that rest on an OAuth login (0.19.0 and 0.22.2); the tokens lie in `auth.json`."""
_EVERYBODYS = ("qwen-oauth", "copilot-acp")
"""Logins that lie outside of Hermes' folders: one for all profiles."""


@dataclass(frozen=True, slots=True)
class OwnProfile:
    """A profile, and who answers it."""

    name: str
    home: Path
    endpoint: Endpoint
    """As its config.yaml says; base_url "" where Hermes has a login in place of an address."""
    login: str = ""
    """The provider whose OAuth login it rests on, "" = none."""


@dataclass(frozen=True, slots=True)
class Running:
    """A Hermes that runs on a profile."""

    pid: int
    what: str


def find_own(root: Path, name: str) -> OwnProfile:
    """Return a profile of the user's. Raises UsageError: unknown, made by hermux, not set up, a shared login."""
    home = profile_dir(root, name)
    if not (PROFILE_RULE.fullmatch(name) and home.is_dir()):
        raise _unknown(root, name)
    if (home / MARK).exists():
        raise UsageError(
            f"the Hermes profile {name} was made by hermux for a worker",
            hint="a worker has it already; leave --hermes-profile out for a new one",
        )
    config = read_profile_config(home)
    block = config.get("model")
    provider = str(block.get("provider") or "").strip().lower() if isinstance(block, dict) else ""
    if not block and not _active_login(home):
        raise UsageError(
            f"the Hermes profile {name} has no model set up, so Hermes would ask and wait",
            hint=f"set it up first: hermes -p {name} setup",
        )
    login = _login(root, home, provider)
    found, _ = read_profile_model(home, name)
    model = (
        str(block.get("default") or block.get("model") or "") if isinstance(block, dict) else str(block or "")
    )
    source = f"Hermes profile {name}" + (f" (its own login: {login})" if login else "")
    return OwnProfile(name, home, found or Endpoint("", model, 0, source=source), login)


def _unknown(root: Path, name: str) -> UsageError:
    folder = root / "profiles"
    homes = sorted(folder.iterdir()) if folder.is_dir() else []
    own = ["default", *(home.name for home in homes if home.is_dir() and not (home / MARK).exists())]
    near = get_close_matches(name.lower(), own, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(f"there is no Hermes profile {name!r}", hint=f"{hint}yours are: {', '.join(own)}")


def _login(root: Path, home: Path, provider: str) -> str:
    """Return the OAuth provider that a profile rests on; raises UsageError where the login is another's."""
    name = provider if provider in LOGINS else _active_login(home) if provider in ("", "auto") else ""
    if name not in LOGINS or name in _EVERYBODYS or home == root or _has_login(home, name):
        return name if name in LOGINS else ""
    if _has_login(root, name):
        raise UsageError(
            f"the Hermes profile {home.name} uses the OAuth login {name} of the default profile: its refresh"
            " token is good for one use, so two processes that share it log each other out",
            hint=f"log in for it alone: hermes -p {home.name} auth; or --hermes-profile default",
        )
    return name


def _active_login(home: Path) -> str:
    return str(_auth(home).get("active_provider") or "").strip().lower()


def _has_login(home: Path, provider: str) -> bool:
    auth = _auth(home)
    stores = (auth.get("providers"), auth.get("credential_pool"))
    return any(isinstance(store, dict) and bool(store.get(provider)) for store in stores)


def _auth(home: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((home / "auth.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


HELD = ("state.db", "logs/agent.log")
"""Files of its profile that a Hermes keeps open while it runs, also an idle one (0.19.0 and 0.22.2)."""


def running_on(home: Path) -> Running | None:
    """Return a Hermes that runs on a profile now, None when none does; takes 0.05 s.

    Witnesses: the files that it holds open, `gateway.pid`, and `runtime/active_sessions.json`, which
    Hermes writes only where `max_concurrent_sessions` is set. What is noted of a dead process is nothing.
    """
    for pid, start, what in (*_sessions(home), *_gateway(home)):
        if _alive(pid, start):
            return Running(pid, what)
    return next(_holders(home), None)


def _holders(home: Path) -> Iterator[Running]:
    import psutil

    held = {str(home.resolve() / name) for name in HELD}
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if not re.search("hermes|python", " ".join(process.cmdline())):
                continue
            if held & {file.path for file in process.open_files()}:
                yield Running(process.pid, "it holds state.db open")


def _sessions(home: Path) -> Iterator[tuple[int, float, str]]:
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((home / "runtime" / "active_sessions.json").read_bytes())
        entries = found.get("entries") if isinstance(found, dict) else found
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("pid"), int):
                start = entry.get("process_start_time")
                yield entry["pid"], float(start) if isinstance(start, int | float) else 0.0, "a conversation"


def _gateway(home: Path) -> Iterator[tuple[int, float, str]]:
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        text = (home / "gateway.pid").read_text(encoding="utf-8").strip()
        found = json.loads(text) if text.startswith("{") else {"pid": int(text)}
        yield int(found["pid"]), 0.0, "its gateway"


def _alive(pid: int, start: float) -> bool:
    """Whether a process runs, and began at `start` (0 = unknown: then it has to be a Hermes)."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if start:
            return abs(process.create_time() - start) < 1.0
        return bool(re.search("hermes|gateway", " ".join(process.cmdline())))
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def check_own(root: Path, spec: WorkerSpec) -> list[str]:
    """Return, in words, what keeps a worker from starting on a profile of the user's; empty = nothing."""
    home = profile_dir(root, spec.hermes_profile)
    if not (home / "config.yaml").is_file():
        return [f"the Hermes profile {spec.hermes_profile} ({home})"]
    running = running_on(home)
    if running is None:
        return []
    return [
        f"a free profile: a Hermes runs on {spec.hermes_profile} (pid {running.pid}); end it, then"
        f" hermux start {spec.name}"
    ]
