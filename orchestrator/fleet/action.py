"""What the brain wants done. Every action has a reason and, where it has an answer, a token."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.fleet.dialog import Dialog
from orchestrator.fleet.worker import Flight, Glance, Move


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    worker: str
    attempt: int
    token: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(_Act):
    """Start the launch script in the worker's pane, for the given attempt."""

    resume: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(_Act):
    """Read the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(_Act):
    """Move a message from `new` to `cur` and say how it is to be typed."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paste(_Act):
    """Paste one line into the prompt; no Enter."""

    line: str
    message: str
    keyed: int | None = None
    """Paste it only if no person pressed a key since the glance with this `keyed`; answered with `Acted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Press(_Act):
    """Press keys, by tmux's names."""

    keys: tuple[str, ...]
    guard: Glance | None = None
    """Press them only if the screen still shows this and no event is unread; answered with `Acted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveMessage(_Act):
    """Move a message file out of `inbox/cur`, as `move` says. Doing it twice does no harm."""

    move: Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudge(_Act):
    """Queue the message that tells a worker to go on; answered with `Acted`.

    Its id is `message`, so doing it twice does no harm.
    """

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver(_Act):
    """Queue the message that tells a new conversation what the worker was doing; answered with `Acted`.

    Its id is `message`, so doing it twice does no harm.
    """

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal(_Act):
    """Signal Hermes (the child of the launch script), and the launch script's whole tree for KILL."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(_Act):
    """Signal every process of the worker that outlived its attempt, and count what is left."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Autopsy(_Act):
    """Read the dead attempt's own database: which messages it holds, which session to resume."""

    session: str
    flights: tuple[Flight, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession(_Act):
    """Remove the worker's tmux session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert(_Act):
    """Call a person to a dialog: by a bell, or the command that the user configured."""

    dialog: Dialog


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(_Act):
    """Write one line into the journal."""

    text: str
    before: str = ""
    after: str = ""
    what: str = "transition"
    cause: str = ""


Action = (
    Launch
    | Look
    | Take
    | Paste
    | Press
    | MoveMessage
    | Nudge
    | HandOver
    | Signal
    | Sweep
    | Autopsy
    | CloseSession
    | Alert
    | Note
)
