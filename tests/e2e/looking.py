"""Attaching as a page says, and leaving again."""

from __future__ import annotations

from pathlib import Path

import pexpect

from tests.e2e.sandbox import Sandbox


def attach_and_leave(command: str, box: Sandbox, cwd: Path) -> None:
    """Run an attach command in a terminal, see which key leaves, and leave with Ctrl-] then d."""
    terminal = pexpect.spawn(
        "/bin/sh", ["-c", command], env=box.env, cwd=str(cwd), dimensions=(50, 160), timeout=60
    )
    try:
        terminal.expect("q leave|detach: Ctrl-] then d")
        for key in ("\x1d", "d") * 5:  # a wall takes keys that come at once for a paste
            terminal.send(key)
            if terminal.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=3) == 0:
                break
    finally:
        terminal.close()
    assert terminal.exitstatus == 0, command
