"""What Hermes' prompt line can say; `hermes/prompt.py` reads it off a screen."""

from __future__ import annotations

from enum import StrEnum


class PromptKind(StrEnum):
    """What Hermes waits for, by its prompt line."""

    READY = "ready"
    BUSY = "busy"
    APPROVAL = "approval"
    QUESTION = "question"
    OPEN_QUESTION = "open_question"
    CONFIRM = "confirm"
    SUDO = "sudo"
    SECRET = "secret"
    COMMAND = "command"
    """A slash command runs; input is off."""
    GONE = "gone"
    """Hermes has said good-bye, or tmux that the pane is dead."""
    UNKNOWN = "unknown"


DIALOGS = frozenset(
    {
        PromptKind.APPROVAL,
        PromptKind.QUESTION,
        PromptKind.OPEN_QUESTION,
        PromptKind.CONFIRM,
        PromptKind.SUDO,
        PromptKind.SECRET,
    }
)
"""Kinds in which a person is waited for, and into which nothing may be typed unasked."""
