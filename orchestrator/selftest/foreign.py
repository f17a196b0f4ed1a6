"""Somebody else's tmux servers: a stand-in beside the fleet's, and the user's own, which is only read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from orchestrator.terminal.process import Process

FORMAT = "#{session_id} #{session_name} #{window_id} #{window_name} #{pane_id} #{pane_pid} #{pane_dead}"
SHAPE = " #{window_width}x#{window_height} #{pane_in_mode}"
LIKE_OURS = ("hermux", "w-1", "coder-1")
"""Sessions of the stand-in: named like workers, so that a sloppy target would hit them."""


class Foreign:
    """Servers that nobody may touch."""

    def __init__(self, folder: Path, env: Mapping[str, str], user: Mapping[str, str]) -> None:
        # by this variable the sweep of a selftest that was killed finds the stand-in
        self._env = dict(env) | {"XDG_STATE_HOME": str(folder / "foreign")}
        self._user = dict(user)
        self._before = ""
        self._own: set[str] = set()

    def begin(self) -> None:
        """Start the stand-in and note what is there."""
        for name in LIKE_OURS:
            self._tmux(self._env, "-L", "foreign", "-f", os.devnull, "new-session", "-d", "-s", name, "cat")
        self._before, self._own = self.checksum(), self._users()

    def checksum(self) -> str:
        """Return a checksum over the stand-in: sessions, windows, panes, sizes, screens, options, processes."""
        panes = self._ask("list-panes", "-a", "-F", FORMAT + SHAPE).splitlines()
        screens = [self._ask("capture-pane", "-p", "-t", line.split()[4]) for line in panes]
        lives = [Process.of(int(line.split()[5])) for line in panes]
        told = [panes, screens, lives, self._ask("show-options", "-g"), self._ask("show-hooks", "-g")]
        return sha256(repr(told).encode()).hexdigest()

    def touched(self) -> list[str]:
        """Return what is not as it was, a line each."""
        found = [] if self.checksum() == self._before else ["the stand-in for a foreign tmux server"]
        gone = self._own - self._users()
        return found + [f"gone from your own tmux server: {line}" for line in sorted(gone)]

    def end(self) -> None:
        """End the stand-in."""
        self._ask("kill-server")

    def _users(self) -> set[str]:
        """Return the panes of the user's own server, by id and process; an empty set without one."""
        own = {name: value for name, value in self._user.items() if name != "TMUX"}
        return set(
            self._tmux(own, "list-panes", "-a", "-F", "#{session_id} #{pane_id} #{pane_pid}").splitlines()
        )

    def _ask(self, *words: str) -> str:
        return self._tmux(self._env, "-L", "foreign", *words)

    def _tmux(self, env: Mapping[str, str], *words: str) -> str:
        done = subprocess.run(
            ["tmux", *words], env=dict(env), capture_output=True, text=True, timeout=20, check=False
        )
        return done.stdout


@contextmanager
def foreign(folder: Path, env: Mapping[str, str], user: Mapping[str, str]) -> Iterator[Foreign]:
    """Have the servers watched; the stand-in is gone at the end."""
    servers = Foreign(folder, env, user)
    try:
        servers.begin()
        yield servers
    finally:
        servers.end()
