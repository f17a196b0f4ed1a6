"""A fleet on disk and in tmux without a supervisor, and a person's terminal that can be looked at.

The terminal is another real tmux: what the wall draws arrives on its screen.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psutil

from orchestrator.terminal.server import Server
from tests.unit.stage import Stage
from tests.until import until

_NUMBERS = count()
PROMPT = "worker-prompt>"


@dataclass(frozen=True, slots=True)
class Town:
    """Workers whose programs print 36 rows and a prompt, then echo what is typed."""

    stage: Stage
    server: Server

    def hire(self, *names: str, script: str = "") -> None:
        """Start workers and put them into the picture, ready."""
        for name in names:
            show = f"for n in $(seq 36); do echo {name} row $n; done; printf '{name} {PROMPT} '; exec cat"
            self.server.new_session(name, ["/bin/sh", "-c", script or show], cwd=self.stage.paths.root)
            self.stage.worker(name, pane="%1")

    def dismiss(self, name: str) -> None:
        """Stop a worker as the supervisor does: its session ends, the picture says so."""
        self.server.run("kill-session", "-t", f"={name}")
        self.stage.worker(name, pane="", attempt=0, phase="stopped", word="stopped")

    def sizes(self) -> set[str]:
        """Return the sizes that workers' windows have."""
        rows = self.server.run("list-windows", "-a", "-F", "#{session_name} #{window_width}x#{window_height}")
        return {row.split()[1] for row in rows if not row.startswith("_")}

    def screen(self, name: str) -> str:
        return self.server.capture(name, 40)

    def tiles(self) -> list[str]:
        """Return the workers that some client looks at, each once a client."""
        rows = self.server.run("list-clients", "-F", "#{session_name}")
        return sorted(row for row in rows if row != "_hermux")


class Terminal:
    """A person's terminal of a given size in which one command runs."""

    def __init__(self, env: Mapping[str, str], argv: list[str], *, columns: int, rows: int) -> None:
        self._env = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
        self._name = f"outer-{next(_NUMBERS)}"
        words = shlex.join(argv)
        size = ("-x", str(columns), "-y", str(rows))
        command = f"{words}; echo left with $?; exec cat"
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-s", "mine", "sleep 999999999")
        self._tmux("set-option", "-g", "status", "off")
        self._tmux("respawn-pane", "-k", "-t", "=mine:", command)
        self.pid = int(self._tmux("display-message", "-p", "-t", "=mine:", "#{pane_pid}"))

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", "=mine:")

    def shows(self, *texts: str) -> str:
        """Wait until all texts are on the screen, and return it."""

        def shown() -> str:
            screen = self.screen()
            return screen if all(text in screen for text in texts) else ""

        try:
            return until(shown, 30, every=0.05, what=f"the wall shows {texts}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def hides(self, text: str) -> None:
        """Wait until a text is not on the screen."""
        until(lambda: text not in self.screen(), 30, every=0.05, what=f"the wall does not show {text!r}")

    def keys(self, *names: str) -> None:
        """Press keys by tmux' names, one by one."""
        for name in names:
            self._tmux("send-keys", "-t", "=mine:", "--", name)

    def type(self, text: str) -> None:
        """Have the terminal send bytes at once, as a paste without brackets does."""
        self._tmux("send-keys", "-l", "-t", "=mine:", "--", text)

    def paste(self, text: str) -> None:
        """Paste with brackets, if the program asked for them."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p", "-r", "-d", "-t", "=mine:")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-t", "=mine:", "-x", str(columns), "-y", str(rows))

    def hermux(self) -> psutil.Process:
        """Return the process of the command itself."""
        children = until(lambda: psutil.Process(self.pid).children(), 10, what="the command runs")
        return children[0]

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        pid = self._tmux("display-message", "-p", "#{pid}").strip()
        self._tmux("kill-server")
        until(lambda: not pid or not psutil.pid_exists(int(pid)), 10, what="the terminal is gone")
        for path in Path(self._env["TMUX_TMPDIR"]).glob(f"tmux-*/{self._name}"):
            path.unlink()

    close = hang_up

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self._name, *words],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        return done.stdout


def wall(town: Town, env: Mapping[str, str], *args: str, columns: int = 200, rows: int = 60) -> Terminal:
    """Open a wall in a terminal of its own."""
    argv = [sys.executable, "-m", "orchestrator", "attach", "--wall", *args]
    return Terminal({**env, **town.stage.env, "PATH": os.environ["PATH"]}, argv, columns=columns, rows=rows)


def processes_of_walls(folder: Path) -> list[psutil.Process]:
    """Return what runs of walls in this folder: their servers and clients."""
    found = []
    for process in psutil.process_iter():
        try:
            if any("hermux_wall_" in word for word in process.cmdline()) and process.environ().get(
                "TMUX_TMPDIR"
            ) == str(folder):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
