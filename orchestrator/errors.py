"""Every error that hermux raises on purpose.

HermuxError                 one line for a person, a `hint` (what to type next) and an exit code
├── UsageError        (2)   what was typed cannot be done: unknown role, taken name, bad file
│   ├── BadName             a worker or fleet name that breaks the rule
│   └── UnknownWorker       no worker of that name, glob or group
├── NotReady          (1)   something outside hermux is missing: tmux, Hermes, endpoint, disk
├── SupervisorDown    (1)   no supervisor answers, or it is of another version
├── WorkerFailed      (3)   a worker, or its turn, failed
├── PersonNeeded      (5)   a dialog waits for a person
├── TimedOut        (124)   a deadline passed; nothing was undone
└── TerminalError     (1)   tmux refused a command or could not be asked
"""

from __future__ import annotations


class HermuxError(Exception):
    """Root of all errors of ours; `str(error)` is one line, `hint` says what to type next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(HermuxError):
    """What was typed cannot be done."""

    exit_code = 2


class BadName(UsageError):
    """A name that breaks the rule for worker and fleet names."""


class UnknownWorker(UsageError):
    """No worker of that name, glob or group exists in the fleet."""


class NotReady(HermuxError):
    """Something outside hermux is missing or refuses."""


class SupervisorDown(HermuxError):
    """No supervisor answers, or it is of another version."""


class WorkerFailed(HermuxError):
    """A worker, or its turn, failed."""

    exit_code = 3


class PersonNeeded(HermuxError):
    """A dialog in a worker waits for a person."""

    exit_code = 5


class TimedOut(HermuxError):
    """A deadline passed; nothing was undone."""

    exit_code = 124


class TerminalError(HermuxError):
    """tmux refused a command, or could not be asked."""
