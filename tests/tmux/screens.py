"""What the tests look for on a screen, and programs that run in a pane."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.terminal.control import Control
from orchestrator.terminal.pane import PaneRow
from tests.until import until

READER = """
import os, sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\\x1b[?2004hREADY")
taken = b""
while not taken.endswith(b"\\x1b[201~"):
    taken += os.read(0, 65536)
open(sys.argv[1] + ".part", "wb").write(taken)
os.rename(sys.argv[1] + ".part", sys.argv[1])
os.write(1, b"TAKEN")
os.read(0, 1)
"""
"""Takes one bracketed paste as Hermes does (raw terminal) and writes its bytes to a file."""


def reader(result: Path) -> list[str]:
    """Return the argv of a program that writes what is pasted, brackets included, to `result`."""
    return [sys.executable, "-c", READER, str(result)]


def until_shows(control: Control, pane_id: str, text: str) -> str:
    """Wait until the screen holds `text` and return the screen."""
    until(lambda: text in control.capture(pane_id), what=f"the screen shows {text!r}")
    return control.capture(pane_id)


def row_of(control: Control, pane_id: str) -> PaneRow:
    """Return the periodic read's row of a pane."""
    return next(row for row in control.panes() if row.pane_id == pane_id)
