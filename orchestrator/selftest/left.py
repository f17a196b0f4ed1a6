"""What is there beside what should be: processes, sessions and panes, sockets, locks, worktrees."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from orchestrator.selftest.stage import Stage

OURS = {"_hermux", "rehearsal"}
"""Sessions of the fleet's server beside the workers'."""


def left_behind(stage: Stage) -> list[str]:
    """Return what is there and should not be, a line each."""
    return [*_processes(stage), *_panes(stage), *_sockets(stage), *_locks(stage), *_worktrees(stage)]


def _processes(stage: Stage) -> Iterator[str]:
    """Yield processes of attempts that are over, and supervisors beside the one that holds the lock."""
    supervisors, state = [], stage.fleet.env["XDG_STATE_HOME"]
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            env = process.environ()
            if env.get("HERMUX_DIR", "").startswith(f"{stage.fleet.paths.workers}/"):
                name, attempt = env.get("HERMUX_WORKER", ""), env.get("HERMUX_ATTEMPT", "")
                if attempt != str(stage.attempt(name)):
                    yield f"process {process.pid} of {name}, attempt {attempt}: {_words(process)}"
            elif env.get("XDG_STATE_HOME") == state and "orchestrator.supervise" in process.cmdline():
                supervisors.append(process.pid)
    yield from (f"process {pid}: a second supervisor" for pid in supervisors if pid != stage.supervisor())


def _words(process: psutil.Process) -> str:
    return " ".join(process.cmdline())[:80]


def _panes(stage: Stage) -> Iterator[str]:
    shown = stage.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_id}").splitlines()
    held = [line.split()[0] for line in shown]
    yield from (f"session {name}" for name in sorted({*held} - OURS - {*stage.names}))
    yield from (f"a second pane in session {name}" for name in sorted({*held}) if held.count(name) > 1)


def _sockets(stage: Stage) -> Iterator[str]:
    known = {stage.fleet.server().socket_path, *(stage.folder / "tmux").glob("*/foreign")}
    for path in (stage.folder / "tmux").rglob("*"):
        if path.is_socket() and path not in known:
            yield f"socket {path.name}"


def _locks(stage: Stage) -> Iterator[str]:
    """Yield locks of git in the repository and its worktrees; those of hermux are the kernel's."""
    for path in (stage.folder / "repo" / ".git").rglob("*.lock"):
        yield f"lock {path.name}"


def _worktrees(stage: Stage) -> Iterator[str]:
    done = subprocess.run(
        ["git", "worktree", "list", "--porcelain"],
        cwd=stage.folder / "repo",
        env=dict(stage.fleet.env),
        capture_output=True,
        text=True,
        check=False,
    )
    there = {Path(line[9:]) for line in done.stdout.splitlines() if line.startswith("worktree ")}
    known = {Path(str(stage.entry(name).get("cwd"))) for name in stage.names} | {stage.folder / "repo"}
    yield from (f"worktree {path.name}" for path in sorted(there - known))
