"""The script that a worker's pane runs, and what it leaves behind.

`launch.sh ATTEMPT [Hermes arguments…]` stays alive while Hermes runs in the foreground below it, with
the pane's terminal as stdin. It leaves `attempts/<n>/pid` (the pid of Hermes) and, when Hermes is
gone, `attempts/<n>/exit.json`; its own end therefore means that `exit.json` is there. Each is one
short `write`, and readers take a file that isn't whole for none: a rename would cost 2 ms (a process).
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from orchestrator.fleet.proxy import always_direct
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
@PORT@
[ ! -r @ENV@ ] || . @ENV@
unset @UNSET@
# No proxy is asked for this machine: Hermes would (0.19.0). "*" counts only alone.
[ "$no_proxy" != "$NO_PROXY" ] || no_proxy=
case ",$NO_PROXY,$no_proxy," in
*,\*,*) NO_PROXY='*' ;;
*) NO_PROXY=@DIRECT@${NO_PROXY:+,$NO_PROXY}${no_proxy:+,$no_proxy} ;;
esac
export NO_PROXY no_proxy="$NO_PROXY"
export HERMUX_FLEET=@FLEET@ HERMUX_WORKER=@NAME@ HERMUX_ATTEMPT="$attempt" HERMUX_DIR=@DIR@
export HERMUX_WAKE=@WAKE@ HERMES_HOME=@ROOT@ PROMPT_TOOLKIT_NO_CPR=1 HERMES_NONINTERACTIVE=1
@SETUP@
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

SETUP = r"""
# The setup command has to succeed once. Its output is shown here and kept; what it leaves running in the
# background must not hold this script, so the copying ends a second after it.
if [ "$(cat @DIR@/setup.done 2>/dev/null)" != @SETUP_MARK@ ]; then
    setup=@SETUP_TEXT@
    printf 'hermux runs the setup command first:\n%s\n\n' "$setup"
    rm -f "$out/setup.pipe"
    mkfifo "$out/setup.pipe" && : >"$out/setup.log"
    tee "$out/setup.log" <"$out/setup.pipe" &
    copy=$!
    # The endpoint's key is not for it.
    /bin/sh -c 'echo $$ >"$0" && unset OPENAI_API_KEY && cd -- "$2" && exec /bin/sh -c "$1"' \
        "$out/pid" "$setup" @TOP@ \
        >"$out/setup.pipe" 2>&1 </dev/null
    code=$?
    { sleep 1 && kill "$copy"; } 2>/dev/null &
    wait "$copy" 2>/dev/null
    rm -f "$out/setup.pipe" "$out/pid"
    echo "$code" >"$out/setup.code"
    if [ "$code" -ne 0 ]; then
        finish "$code" null '"setup"'
        exit 1
    fi
    echo @SETUP_MARK@ >@DIR@/setup.done
fi
""".strip()
SETUP_FAILED = "the setup command failed"
"""How the reason of an attempt begins whose setup command did not succeed: trying again by itself is no use."""
SETUP_LINES = 5


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
        "DIRECT": shlex.quote(always_direct((spec.endpoint, *spec.fallback))),
        "FLEET": shlex.quote(fleet),
        "WAKE": shlex.quote(str(wake)),
        "ROOT": shlex.quote(str(hermes_root)),
        "NO_CWD": shlex.quote(json.dumps(f"no such directory: {spec.cwd}")),
        "NO_HERMES": shlex.quote(json.dumps(f"cannot run {hermes}")),
        "PORT": f"export PORT={spec.port}" if spec.port else ":",
        "SETUP_MARK": setup_mark(spec.setup),
        "TOP": shlex.quote(spec.worktree.path if spec.worktree else spec.cwd),
        "SETUP_TEXT": shlex.quote(spec.setup),
        "COMMAND": shlex.join([str(hermes), *hermes_arguments(spec)]),
    }
    text = TEMPLATE.replace("@SETUP@", SETUP if spec.setup else ":")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def hermes_arguments(spec: WorkerSpec) -> list[str]:
    """Return the arguments that every start of this worker has; `--resume ID` comes at launch."""
    arguments = ["-p", spec.hermes_profile, "--cli"]
    if spec.user_profile and "model" in spec.endpoint.given:
        arguments += ["-m", spec.endpoint.model]
    if spec.toolsets:
        arguments += ["-t", ",".join(spec.toolsets)]
    return arguments


def read_exit(attempt_dir: Path) -> Exit | None:
    """Return how an attempt ended, None while `exit.json` isn't there or is no such file."""
    path = attempt_dir / "exit.json"
    try:
        raw = json.loads(path.read_bytes())
        why = str(raw.get("why", ""))
        why = _setup_failure(attempt_dir, raw["code"]) if why == "setup" else why
        return Exit(raw["code"], raw["signal"], path.stat().st_mtime, why)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def setup_mark(setup: str) -> str:
    """Return what `setup.done` holds when this very command has succeeded."""
    return hashlib.sha256(setup.encode()).hexdigest()[:16]


def setup_runs(attempt_dir: Path) -> bool:
    """Whether the setup command of an attempt has begun and not ended."""
    return (attempt_dir / "setup.log").exists() and not (attempt_dir / "setup.code").exists()


def _setup_failure(attempt_dir: Path, code: int) -> str:
    """Return why a setup failed, with the last lines of its output."""
    try:
        text = (attempt_dir / "setup.log").read_text(errors="replace")[-8192:]
    except OSError:
        text = ""
    bare = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    lines = [" ".join(line.split()) for line in re.split(r"[\r\n]+", bare) if line.strip()]
    said = " / ".join(lines[-SETUP_LINES:])[-400:]
    return f"{SETUP_FAILED} (exit {code}): {said or 'it said nothing'}"


def read_pid(attempt_dir: Path) -> int | None:
    """Return the pid of Hermes in an attempt, None until the whole line is there."""
    try:
        text = (attempt_dir / "pid").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.endswith("\n") and text.strip().isdigit() else None
