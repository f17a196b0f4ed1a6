"""The script that a worker's pane runs, and what it leaves behind.

`launch.sh ATTEMPT [Hermes arguments…]` stays alive while Hermes runs in the foreground below it, with
the pane's terminal as stdin. It leaves `attempts/<n>/pid` (the pid of Hermes) and, when Hermes is
gone, `attempts/<n>/exit.json`; its own end therefore means that `exit.json` is there. Each is one
short `write`, and readers take a file that isn't whole for none: a rename would cost 2 ms (a process).
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from orchestrator.fleet.spec import WorkerSpec

UNSET = (
    "TMUX",
    "TMUX_PANE",
    "CUSTOM_BASE_URL",
    "HERMES_TUI",
    "HERMES_INFERENCE_PROVIDER",
    "HERMES_INFERENCE_MODEL",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
)
"""Variables that would lead Hermes to another endpoint or face, or an agent's tmux to our server."""

TEMPLATE = r"""#!/bin/sh
# Starts the worker @NAME@: launch.sh ATTEMPT [Hermes arguments...]. Written by hermux; do not edit.
attempt=$1
shift
out=@DIR@/attempts/$attempt
[ -d "$out" ] || mkdir -p "$out"
finish() { # code signal why (JSON)
    trap - EXIT
    printf '{"schema": 1, "code": %s, "signal": %s, "why": %s}\n' "$1" "$2" "$3" >"$out/exit.json"
}
# Signals are for Hermes; this script lives until it has written how Hermes ended. Traps that run a
# command are reset in a child. TSTP is ignored in both: nothing here could continue a stopped worker.
trap : HUP INT TERM QUIT
trap '' TSTP
trap 'finish null null "\"launch.sh itself failed\""' EXIT
cd -- @CWD@ || {
    finish null null @NO_CWD@
    exit 1
}
[ ! -r @ENV@ ] || . @ENV@
unset @UNSET@
export HERMUX_FLEET=@FLEET@ HERMUX_WORKER=@NAME@ HERMUX_ATTEMPT="$attempt" HERMUX_DIR=@DIR@
export HERMUX_WAKE=@WAKE@ HERMES_HOME=@ROOT@ PROMPT_TOOLKIT_NO_CPR=1 HERMES_NONINTERACTIVE=1
# The shell's own word about a death ("Killed") must not get into the last screen: only Hermes has fd 2.
exec 3>&2 2>/dev/null
/bin/sh -c 'echo $$ >"$0" && exec "$@" 2>&3 3>&-' "$out/pid" @COMMAND@ "$@"
code=$?
if [ "$code" -eq 126 ] || [ "$code" -eq 127 ]; then
    finish "$code" null @NO_HERMES@
elif [ "$code" -gt 128 ] && [ "$code" -lt 193 ]; then
    finish null $((code - 128)) '""'
else
    finish "$code" null '""'
fi
exit "$code"
"""


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt ended, as its launch script saw it.

    Exactly one of `code` and `signal` is a number, unless Hermes never ran: then `why` says so.
    A shell cannot tell "exit 130" from "killed by signal 2": both are signal 2.
    """

    code: int | None
    signal: int | None
    time: float
    """Seconds since the epoch, from the file's own time."""
    why: str = ""
    """"" = Hermes ran and ended; else why it could not be started."""


def render_launch(
    worker_dir: Path,
    spec: WorkerSpec,
    *,
    fleet: str,
    wake: Path,
    hermes: Path,
    hermes_root: Path,
) -> str:
    """Return the text of `launch.sh` (to be written with mode 0700); every value is shell-quoted."""
    values = {
        "NAME": shlex.quote(spec.name),
        "DIR": shlex.quote(str(worker_dir)),
        "CWD": shlex.quote(spec.cwd),
        "ENV": shlex.quote(str(worker_dir / "env")),
        "UNSET": " ".join(UNSET),
        "FLEET": shlex.quote(fleet),
        "WAKE": shlex.quote(str(wake)),
        "ROOT": shlex.quote(str(hermes_root)),
        "NO_CWD": shlex.quote(json.dumps(f"no such directory: {spec.cwd}")),
        "NO_HERMES": shlex.quote(json.dumps(f"cannot run {hermes}")),
        "COMMAND": shlex.join([str(hermes), *hermes_arguments(spec)]),
    }
    text = TEMPLATE
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def hermes_arguments(spec: WorkerSpec) -> list[str]:
    """Return the arguments that every start of this worker has; `--resume ID` comes at launch."""
    arguments = ["-p", spec.hermes_profile, "--cli"]
    if spec.toolsets:
        arguments += ["-t", ",".join(spec.toolsets)]
    return arguments


def read_exit(attempt_dir: Path) -> Exit | None:
    """Return how an attempt ended, None while `exit.json` isn't there or is no such file."""
    path = attempt_dir / "exit.json"
    try:
        raw = json.loads(path.read_bytes())
        return Exit(raw["code"], raw["signal"], path.stat().st_mtime, str(raw.get("why", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_pid(attempt_dir: Path) -> int | None:
    """Return the pid of Hermes in an attempt, None until the whole line is there."""
    try:
        text = (attempt_dir / "pid").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.endswith("\n") and text.strip().isdigit() else None
