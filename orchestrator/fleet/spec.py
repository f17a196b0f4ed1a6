"""What a worker is started from: names, numbers and references, no secret and no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.errors import BadName

NAME_RULE = re.compile(r"[a-z][a-z0-9-]{0,23}")
ROLE_ORDER = ("coder", "research", "qa", "creative", "orchestrator", "general")
"""Roles that `spawn N` takes in turn."""


class EndpointKind(StrEnum):
    """Who answers: an OpenAI-compatible server, or the scripted rehearsal model."""

    OPENAI = "openai"
    REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server and the model asked of it. The key is a name, never a value."""

    base_url: str
    """Used verbatim by Hermes, so it ends in `/v1` where the server needs that."""
    model: str
    context_length: int
    """Tokens; at least 64,000 (Hermes refuses less)."""
    kind: EndpointKind = EndpointKind.OPENAI
    key_env: str = ""
    """The user's name for the variable that holds the key; "" = no key."""
    source: str = ""
    """Where it came from, for people: "flags", "environment (HERMUX_ENDPOINT)", …"""
    name: str = ""
    """The name it is saved under; "" = it was given in full, or found elsewhere."""
    given: tuple[str, ...] = ()
    """What was named for this worker (by flag, role or variable): some of `endpoint`, `model`, `key`.
    What is not in it follows the fleet's endpoint (`endpoint set --roll`)."""


class Restart(StrEnum):
    """After which ends a worker is started again: the words of Erlang's supervisors."""

    PERMANENT = "permanent"
    """After any, also when a person ended it in its pane."""
    TRANSIENT = "transient"
    """After an abnormal one; when a person ended it, it is stopped."""
    TEMPORARY = "temporary"
    """After none; an abnormal one holds it."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """After which ends a worker is started again, and how often.

    `max_restarts` within `period` seconds, then `held`. Waits: 0 before the first restart, then
    `backoff` doubling to `backoff_cap`, times a jitter in [0.8, 1.2]; forgotten after `healthy`
    seconds up.
    """

    policy: Restart = Restart.TRANSIENT
    max_restarts: int = 5
    period: float = 300.0
    backoff: float = 1.0
    backoff_cap: float = 60.0
    healthy: float = 120.0


class StallStep(StrEnum):
    """How far hermux goes by itself about a worker that stalled, one step after the other."""

    REPORT = "report"
    INTERRUPT = "interrupt"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class StallPolicy:
    """After how many seconds without progress a running turn is called stalled, and what is done about it."""

    turn: float = 450.0
    """While the model is awaited."""
    tool: float = 1200.0
    """While a tool runs."""
    then: StallStep = StallStep.REPORT


@dataclass(frozen=True, slots=True)
class Worktree:
    """A git worktree that hermux made for one worker. Paths are absolute."""

    repo: str
    """The top of the checkout that it was made from: the user's."""
    path: str
    """The top of the worktree; the worker's `cwd` is this folder or one below it."""
    branch: str
    """`hermux/<fleet>/<worker>`, without `refs/heads/`."""
    base: str
    """The commit that it began at, as a full hash."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Everything a worker is started from, except its key (which stays in `env`, mode 0600)."""

    name: str
    role: str
    cwd: str
    hermes_profile: str
    """`hx-<fleet>-<worker>`, a folder below `<hermes root>/profiles/`."""
    endpoint: Endpoint
    toolsets: tuple[str, ...] = ()
    """Empty = Hermes' own default."""
    max_turns: int = 0
    """0 = Hermes' own default."""
    max_tokens: int = 0
    """Tokens a single answer may have; 0 = Hermes' own default."""
    temperature: float | None = None
    """None = the server's own default."""
    columns: int = 120
    rows: int = 40
    hermes: str = ""
    """The program to run; "" = whichever is found at the start."""
    hermes_root: str = ""
    """The folder whose `profiles/` holds the worker's; "" = the supervisor's own `HERMES_HOME` rule."""
    user_profile: bool = False
    """`hermes_profile` is one that the user had before: only our plugin is ever written into it."""
    fallback: tuple[Endpoint, ...] = ()
    """Asked in turn when the endpoint gives no answer; Hermes itself switches."""
    worktree: Worktree | None = None
    setup: str = ""
    """A shell command that has to succeed once, at the top of the worktree, before the first start of Hermes."""
    port: int = 0
    """`$PORT`: unique among the workers of all fleets of this home, and kept; 0 = none."""
    nudge: bool = True
    """Tell a worker that was interrupted by a crash to go on."""
    nudge_text: str = ""
    """In these words; "" = hermux' own."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stall: StallPolicy = field(default_factory=StallPolicy)
    after: tuple[str, ...] = ()
    """Workers that have to be ready before it is started (`fleet/sequence.py`)."""


def check_name(name: str, *, what: str = "worker", reserved: frozenset[str] = frozenset()) -> str:
    """Return `name` if it is a legal worker or fleet name; raise BadName with the rule otherwise."""
    if not NAME_RULE.fullmatch(name):
        raise BadName(
            f"{name!r} is no {what} name",
            hint="use 1 to 24 of a-z, 0-9 and '-', starting with a letter",
        )
    if name in reserved:
        raise BadName(f"{name!r} is a word of hermux itself", hint=f"choose another name for the {what}")
    return name


def hermes_profile_name(fleet: str, worker: str) -> str:
    """Return the Hermes profile of a worker: at most 3 + 24 + 1 + 24 = 52 of the 64 characters allowed."""
    return f"hx-{fleet}-{worker}"
