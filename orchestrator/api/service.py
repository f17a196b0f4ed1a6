"""The supervisor as a systemd user unit: written, enabled, looked at and taken away again."""

from __future__ import annotations

import getpass
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import NotReady, UsageError

MARK = "# made by `hermux service install`; `hermux service remove` takes it away"
# fmt: off
KEPT = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
    "HERMES_HOME", "HERMUX_HERMES", "TMUX_TMPDIR",
)
# fmt: on
"""Variables that decide where things are found; none of them is a secret."""
BOOTED = Path("/run/systemd/system")
"""Is there where systemd runs the machine: sd_booted(3)."""


@dataclass(frozen=True, slots=True)
class Status:
    """What systemd knows of the unit: `enabled` and `active` in its own words, "" where it cannot be asked."""

    unit: str
    path: Path
    installed: bool
    ours: bool
    enabled: str
    active: str
    linger: bool


def unit_name(fleet: str) -> str:
    """Return the unit's name: one a fleet."""
    return "hermux.service" if fleet == "default" else f"hermux-{fleet}.service"


def unit_path(fleet: str, env: Mapping[str, str]) -> Path:
    """Return where a user's units are."""
    config = env.get("XDG_CONFIG_HOME", "")
    base = Path(config) if config.startswith("/") else Path(env.get("HOME") or Path.home()) / ".config"
    return base / "systemd" / "user" / unit_name(fleet)


def unit_text(fleet: str, env: Mapping[str, str]) -> str:
    """Return the unit. Workers live in its cgroup, so a stop, an out-of-memory kill or a failure ends only the supervisor."""
    variables = "".join(f"Environment={_quoted(f'{name}={env[name]}')}\n" for name in KEPT if env.get(name))
    return f"""{MARK}
[Unit]
Description=hermux supervisor of fleet {fleet}
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in command(fleet))}
WorkingDirectory=%h
{variables}Restart=always
RestartSec=1
WatchdogSec=60
KillMode=process
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def command(fleet: str) -> list[str]:
    """Return what runs the supervisor in the foreground; one that a command started hands over to it."""
    return [sys.executable, "-P", "-m", "orchestrator.supervise", "--fleet", fleet, "--replace"]


def elsewhere(fleet: str) -> str:
    """Return what to put where on a machine without systemd."""
    words = command(fleet)
    if platform.system() == "Darwin":
        arguments = "".join(f"<string>{word}</string>" for word in words)
        return (
            f"put this into ~/Library/LaunchAgents/hermux.{fleet}.plist, then: launchctl load FILE\n"
            '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>\n'
            f"<key>Label</key><string>hermux.{fleet}</string>\n<key>ProgramArguments</key><array>{arguments}</array>\n"
            "<key>RunAtLoad</key><true/><key>KeepAlive</key><true/><key>AbandonProcessGroup</key><true/>\n</dict></plist>"
        )
    return f"put this line into your crontab (crontab -e):\n@reboot {shlex.join(words)} >/dev/null 2>&1"


def install(fleet: str, env: Mapping[str, str], *, overwrite: bool = False) -> Path:
    """Write the unit, enable and start it; raises NotReady without systemd, UsageError for a file that is not ours.

    Where systemctl refuses, the unit is as it was before.
    """
    check_systemd()
    path = unit_path(fleet, env)
    before = path.read_text() if path.exists() else None
    if before is not None and MARK not in before and not overwrite:
        raise UsageError(
            f"{path} was not made by hermux, so it is left as it is", hint="to replace it: --yes"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(unit_text(fleet, env))
    try:
        systemctl("daemon-reload")
        systemctl("enable", unit_name(fleet))
        systemctl("restart", unit_name(fleet))
    except NotReady:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(before)
        raise
    return path


def remove(fleet: str, env: Mapping[str, str]) -> Path | None:
    """Stop, disable and delete the unit; workers go on. Returns where it was, None if there is none."""
    path = unit_path(fleet, env)
    if not path.exists():
        return None
    if MARK not in path.read_text():
        raise UsageError(f"{path} was not made by hermux, so it is left as it is", hint=f"look at {path}")
    if BOOTED.is_dir():
        systemctl("disable", "--now", unit_name(fleet))
    path.unlink()
    if BOOTED.is_dir():
        systemctl("daemon-reload")
    return path


def status(fleet: str, env: Mapping[str, str]) -> Status:
    """Return what is there and what systemd says of it; never raises for a machine without it."""
    path = unit_path(fleet, env)
    there = path.exists()
    return Status(
        unit_name(fleet),
        path,
        there,
        there and MARK in path.read_text(),
        _asked("is-enabled", fleet),
        _asked("is-active", fleet),
        lingers(),
    )


def lingers() -> bool:
    """Whether this user's units run without a login: at boot and after logout."""
    return (Path("/var/lib/systemd/linger") / getpass.getuser()).exists()


def check_systemd() -> None:
    """Raise NotReady where systemd does not run the machine."""
    if not BOOTED.is_dir():
        raise NotReady("systemd does not run this machine", hint="what to put where is above")


def systemctl(*words: str) -> str:
    """Run `systemctl --user`, return its stdout; raises NotReady with its own words."""
    try:
        done = _ran(*words)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotReady(f"systemctl --user {words[0]}: {error}") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        hint = f"is there a user manager? export XDG_RUNTIME_DIR=/run/user/{os.getuid()}"
        raise NotReady(f"systemctl --user {' '.join(words)}: {said}", hint=hint)
    return done.stdout.strip()


def _asked(what: str, fleet: str) -> str:
    if not BOOTED.is_dir():
        return ""
    try:
        return _ran(what, unit_name(fleet)).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _ran(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `systemctl --user`; a start waits for READY=1, which comes when the workers are adopted."""
    return subprocess.run(
        ["systemctl", "--user", *words], capture_output=True, text=True, timeout=90, check=False
    )


def _quoted(word: str) -> str:
    """Return a word as unit files take it: in quotes, with % and \\ doubled."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n") + '"'
