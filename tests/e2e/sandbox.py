"""A person's fresh home with one fleet in it: commands run in it, and nothing of it is left behind."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pexpect
import psutil

from tests.until import until

HERMUX = Path(sys.executable).parent / "hermux"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`env` is the whole environment of every command; HERMUX_FLEET in it names the fleet."""

    home: Path
    fleet: str
    env: dict[str, str] = field(repr=False)

    @property
    def dir(self) -> Path:
        """Where the fleet's files lie."""
        return self.home / "state" / "hermux" / self.fleet

    def run(
        self, *args: str, stdin: str | bytes = "", timeout: float = 120, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `hermux ARGS` with `env` added; never raises on an exit code."""
        raw = subprocess.run(
            [HERMUX, *args],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=timeout,
            env=self.env | dict(env or {}),
            cwd=self.home,
            check=False,
        )
        return subprocess.CompletedProcess(raw.args, raw.returncode, raw.stdout.decode(), raw.stderr.decode())

    def out(self, *args: str, stdin: str | bytes = "", timeout: float = 120) -> str:
        """Run `hermux ARGS`, which has to exit with 0, and return its stdout less the last newline."""
        done = self.run(*args, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, (
            f"hermux {' '.join(args)[:200]}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout.removesuffix("\n")

    def json(self, *args: str) -> Any:
        """Return what `hermux ARGS --json` prints."""
        return json.loads(self.out(*args, "--json"))

    def begin(self, *args: str) -> subprocess.Popen[str]:
        """Run `hermux ARGS` beside the test, which has to wait for it; see `ended`."""
        return subprocess.Popen(
            [HERMUX, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.home,
        )

    def hire(self, name: str, *args: str) -> str:
        """Spawn one worker, ready to be asked, and return its name."""
        self.out("spawn", "--name", name, *args, timeout=170)
        return name

    def terminal(self, *args: str, columns: int = 120, rows: int = 40) -> pexpect.spawn:
        """Run `hermux ARGS` in a terminal of its own; the caller closes it."""
        return pexpect.spawn(
            str(HERMUX), list(args), env=self.env, cwd=str(self.home), dimensions=(rows, columns), timeout=20
        )

    def tmux(self, *args: str) -> str:
        """Run plain `tmux` on the fleet's server, as a person would, and return its stdout."""
        done = subprocess.run(
            ["tmux", "-L", self.socket, *args],
            capture_output=True,
            text=True,
            env=self.env,
            timeout=20,
            check=False,
        )
        return done.stdout

    @property
    def socket(self) -> str:
        return "hermux" if self.fleet == "default" else f"hermux-{self.fleet}"

    def state(self) -> dict[str, Any]:
        """Return the supervisor's last picture."""
        found: dict[str, Any] = json.loads((self.dir / "state.json").read_text())
        return found

    def worker(self, name: str) -> dict[str, Any]:
        """Return one worker of the last picture; {} while it is not in it."""
        with suppress(FileNotFoundError):
            found: dict[str, Any] = self.state()["workers"].get(name, {})
            return found
        return {}

    def shows(self, name: str, word: str, timeout: float = 60) -> dict[str, Any]:
        """Wait until a worker's state is `word`, and return its entry."""

        def shown() -> dict[str, Any]:
            entry = self.worker(name)
            return entry if entry.get("word") == word else {}

        return until(shown, timeout, every=0.05, what=f"{name} is {word}")

    def place(self, worker: str, message: str) -> str:
        """Return where a message lies: new, cur, done or failed."""
        inbox = self.dir / "workers" / worker / "inbox"
        return next((p.parent.name for p in inbox.glob(f"*/{message}.json")), "")

    def hermes(self, worker: str) -> psutil.Process:
        """Return the worker's Hermes."""
        attempt = self.worker(worker)["attempt"]
        pid = (self.dir / "workers" / worker / "attempts" / str(attempt) / "pid").read_text()
        return psutil.Process(int(pid))

    def supervisor(self) -> int:
        """Return the pid in `supervisor.lock`, 0 when that process is gone."""
        with suppress(OSError, ValueError, psutil.NoSuchProcess):
            pid = int(json.loads((self.dir / "supervisor.lock").read_text())["pid"])
            if "HOME" in psutil.Process(pid).environ():
                return pid
        return 0

    def processes(self, worker: str = "") -> list[psutil.Process]:
        """Return the living processes started in this home, or those of one worker ("*": of any)."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                env = process.environ()  # empty for a zombie
                name = env.get("HERMUX_WORKER", "")
                ours = env.get("HOME") == str(self.home) or env.get("HERMUX_DIR", "").startswith(
                    f"{self.home}/"
                )
                if ours and (not worker or name == worker or (worker == "*" and name)):
                    found.append(process)
        return found

    def rehearsal(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Ask the fleet's rehearsal model: GET `/rehearsal/…`, or POST with a body."""
        port = json.loads((self.dir / "rehearsal.json").read_text())["port"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/rehearsal/{path}",
            data=None if body is None else json.dumps(dict(body)).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")


@contextmanager
def sandbox(hermes: Path, *, fleet: str = "") -> Iterator[Sandbox]:
    """Make a home, and a fleet name that nobody has; at the end stop the fleet and look for leaks."""
    # below /tmp, since a socket's path has at most 104 characters
    home = Path(tempfile.mkdtemp(prefix="hx-", dir="/tmp")).resolve()
    for name in ("tmp", "tmux", "config", "data", "state", "cache"):
        (home / name).mkdir(mode=0o700)
    fleet = fleet or f"e{uuid4().hex[:6]}"
    env = {
        "HOME": str(home),
        "PATH": f"{HERMUX.parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
        "TMPDIR": str(home / "tmp"),
        "TMUX_TMPDIR": str(home / "tmux"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "HERMUX_FLEET": fleet,
        "HERMUX_HERMES": str(hermes),
    }
    box = Sandbox(home, fleet, env)
    try:
        yield box
    finally:
        try:
            leaks = close(box)
        finally:
            shutil.rmtree(home, ignore_errors=True)
    assert not leaks, "left behind: " + "; ".join(leaks)


def close(box: Sandbox) -> list[str]:
    """Stop the workers as a person would, then the supervisor and the tmux server; return what stayed."""
    leaks = []
    if any(box.dir.glob("workers/*")):
        done = box.run("stop", "*", "--now")
        if done.returncode:
            leaks.append(f"hermux stop '*' --now: exit {done.returncode}: {done.stderr.strip()}")
    leaks += end(box, "*", "of a worker")
    for process in supervisors(box):  # one that has just started holds no lock yet
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    with suppress(AssertionError):
        until(lambda: not supervisors(box), 10, every=0.1)
    box.tmux("kill-server")
    leaks += end(box, "", "in the home")
    return leaks + [f"socket {path}" for path in box.home.glob("tmux/**/*") if answers(path)]


def ended(process: subprocess.Popen[str], timeout: float = 90) -> subprocess.CompletedProcess[str]:
    """Wait for a command that was begun, and return what came of it; kills it after `timeout` seconds."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{process.args!r} did not end within {timeout:g} s\n{out}{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def supervisors(box: Sandbox) -> list[psutil.Process]:
    """Return the supervisors that run in the home."""
    found = []
    for process in box.processes():
        with suppress(psutil.Error):
            if "orchestrator.supervise" in process.cmdline():
                found.append(process)
    return found


def answers(path: Path) -> bool:
    """Whether somebody listens on a socket; tmux 3.3a leaves the bare file behind."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def end(box: Sandbox, worker: str, what: str) -> list[str]:
    """Wait 5 s until no such process is left; kill and return those that are."""
    with suppress(AssertionError):
        until(lambda: not box.processes(worker), 5, every=0.1)
    left = box.processes(worker)
    leaks = []
    for process in left:
        with suppress(psutil.Error):
            leaks.append(f"process {process.pid} {what}: {' '.join(process.cmdline())[:120]}")
            process.kill()
    return leaks


def report(box: Sandbox) -> str:
    """What a person would look at after a failure."""
    parts = []
    for args in (["ls"], ["ls", "--json"]):
        with suppress(subprocess.TimeoutExpired):
            done = box.run(*args, timeout=10)
            parts.append(f"$ hermux {' '.join(args)}\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    for path in (box.dir / "supervisor.log", box.dir / "journal.jsonl"):
        with suppress(OSError):
            parts.append(f"$ tail {path.name}\n" + "\n".join(path.read_text().splitlines()[-25:]))
    for screen in sorted(box.dir.glob("workers/*")):
        parts.append(
            f"$ tmux capture-pane {screen.name}\n{box.tmux('capture-pane', '-p', '-t', f'={screen.name}:').rstrip()}"
        )
    return "\n\n".join(parts)
