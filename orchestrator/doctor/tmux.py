"""tmux: its version with the faults known of it, and a private test server with a pane that starts and dies."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.doctor.check import Check, Trouble, fail, ok, warn
from orchestrator.terminal.binary import find_tmux
from orchestrator.terminal.config import write_config
from orchestrator.terminal.server import Server

SHOWN_WITHIN = 3.0
STATUS = 7
"""The exit status of the test pane's command."""
PANE_LIMIT = 10.0
"""Seconds for the pane to die and to say how."""
MARK = "⚕ ❯ ✓"
_FAULTS: tuple[tuple[tuple[int, int], str], ...] = (
    ((3, 6), "loses exit statuses of panes"),
    ((3, 7), "a subscription can crash it"),
)
"""(mended in, what is wrong): measured on 3.3a. hermux works around each."""
_CRASHES = "3.3a"
"""Ends when `window-size manual` is set globally; hermux sets it for a window at a time."""


def tmux(env: Mapping[str, str]) -> Check:
    """Look at the program and its version."""
    found = find_tmux(env)
    faults = _known_faults(found.version)
    told = f"; worked around: {', '.join(faults)}" if faults else ""
    return ok("tmux", f"{found.version} at {found.path}{told}")


def _shown(made: Server, pane: str) -> str:
    """Return the pane's screen once the mark is on it: tmux may see a death before it has read the last output."""
    deadline = time.monotonic() + SHOWN_WITHIN
    while True:
        screen = made.capture(pane, 5)
        if MARK in screen or time.monotonic() >= deadline:
            return screen
        time.sleep(0.05)


def server(folder: Path, name: str, env: Mapping[str, str]) -> Check:
    """Start a server of our own in `folder`, let a pane start and die in it, and end it again."""
    config = folder / "tmux.conf"
    write_config(config, fleet=name, env=env)
    made = Server(f"hermux-{name}", config, env=env)
    try:
        made.ensure()
        pane = made.new_session(
            "pane", ["/bin/sh", "-c", f"printf '%s\\n' '{MARK}'; exit {STATUS}"], cwd=folder
        )
        status, helped = _death(made, pane.pane_id)
        screen = _shown(made, pane.pane_id)
    finally:
        made.kill_server()
    if MARK not in screen:
        return fail(
            "tmux server",
            f"wide characters come out as {screen.strip()[:20]!r}",
            "set a UTF-8 locale: export LANG=C.UTF-8",
        )
    if status != str(STATUS):
        return warn(
            "tmux server",
            f"a pane started and died, but tmux says exit {status or 'nothing'} in place of {STATUS}",
            "hermux reads the exit from its own file; a newer tmux (3.6) mends it",
        )
    return ok(
        "tmux server",
        f"a pane started, died and said exit {STATUS}"
        + (", after a SIGCHLD (lost by this tmux)" if helped else ""),
    )


def _known_faults(version: str) -> list[str]:
    number = re.search(r"(\d+)\.(\d+)", version)
    if not number:
        return []
    here = (int(number[1]), int(number[2]))
    found = [text for mended, text in _FAULTS if here < mended]
    return [*found, "a global window-size crashes it"] if version == _CRASHES else found


def _death(server: Server, pane: str) -> tuple[str, bool]:
    """Wait for the pane's death; return its exit status and whether the server had to be told of it."""
    begun, helped = time.monotonic(), False
    while time.monotonic() - begun < PANE_LIMIT:
        said = server.run("display-message", "-p", "-t", pane, "#{pane_dead} #{pane_dead_status}")
        dead, _, status = (said or [""])[0].partition(" ")
        if dead == "1" and status:
            return status, helped
        if time.monotonic() - begun > 0.5:
            server.reap()
            helped = True
        time.sleep(0.05)
    if dead == "1":
        return "", helped
    raise Trouble(
        f"a pane whose command ended is not dead after {PANE_LIMIT:g} s",
        hint="end the tmux servers that hang, or restart the machine: pgrep -a tmux",
    )
