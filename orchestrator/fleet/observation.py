"""What the supervisor saw. Every kind names the worker and the attempt it was seen on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.fleet.events import Event
from orchestrator.fleet.message import MessageKind, Method
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.fleet.worker import Glance, Head, Life, Outcome, Want


@dataclass(frozen=True, slots=True)
class Wanted:
    """One worker of `desired.json`."""

    spec: WorkerSpec
    want: Want
    generation: int
    grace: float = 10.0
    renew: int = 0
    roll: int = 0
    drain: bool = False


@dataclass(frozen=True, slots=True)
class DesiredSeen:
    """`desired.json` was read whole."""

    workers: Mapping[str, Wanted]


@dataclass(frozen=True, slots=True)
class ServerLost:
    """The tmux server is confirmed dead, and every pane with it. Comes before the deaths that it caused."""

    at: float
    """When that was seen, seconds since the epoch: what was launched later runs in another server."""


@dataclass(frozen=True, slots=True)
class Launched:
    """The launch script runs in its pane."""

    worker: str
    attempt: int
    life: Life
    anew: str = ""
    """Why it could not resume its session, and runs in a new conversation; "" = as was asked."""


@dataclass(frozen=True, slots=True)
class SettingUp:
    """The setup command of an attempt runs, or (`running` False) has ended."""

    worker: str
    attempt: int
    running: bool


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """No process was started. `hold` = trying again cannot help (missing profile, cwd, Hermes)."""

    worker: str
    attempt: int
    why: str
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The attempt's launch process is confirmed dead."""

    worker: str
    attempt: int
    outcome: Outcome
    last_words: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """Events of the plugin, oldest first."""

    worker: str
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Glanced:
    """A reading of the screen."""

    worker: str
    attempt: int
    glance: Glance


@dataclass(frozen=True, slots=True)
class PaneSeen:
    """The cheap periodic read of the pane."""

    worker: str
    attempt: int
    bells: int
    painted: int
    in_mode: bool


@dataclass(frozen=True, slots=True)
class Worked:
    """The processes of a worker's tools used the processor, or wrote, since they were last measured."""

    worker: str
    attempt: int


@dataclass(frozen=True, slots=True)
class InboxSeen:
    """The messages that wait in `inbox/new`, oldest first."""

    worker: str
    queue: tuple[Head, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """A message was moved to `inbox/cur`; this is how it is to be typed. `problem` = it could not be."""

    worker: str
    token: int
    message: str
    kind: MessageKind
    method: Method
    line: str
    digest: str
    keys: tuple[str, ...] = ()
    problem: str = ""
    dialog: int = 0
    choice: str = ""


@dataclass(frozen=True, slots=True)
class Acted:
    """An action was carried out (`ok`) or could not be (`detail` says why)."""

    worker: str
    token: int
    ok: bool = True
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Swept:
    """Processes of the worker were signalled; `left` still live."""

    worker: str
    token: int
    left: int


@dataclass(frozen=True, slots=True)
class Autopsied:
    """The dead attempt's database was read.

    `stored` = messages that stand in it as user messages, with the session they stand in.
    `session` = the newest session that can be resumed for the one asked about, "" if none can.
    `unfinished` = its last turn has no final answer.
    """

    worker: str
    token: int
    stored: Mapping[str, str]
    session: str = ""
    unfinished: bool = False
    problem: str = ""


Observation = (
    DesiredSeen
    | ServerLost
    | Launched
    | LaunchFailed
    | SettingUp
    | Gone
    | Said
    | Glanced
    | PaneSeen
    | Worked
    | InboxSeen
    | Taken
    | Acted
    | Swept
    | Autopsied
)
