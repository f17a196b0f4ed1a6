"""Faults that end or stop a process."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from orchestrator.fleet.events import EventName
from orchestrator.selftest.fault import Blow, Fault
from orchestrator.selftest.stage import Stage, kill
from orchestrator.terminal.process import Process

STOPPED = 3.0
"""Seconds for which a process is stopped: longer than any step of a delivery waits."""
PID_LIMIT = 60.0
"""Seconds within which the tool of a message must run."""

DEAF = """\
import os, pathlib, signal, sys, time
if os.fork() == 0:
    os.setsid()
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(600)
"""
"""Hermes refuses a command with `&` or `setsid` in it (0.19.0), so the tool is a program that forks."""


def _again(stage: Stage, victim: str, pid: int) -> Blow | str:
    before = stage.attempt(victim)
    if not kill(pid, signal.SIGKILL):
        return "there was no such process at that moment"
    return Blow(
        noticed=lambda: _left(stage, victim, before), recovered=lambda: stage.attempt(victim) > before
    )


def _left(stage: Stage, victim: str, before: int) -> bool:
    return stage.attempt(victim) > before or stage.entry(victim).get("phase") != "up"


def worker(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to Hermes."""
    return _again(stage, victim, stage.hermes(victim))


def script(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to the launch script; Hermes below it lives on."""
    return _again(stage, victim, int(stage.entry(victim).get("pid") or 0))


def tool(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to what a tool of Hermes runs: the turn goes on, the worker is not started again."""
    pid, before = _tool_pid(stage, victim, 'echo $$ >"{}"; exec sleep 600'), stage.attempt(victim)
    ended = stage.reported(victim, EventName.TOOL_END)
    if not kill(pid, signal.SIGKILL):
        return "the tool did not run in time"
    return Blow(
        noticed=lambda: stage.reported(victim, EventName.TOOL_END) > ended,
        wrong=lambda: "" if stage.attempt(victim) == before else "the worker was started again",
    )


def deaf_orphan(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to Hermes while its tool has a child in a session of its own that ignores TERM."""
    (stage.folder / "deaf.py").write_text(DEAF)
    words = f"{sys.executable} {stage.folder}/deaf.py"
    orphan = Process.of(_tool_pid(stage, victim, words + ' "{}"'))
    blow = _again(stage, victim, stage.hermes(victim))
    if orphan is None or isinstance(blow, str):
        return "the tool did not run in time"
    return Blow(blow.noticed, recovered=lambda: blow.recovered() and not orphan.alive(), at=blow.at)


def _tool_pid(stage: Stage, victim: str, command: str) -> int:
    file = stage.folder / "tmp" / f"tool-{len(stage.sent)}.pid"
    stage.tool(victim, command.format(file))
    stage.until(lambda: file.exists() and file.read_text().strip() != "", PID_LIMIT)
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


def supervisor(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to the supervisor; the next command starts one, which adopts what runs."""
    before = {name: stage.attempt(name) for name in stage.names}
    pid = stage.supervisor()
    if not kill(pid, signal.SIGKILL):
        return "there was no supervisor at that moment"
    return Blow(
        noticed=stage.revive,
        recovered=lambda: stage.supervisor() not in (0, pid),
        wrong=lambda: _started_again(stage, before),
    )


def _started_again(stage: Stage, before: Mapping[str, int]) -> str:
    """Return who was started again though nothing of it had died; `before` are the attempts then."""
    return ", ".join(f"{n} was started again" for n in stage.names if stage.attempt(n) != before[n])


def tmux(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to the fleet's tmux server, with every worker in it."""
    pid = stage.tmux_pid()
    before = {name: stage.attempt(name) for name in stage.names}
    if not kill(pid, signal.SIGKILL):
        return "there was no server at that moment"
    return Blow(
        noticed=lambda: any(_left(stage, name, before[name]) for name in stage.names),
        recovered=lambda: (
            stage.tmux_pid() != pid and all(stage.attempt(name) > before[name] for name in stage.names)
        ),
    )


def endpoint(stage: Stage, victim: str) -> Blow | str:
    """SIGKILL to the endpoint, here the rehearsal model."""
    pid = stage.endpoint_pid()
    if not kill(pid, signal.SIGKILL):
        return "the rehearsal model did not run at that moment"
    return Blow(noticed=lambda: stage.endpoint_pid() not in (0, pid), recovered=stage.answers)


def stop_worker(stage: Stage, victim: str) -> Blow | str:
    """SIGSTOP to Hermes, CONT after 3 s: nothing is typed twice and nothing started again."""
    return _stopped(stage, [stage.hermes(victim)])


def stop_supervisor(stage: Stage, victim: str) -> Blow | str:
    """SIGSTOP to the supervisor, CONT after 3 s."""
    return _stopped(stage, [stage.supervisor()])


def stop_all(stage: Stage, victim: str) -> Blow | str:
    """SIGSTOP to all processes of the fleet, CONT after 3 s, as when a machine sleeps."""
    pids = [stage.supervisor(), stage.tmux_pid(), stage.endpoint_pid(), *map(stage.hermes, stage.names)]
    return _stopped(stage, pids)


def _stopped(stage: Stage, pids: list[int]) -> Blow | str:
    before = {name: stage.attempt(name) for name in stage.names}
    hit = [pid for pid in pids if kill(pid, signal.SIGSTOP)]
    if not hit:
        return "there was no such process at that moment"

    def go_on() -> None:
        time.sleep(STOPPED)
        for pid in reversed(hit):
            kill(pid, signal.SIGCONT)

    return Blow(heal=go_on, wrong=lambda: _started_again(stage, before))


def stale_exit(stage: Stage, victim: str) -> Blow | str:
    """An `exit.json` of no life of the worker: in the living attempt and in the next one; then SIGKILL."""
    number = stage.attempt(victim)
    for each in (number, number + 1):
        folder: Path = stage.fleet.paths.worker(victim).attempt(each)
        folder.mkdir(exist_ok=True)
        (folder / "exit.json").write_text('{"schema": 1, "code": 0, "signal": null, "why": ""}\n')
    blow = _again(stage, victim, stage.hermes(victim))
    if isinstance(blow, str):
        return blow
    after = number + 1
    return Blow(
        blow.noticed,
        recovered=blow.recovered,
        wrong=lambda: "" if stage.attempt(victim) == after else "the stale file was taken for a death",
        at=blow.at,
    )


FAULTS = (
    Fault("kill-worker", "SIGKILL to Hermes", worker),
    Fault("kill-script", "SIGKILL to the launch script above Hermes", script),
    Fault("kill-tool", "SIGKILL to what a tool of Hermes runs", tool),
    Fault("kill-supervisor", "SIGKILL to the supervisor", supervisor),
    Fault("kill-tmux", "SIGKILL to the fleet's tmux server", tmux),
    Fault("kill-endpoint", "SIGKILL to the endpoint", endpoint),
    Fault("stop-worker", "SIGSTOP to Hermes for 3 s", stop_worker),
    Fault("stop-supervisor", "SIGSTOP to the supervisor for 3 s", stop_supervisor),
    Fault("stop-all", "SIGSTOP to every process of the fleet for 3 s", stop_all),
    Fault("deaf-orphan", "SIGKILL to Hermes; a child of its tool ignores TERM", deaf_orphan),
    Fault("stale-exit", "an exit.json that no attempt wrote, then SIGKILL to Hermes", stale_exit),
)
