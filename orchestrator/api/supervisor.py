"""Finding the supervisor of a fleet, and starting one that is not there."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import SupervisorDown
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.version import __version__

START_LIMIT = 20.0
"""Seconds within which a new supervisor must hold its lock; a loaded machine takes 2."""

_OF_A_WORKER = {"HERMUX_WORKER", "HERMUX_DIR", "HERMUX_ATTEMPT", "TMUX", "TMUX_PANE"}
_SECRET = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)


def running(paths: FleetPaths) -> dict[str, Any] | None:
    """Return `{pid, start, version}` of the supervisor, None when there is none: the kernel is asked."""
    return FileLock(paths.supervisor_lock).holder()


HAND_OVER = "hermux supervise --replace --detach"
"""What to type when a supervisor of another version runs."""


def other_version(holder: Mapping[str, Any] | None) -> str:
    """Return what is to be said of a supervisor of another version, "" for one of this version or none."""
    version = str((holder or {}).get("version") or "")
    if not holder or not version or version == __version__:
        return ""
    return f"the supervisor (pid {holder.get('pid', 0)}) is hermux {version}, this is {__version__}"


def check_version(holder: Mapping[str, Any] | None) -> None:
    """Raise SupervisorDown when a supervisor of another version runs: what it would make of our files is not known."""
    told = other_version(holder)
    if told:
        raise SupervisorDown(told, hint=f"{HAND_OVER}  (workers go on meanwhile), then run this again")


LOG_LIMIT = 4 << 20
"""Bytes of `supervisor.log` beyond which it is moved aside when a supervisor starts."""


def _rotate_log(paths: FleetPaths) -> None:
    try:
        if paths.supervisor_log.stat().st_size > LOG_LIMIT:
            paths.supervisor_log.replace(paths.supervisor_log_before)
    except OSError:
        return  # there is none yet, or it cannot be moved: it is written on


class Starting:
    """A supervisor that was asked to start; `confirm` waits until it, or another one, is there."""

    def __init__(
        self,
        paths: FleetPaths,
        env: Mapping[str, str],
        *,
        secrets: Collection[str] = (),
        replace: bool = False,
    ) -> None:
        """Start one unless one runs, or (`replace`) in the place of the one that runs.

        `secrets` are names of variables that it must not see.
        """
        self.paths = paths
        self.child: Any = None
        holder = running(paths)
        self.before = int((holder or {}).get("pid") or 0) if replace else 0
        """The pid of the supervisor that is to hand over; 0 = none."""
        if holder is not None and not replace:
            check_version(holder)
            return
        import subprocess

        command, cwd = _command(paths, *(["--replace"] if replace else []))
        _rotate_log(paths)
        log = os.open(paths.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.child = subprocess.Popen(
                command,
                cwd=cwd,
                env=scrubbed(env, secrets),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    @property
    def started(self) -> bool:
        """Whether a supervisor was started by this object."""
        return self.child is not None

    def confirm(self) -> None:
        """Return when a supervisor holds the lock; raises SupervisorDown with the end of its log."""
        deadline = time.monotonic() + START_LIMIT
        while (holder := running(self.paths)) is None or holder["pid"] in (0, self.before):
            if self.child is None or self.child.poll() is not None:
                if self.before or running(self.paths) is None:
                    raise SupervisorDown(
                        "the supervisor did not start: " + _last_words(self.paths), hint=self._hint()
                    )
            elif time.monotonic() > deadline:
                raise SupervisorDown(
                    f"the supervisor did not start within {START_LIMIT:g} s", hint=self._hint()
                )
            time.sleep(0.01)
        check_version(holder)

    def _hint(self) -> str:
        return f"look at {self.paths.supervisor_log}, or run it here: hermux supervise -F {self.paths.fleet}"


def ensure(paths: FleetPaths, env: Mapping[str, str]) -> bool:
    """Make sure that a supervisor runs; return whether one had to be started."""
    starting = Starting(paths, env)
    starting.confirm()
    return starting.started


def hand_over(paths: FleetPaths, env: Mapping[str, str]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Have a supervisor of this version take the place of the one that runs; return both, by their locks.

    Workers go on, and a delivery in the middle is carried on. Raises SupervisorDown.
    """
    before = running(paths)
    Starting(paths, env, replace=True).confirm()
    return before, running(paths) or {}


def scrubbed(env: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """Return the environment for a supervisor: no variable of a worker, none that looks like a key or has a login."""
    from orchestrator.fleet.proxy import passwords  # `hermux ls` does without it

    return {
        name: value
        for name, value in env.items()
        if name not in _OF_A_WORKER
        and name not in secrets
        and not _SECRET.search(name)
        and not passwords({name: value})
    }


def _command(paths: FleetPaths, *flags: str) -> tuple[list[str], Path]:
    """Return argv and working directory: an installed package is found without the directory."""
    arguments = ["-m", "orchestrator.supervise", "--fleet", paths.fleet, *flags]
    home = Path(__file__).resolve().parents[2]
    if str(home) in sys.path[1:]:
        return [sys.executable, "-P", *arguments], paths.root
    return [sys.executable, *arguments], home


def _last_words(paths: FleetPaths) -> str:
    try:
        lines = paths.supervisor_log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1][:300] if lines else "it said nothing"
