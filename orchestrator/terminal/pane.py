"""What tmux says about panes and sessions, as values.

A pane is held by its id (`%7`), which tmux never gives twice in the life of a server; a session by
its exact name (`=name:`). tmux 3.3a matches a bare `-t foo` to `foobar` too.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum

KEEP_ALIVE = "_hermux"
"""The session that is never killed: the control client sits in it."""


class Liveness(StrEnum):
    """Three answers; only `DEAD` may be acted upon."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"
    """It could not be asked: a timeout, no permission, an unexpected answer."""


@dataclass(frozen=True, slots=True)
class Pane:
    """A pane just created: its id and the pid of the process in it."""

    pane_id: str
    pid: int


@dataclass(frozen=True, slots=True)
class View:
    """A screen with what is needed to read it, all of one moment."""

    screen: str
    cursor: tuple[int, int]
    """(x, y) in cells from the top left."""
    in_mode: bool
    keyed: int = 0
    """When a key was last pressed in an attached client, or one attached: seconds, rounded down. Keys that
    are sent by command do not count."""


@dataclass(frozen=True, slots=True)
class PaneRow:
    """One pane in the periodic read."""

    session: str
    pane_id: str
    pid: int
    dead: bool
    dead_status: int | None
    """The exit code; None while it lives, after a signal, and when tmux lost it (see `Server.reap`)."""
    dead_signal: int | None
    in_mode: bool
    """Copy mode or another mode: keys sent to the pane are swallowed."""
    activity: int
    """Seconds since the epoch of the window's last output."""
    bells: int
    """Rings since the window was made; two rings in one write of the program count once."""
    columns: int
    rows: int
    attached: int
    """Clients that look at the session."""
    cursor_x: int
    cursor_y: int


FIELDS = (
    "pane_id",
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "pane_in_mode",
    "window_activity",
    "@bells",
    "pane_width",
    "pane_height",
    "session_attached",
    "cursor_x",
    "cursor_y",
    "session_name",
)
PANE_FORMAT = "|".join(f"#{{{name}}}" for name in FIELDS)
"""`pane_current_command`, `pane_current_path` and titles stay out: dear, and anyone's text."""


def parse_row(line: str) -> PaneRow | None:
    """Return the row that a line in `PANE_FORMAT` means, or None for anything else."""
    parts = line.split("|", len(FIELDS) - 1)
    if len(parts) != len(FIELDS) or not parts[0].startswith("%"):
        return None
    pane_id, pid, dead, status, killed_by, mode, *counts, session = parts
    try:
        activity, bells, columns, rows, attached, x, y = (int(count or 0) for count in counts)
        return PaneRow(
            session=session,
            pane_id=pane_id,
            pid=int(pid or 0),
            dead=dead == "1",
            dead_status=int(status) if status else None,
            dead_signal=_signal_number(killed_by),
            in_mode=mode not in ("", "0"),
            activity=activity,
            bells=bells,
            columns=columns,
            rows=rows,
            attached=attached,
            cursor_x=x,
            cursor_y=y,
        )
    except ValueError:
        return None


def _signal_number(text: str) -> int | None:
    """Return the number: Linux's tmux prints it, the BSDs' and macOS' prints the name (`kill`)."""
    if not text:
        return None
    if text.isdigit():
        return int(text)
    name = text.upper().removeprefix("SIG")
    return int(signal.Signals[f"SIG{name}"]) if f"SIG{name}" in signal.Signals.__members__ else None
