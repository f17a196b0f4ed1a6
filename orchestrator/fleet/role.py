"""A role: the template that a worker is made from. Data only; `store/roles.py` reads it from disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.fleet.spec import RestartPolicy

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
    approvals_timeout: float = DAY
    """Seconds an approval or a question waits for a person before Hermes takes it as denied."""
    nudge: bool = True
    """Tell a worker that was interrupted by a crash to go on."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    worktree: WorktreeFiles = field(default_factory=WorktreeFiles)
    source: str = ""
    """The folder it was read from."""
