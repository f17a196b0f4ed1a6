"""The state of one worker, as values. Nothing here acts: `decide` makes new values of these."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.fleet.dialog import Dialog, Ended
from orchestrator.fleet.message import MessageKind, Method
from orchestrator.fleet.prompt import DIALOGS, PromptKind
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.fleet.talk import FailedKind, Talk


class Want(StrEnum):
    """What the user asked for."""

    RUN = "run"
    STOPPED = "stopped"
    PAUSED = "paused"


class Phase(StrEnum):
    """Where the worker's process is in its life."""

    PENDING = "pending"
    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"
    STOPPED = "stopped"
    BACKOFF = "backoff"
    HELD = "held"


class Activity(StrEnum):
    """What an `up` worker does."""

    READY = "ready"
    BUSY = "busy"
    WAITING = "waiting"
    BACKGROUND = "background"
    UNKNOWN = "unknown"


class OutcomeKind(StrEnum):
    """How an attempt ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    LEFT = "left"
    """A person ended Hermes in its pane."""
    OUT_OF_MEMORY = "out_of_memory"
    FAILED_TO_START = "failed_to_start"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended; `number` is the exit code or signal, `why` is for failed_to_start."""

    kind: OutcomeKind
    number: int = 0
    why: str = ""

    def __str__(self) -> str:
        """Return it in the words of the journal, e.g. `signalled(9)`."""
        if self.kind in (OutcomeKind.EXITED, OutcomeKind.SIGNALLED):
            return f"{self.kind}({self.number})"
        return f"{self.kind}({self.why})" if self.why else str(self.kind)


@dataclass(frozen=True, slots=True)
class Glance:
    """One reading of a worker's screen. `at` is seconds since the epoch, by the supervisor's clock."""

    kind: PromptKind
    at: float
    typed: str = ""
    """Text that stands in the prompt, "" if none; its end may be a grey suggestion."""
    own: str = ""
    """`typed` without a suggestion: what Enter would submit."""
    dialog: str = ""
    choices: tuple[str, ...] = ()
    background: int = 0
    first_run: bool = False
    lost: bool = False
    """Hermes says that it does not find the session that it was to resume."""
    body: int = 0
    """Digest of the lines above the prompt that Hermes does not repaint: they change with what is put out."""
    in_mode: bool = False
    """The pane is in copy mode."""
    left: int = -1
    """The countdown of a dialog, seconds; -1 = none."""
    keyed: int = 0
    """When a person last pressed a key in an attached terminal: seconds since the epoch, rounded down."""

    def same(self, other: Glance | None) -> bool:
        """Whether another reading shows the same prompt, and the same dialog."""
        return (
            other is not None
            and (self.kind, self.typed, self.in_mode) == (other.kind, other.typed, other.in_mode)
            and self.background == other.background
            and (self.dialog, self.choices) == (other.dialog, other.choices)
        )


@dataclass(frozen=True, slots=True)
class Life:
    """The process of an attempt: the launch script in the pane. It lives until confirmed dead."""

    pane: str
    pid: int
    start: float
    """Start time of the process, seconds since the epoch: with the pid it identifies the process."""
    launched: float


@dataclass(frozen=True, slots=True)
class Quiet:
    """How long nothing has come of the running turn; see `stall`."""

    seconds: float = 0.0
    """Only those in which somebody watched: no sleep of the machine, no jump of its clock."""
    counted: float = 0.0
    """When they were last counted; 0 = no turn runs."""
    steps: int = 0
    """What was done about it: 1 = reported, 2 = interrupted, 3 = restarted."""
    reported: float = 0.0
    """When, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Anew:
    """That the worker's conversation was lost or is used up, so that it goes on in a new one."""

    why: str
    time: float
    attempt: int = 0
    """The attempt that began the new conversation; 0 = it is still to come."""
    told: bool = False
    """The hand-over is queued: what the worker was doing, as its first message."""
    worked: bool = False
    """A turn of the new conversation ended well."""


class OpKind(StrEnum):
    """The kinds of operation; earlier ones push later ones aside."""

    STOP = "stop"
    RECOVER = "recover"
    ANSWER = "answer"
    INTERRUPT = "interrupt"
    KEYS = "keys"
    DELIVER = "deliver"


@dataclass(frozen=True, slots=True)
class Operation:
    """The one thing of several steps that a worker is in the middle of."""

    kind: OpKind
    step: str
    since: float
    """When this step began."""
    deadline: float
    token: int = 0
    """Token of the action whose answer is awaited; answers with another are dropped."""
    message: str = ""
    message_kind: MessageKind | None = None
    flight: Flight | None = None
    tries: int = 0
    acted: float = 0.0
    """When the last key was pressed in this step."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A message that has left `inbox/new` and has no receipt yet."""

    message: str
    kind: MessageKind
    method: Method
    line: str
    """What is typed into the prompt."""
    digest: str
    """sha256 that the receipt must show."""
    offset: int
    """Event offset noted before typing: only later events can be the receipt."""
    since: float = 0.0
    """When it was taken up: only a row of the database from then on can be this message."""
    entered: bool = False
    """Enter was, or may have been, pressed."""
    dialog: int = 0
    """Number of the dialog that it answers."""
    choice: str = ""
    """The answer: once, session, always, deny, choice (`line` is its number) or text (`line`)."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the brain needs to know of a message that waits in `inbox/new`."""

    id: str
    kind: MessageKind


