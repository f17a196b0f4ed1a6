"""A fresh home for one contestant: what is started in it ends with it, and its files go."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psutil

from orchestrator.store.paths import FleetPaths, fleet_paths

HERMUX = Path(sys.executable).parent / "hermux"
FLEET = "bench"
MODEL = "hermux-rehearsal"


@dataclass(frozen=True, slots=True)
class Home:
    """`env` is the whole environment of every command that runs in it."""

    path: Path
    env: dict[str, str]

    @property
    def paths(self) -> FleetPaths:
        """The fleet's files, where a fleet was made here."""
        return fleet_paths(FLEET, self.env)

    def run(self, *argv: str, timeout: float = 600) -> str:
        """Run a command to its end and return its stdout; SystemExit names one that failed."""
        done = subprocess.run(
            argv, env=self.env, cwd=self.path, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode:
            told = f"bench: {' '.join(argv)[:100]}: exit {done.returncode}: {done.stderr[-800:]}"
            raise SystemExit(told + self._last_words())
        return done.stdout

    def _last_words(self) -> str:
        """Return the end of the supervisor's log and the words of the workers, since both go with the home."""
        try:
            workers = json.loads(self.paths.state.read_text())["workers"]
            words = {name: f"{each['word']} {each['why']}" for name, each in workers.items()}
            return f"\n{words}\n{self.paths.supervisor_log.read_text()[-2000:]}"
        except (OSError, ValueError, KeyError):
            return ""

    def hermux(self, *words: str) -> str:
        """Run the installed command on this home's fleet."""
        return self.run(str(HERMUX), *words)

    def supervisor(self) -> int:
        """Return the supervisor's pid."""
        return int(json.loads(self.paths.supervisor_lock.read_text())["pid"])


@contextmanager
def fresh_home() -> Iterator[Home]:
    """Give a home without anything in it; at the end every process that was started in it is killed."""
    # below /tmp, since a socket's path has at most 104 characters
    path = Path(tempfile.mkdtemp(prefix="hermux-bench-", dir="/tmp")).resolve()
    for name in ("tmp", "tmux"):
        (path / name).mkdir(mode=0o700)
    env = {
        "HOME": str(path),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
        "TMPDIR": str(path / "tmp"),
        "TMUX_TMPDIR": str(path / "tmux"),
        "HERMUX_FLEET": FLEET,
        "HERMUX_HERMES": os.environ["HERMUX_HERMES"],
    }
    try:
        yield Home(path, env)
    finally:
        end_all(path)
        shutil.rmtree(path, ignore_errors=True)


def end_all(home: Path) -> None:
    """Kill whatever has this HOME: supervisors first, or they would start workers again."""
    for _ in range(50):
        left = sorted(_of(home), key=lambda p: "orchestrator.supervise" not in " ".join(_argv(p)))
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        if not left:
            return
        time.sleep(0.05)


def cpu_seconds(home: Path) -> float:
    """Return the CPU time of everything that runs in this home, with the children that it waited for."""
    return sum(sum(process.cpu_times()[:4]) for process in _of(home))


def _of(home: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            env = process.environ()  # empty for a zombie
            if str(home) in (env.get("HOME", ""), env.get("HERMES_HOME", "").removesuffix("/.hermes")):
                found.append(process)
    return found


def _argv(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


@contextmanager
def child(argv: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a process beside, with its stdout to read, in a group of its own that is killed at the end."""
    process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def rehearsal() -> Iterator[str]:
    """Serve the rehearsal model in a process of its own and give its URL: one server for all contestants."""
    argv = [sys.executable, "-m", "orchestrator.rehearsal"]
    with child(argv, dict(os.environ)) as process:
        assert process.stdout
        url = process.stdout.readline().split()[-1]
        Thread(target=process.stdout.read, daemon=True).start()  # a line a request: nobody else reads them
        yield url


def until(done: Callable[[], object], *, timeout: float, every: float, what: str) -> float:
    """Ask every `every` seconds until true; return the time (perf_counter). SystemExit after `timeout`."""
    deadline = time.perf_counter() + timeout
    while not done():
        if time.perf_counter() > deadline:
            raise SystemExit(f"bench: not within {timeout:g} s: {what}")
        time.sleep(every)
    return time.perf_counter()
