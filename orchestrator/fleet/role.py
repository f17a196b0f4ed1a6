"""A role: the template that a worker is made from. Data only; `store/roles.py` reads it from disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.fleet.spec import RestartPolicy, StallPolicy

ROLE_RULE = r"[a-z][a-z0-9-]{0,19}"
"""20 characters leave room for `-9999` in a worker's name of 24."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class WorktreeFiles:
    """What a new worktree needs beside what git checks out. Paths and globs are relative to the repository."""

    copy: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    """Linked, so all worktrees share them: caches."""
    setup: str = ""
    """Run once in the worktree before the worker's first start."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """Which commands Hermes asks about, and how long its dialogs wait."""

    mode: str = "manual"
    """manual (a person is asked), smart (a model judges first), off (nobody is asked)."""
    timeout: float = DAY
    """Seconds an approval or a question waits for a person before Hermes takes it as denied."""
    allow: tuple[str, ...] = ()
    """Commands, or globs of commands, that run unasked."""
    deny: tuple[str, ...] = ()
    """Globs of commands that never run, whatever the mode."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Snapshots that Hermes takes of the working directory before it changes files."""

    enabled: bool = False
    max_snapshots: int = 20
    """Kept for each working directory."""


@dataclass(frozen=True, slots=True)
class Skills:
    """Which skills a worker sees, by name."""

    allow: tuple[str, ...] | None = None
    """None = all."""
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallback:
    """A model that is asked when the endpoint gives no answer; "" = as the worker's endpoint."""

    model: str
    endpoint: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True)
class Role:
    """What `profiles/<role>/` says about a kind of worker."""

    name: str
    description: str
    """One line for lists."""
    soul: str
    """The persona: Hermes' SOUL.md, whole."""
    toolsets: tuple[str, ...] = ()
    """Hermes toolsets; empty = Hermes' own default."""
    max_turns: int = 0
    """Model calls a turn may take; 0 = Hermes' own default."""
    model: str = ""
    """Model asked of the endpoint; "" = the endpoint's own."""
    endpoint: str = ""
    """A URL, the name of a saved endpoint, or `rehearsal`; "" = as for every worker."""
    key_env: str = ""
    """The variable that holds the endpoint's key; "" = as the endpoint says."""
    fallback: tuple[Fallback, ...] = ()
    max_tokens: int = 0
    """Tokens a single answer may have; 0 = Hermes' own default."""
    temperature: float | None = None
    """None = the server's own default."""
    approvals: Approvals = field(default_factory=Approvals)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    skills: Skills = field(default_factory=Skills)
    inherit: tuple[str, ...] = ()
    """What is copied from the user's own Hermes profile: skills, mcp, memories."""
    nudge: bool | str = True
    """Tell a worker that was interrupted by a crash to go on; a text = in these words."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stall: StallPolicy = field(default_factory=StallPolicy)
    worktree: WorktreeFiles = field(default_factory=WorktreeFiles)
    source: str = ""
    """The folder it was read from."""
    soul_source: str = ""
    """The file its persona was read from."""

    @property
    def approvals_timeout(self) -> float:
        """Seconds that dialogs wait."""
        return self.approvals.timeout
