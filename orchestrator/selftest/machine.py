"""Faults of files, locale, shell, disk and clock."""

from __future__ import annotations

import resource
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.api.fleet import Fleet
from orchestrator.selftest import kills
from orchestrator.selftest.fault import Blow, Fault
from orchestrator.selftest.stage import Stage, kill
from orchestrator.terminal.process import Process

FULL = 3.0
"""Seconds for which no file of the supervisor's can grow."""
HOSTILE = """\
set -g base-index 7
set -g pane-base-index 3
set -g default-shell /bin/false
set -g default-command "exit 1"
set -g remain-on-exit off
set -g destroy-unattached on
set -g mouse on
set -g status off
set -g prefix C-m
set -g history-limit 0
set-hook -g session-created "kill-session"
set-hook -g after-new-session "kill-server"
"""


def socket_removed(stage: Stage, victim: str) -> Blow | str:
    """The tmux server's socket is deleted, as cleaners of temporary folders do."""
    path, server = stage.fleet.server().socket_path, stage.tmux_pid()
    path.unlink()
    return Blow(
        noticed=path.exists,
        heal=lambda: None,
        recovered=path.exists,
        wrong=lambda: "" if stage.tmux_pid() == server else "the server was replaced",
    )


def cwd_removed(stage: Stage, victim: str) -> Blow | str:
    """The worker's directory is moved away and Hermes killed; then it is put back, and `start`."""
    stage.until(stage.through, 60)
    here = Path(str(stage.entry(victim)["cwd"]))
    away, before = here.with_name(f"{here.name}.away"), stage.attempt(victim)
    here.rename(away)
    kill(stage.hermes(victim), signal.SIGKILL)

    def put_back() -> None:
        away.rename(here)
        stage.fleet.start([victim], wait=False)

    return Blow(
        noticed=lambda: "directory" in str(stage.entry(victim).get("why")),
        heal=put_back,
        recovered=lambda: stage.attempt(victim) > before,
    )


def _supervised_with(stage: Stage, victim: str, changes: Mapping[str, str]) -> Blow | str:
    """Have the supervisor, and the victim's next attempt, live in another environment."""
    old = Process.of(stage.supervisor())
    if old is None or not old.signal(signal.SIGTERM) or not old.wait_gone(20):
        return "the supervisor did not end"
    before = stage.attempt(victim)
    other = Fleet.open(stage.fleet.name, env=dict(stage.fleet.env) | dict(changes))
    other.ensure_supervisor()
    other.restart([victim], wait=False)

    def back() -> None:
        stage.until(lambda: stage.attempt(victim) > before and stage.all_up(), 120)
        stage.send(victim)
        stage.until(stage.through, 60)
        now = Process.of(stage.supervisor())
        if now is not None and now.signal(signal.SIGTERM):
            now.wait_gone(20)
        stage.revive()

    return Blow(heal=back, recovered=lambda: stage.attempt(victim) > before)


def lang_c(stage: Stage, victim: str) -> Blow | str:
    """Supervisor and worker start again with LANG=C and LC_ALL=C, and get a text with wide characters."""
    return _supervised_with(stage, victim, {"LANG": "C", "LC_ALL": "C", "LC_CTYPE": "C"})


def fish(stage: Stage, victim: str) -> Blow | str:
    """Supervisor and worker start again with SHELL naming fish."""
    found = shutil.which("fish", path=stage.fleet.env.get("PATH"))
    return _supervised_with(stage, victim, {"SHELL": found}) if found else "fish is not installed"


def tmux_conf(stage: Stage, victim: str) -> Blow | str:
    """A ~/.tmux.conf that kills what it can lies in the fleet's home, and the tmux server is killed."""
    (Path(stage.fleet.env["HOME"]) / ".tmux.conf").write_text(HOSTILE)
    return kills.tmux(stage, victim)


def disk_full(stage: Stage, victim: str) -> Blow | str:
    """No file of the supervisor's can be written for 3 s: RLIMIT_FSIZE 0, so EFBIG where a disk says ENOSPC."""
    pid = stage.supervisor()
    if not hasattr(resource, "prlimit") or not pid:
        return "this system has no prlimit"
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    log = stage.fleet.paths.state
    drawn = log.stat().st_mtime

    def free() -> None:
        time.sleep(FULL)
        if stage.supervisor() == pid:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))

    return Blow(
        heal=free,
        recovered=lambda: log.stat().st_mtime > drawn,
        wrong=lambda: "" if stage.supervisor() == pid else "the supervisor ended",
    )


def clock_jump(stage: Stage, victim: str) -> Blow | str:
    """Say why not: only root may set the clock, and a time namespace shifts only monotonic and boot time."""
    return "a program of yours cannot shift the clock: the unit tests of the decisions do"


FAULTS = (
    Fault("socket-removed", "the tmux server's socket is deleted", socket_removed),
    Fault("cwd-removed", "the worker's directory is gone at its restart; then it is back", cwd_removed),
    Fault("lang-c", "supervisor and worker start with LANG=C", lang_c),
    Fault("tmux-conf", "a hostile ~/.tmux.conf, then SIGKILL to the tmux server", tmux_conf),
    Fault("fish", "fish as the user's shell", fish),
    Fault("disk-full", "the supervisor can write no file for 3 s", disk_full),
    Fault("clock-jump", "the clock jumps", clock_jump),
)