@dataclass(frozen=True, slots=True)
class Move:
    """A message file that must leave `inbox/cur`; kept until it is known to have moved.

    `back` = to `new` (Hermes never had it), else to `done`, or to `failed` if there is an error.
    """

    token: int
    message: str
    asked: float = 0.0
    """When it was last asked for, seconds since the epoch."""
    back: bool = False
    error: str = ""
    method: str = ""
    digest: str = ""
    session: str = ""
    turn: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that was decided, for `hermux why`."""

    time: float
    text: str
    reason: str
    witness: str


MIXED_AFTER = 3.0
"""Seconds after which text beside ours in the prompt is taken for a person's."""


@dataclass(frozen=True, slots=True)
class Worker:
    """All that the supervisor knows of one worker, and all that it must not forget."""

    spec: WorkerSpec
    want: Want
    generation: int
    grace: float = 10.0
    renew: int = 0
    """Attempts up to this number are to be ended and replaced (a restart that a person asked for)."""
    roll: int = 0
    """The same, but each only when it is idle, and one worker of the fleet at a time."""
    drain: bool = False
    """When it is to be stopped, what it is doing is finished first."""
    listed: bool = True
    """Stands in `desired.json`; what does not is stopped and forgotten."""
    phase: Phase = Phase.PENDING
    why: str = ""
    attempt: int = 0
    life: Life | None = None
    setting_up: bool = False
    """The setup command runs in the pane; Hermes comes after it."""
    set_up_at: float = 0.0
    """When the setup command of this attempt ended; 0 = none ran."""
    pane: str = ""
    """The pane of the newest attempt, alive or dead; people may have others in the same session."""
    talk: Talk = field(default_factory=Talk)
    session: str = ""
    """The conversation: the last session id seen in a main `pre_api_request`."""
    resume: str = ""
    """The session id that this attempt was asked to resume."""
    glance: Glance | None = None
    steady_since: float = 0.0
    bells: int = 0
    bell_at: float = 0.0
    painted: int = 0
    """tmux's `window_activity`, seconds: the screen changed when this does."""
    op: Operation | None = None
    parked: Operation | None = None
    """A delivery that stands aside while a dialog is answered."""
    dialogs: tuple[Dialog, ...] = ()
    """Those that stand open; the first is the one in the pane."""
    ended: tuple[Ended, ...] = ()
    """The newest that are over."""
    asked: int = 0
    """The highest number of a dialog so far."""
    timed_out: int = 0
    """How many nobody answered in time."""
    pause: str = ""
    """A reason to take no messages that outlasts the screen (auth, quota, in doubt)."""
    flights: tuple[Flight, ...] = ()
    """Typed, but neither taken nor refused. Their fate is read from the dead attempt's database."""
    moves: tuple[Move, ...] = ()
    hold: str = ""
    """Why it will not be started again by itself."""
    queue: tuple[Head, ...] = ()
    quiet: Quiet = field(default_factory=Quiet)
    interrupted: float = 0.0
    """When C-c was last pressed."""
    crashes: tuple[float, ...] = ()
    restarts: int = 0
    not_before: float = 0.0
    told_at: float = 0.0
    """When a text of our own (nudge, hand-over) was last to be queued: on a full disk it is tried again."""
    lost_at: float = 0.0
    """When the tmux server died under it; 0 = it did not, or the worker is back."""
    nudge: bool = False
    """The crash interrupted a turn: tell the worker to go on when it is ready."""
    anew: Anew | None = None
    """Until a person acts."""
    left: str = ""
    """Why it stays stopped although `want` is run, until a person starts it."""
    ended_by: str = ""
    """How the last attempt ended, "" while none has."""
    cut_off: bool = False
    """Hermes itself wrote an end of the turn that its death interrupted (TERM, HUP): none was reached."""
    tokens: int = 0
    """The last action token given out."""
    word: str = "pending"
    since: float = 0.0
    witness: str = "process"
    decided: tuple[Decision, ...] = ()

    @property
    def name(self) -> str:
        """Return the worker's name."""
        return self.spec.name

    @property
    def wanted(self) -> bool:
        """Whether it is to run: a person asked for it, and has not ended it in its pane since."""
        return self.want is Want.RUN and not self.left

    @property
    def draining(self) -> bool:
        """Whether it is to stop after what it is doing, and to begin no new text."""
        return self.drain and self.want is Want.STOPPED

    @property
    def draft(self) -> str:
        """Return what stands in the prompt that hermux did not type; a reading older than an event is none."""
        glance = self.glance
        if glance is None or glance.kind is not PromptKind.READY or glance.at <= self.talk.heard:
            return ""
        op = self.op
        if op is not None and op.kind is OpKind.DELIVER and op.flight is not None and glance.typed:
            squashed = "".join(op.flight.line.split())
            mixed = op.step in ("typing", "typed") and glance.at - op.since > MIXED_AFTER
            return glance.typed if mixed and "".join(glance.own.split()) != squashed else ""
        return "" if op is not None and op.kind in (OpKind.DELIVER, OpKind.STOP) else glance.typed

    def steady(self, seconds: float = 0.3) -> bool:
        """Whether two screens at least that far apart agree, with no event between or after."""
        return (
            self.glance is not None
            and self.glance.at - self.steady_since >= seconds
            and self.talk.heard <= self.steady_since
        )


__all__ = [
    "DIALOGS",
    "Activity",
    "Decision",
    "FailedKind",
    "Flight",
    "Glance",
    "Head",
    "Life",
    "Move",
    "OpKind",
    "Operation",
    "Outcome",
    "OutcomeKind",
    "Phase",
    "PromptKind",
    "Quiet",
    "Talk",
    "Want",
    "Worker",
]
