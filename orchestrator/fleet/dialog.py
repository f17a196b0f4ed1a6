"""A dialog that waits for a person: who it is, and whether a screen shows this very one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.fleet.prompt import PromptKind

if TYPE_CHECKING:
    from orchestrator.fleet.worker import Glance

PROBE = 60
"""Letters and digits of a text that are looked for on the screen: Hermes wraps and cuts what is longer."""
REDACTED = "[redacted]"
"""What the plugin writes for a secret; the screen shows the secret itself."""
LABELS = {
    "allow once": "once",
    "allow for this session": "session",
    "add to permanent allowlist": "always",
    "deny": "deny",
    "show full command": "view",
}
"""Hermes' labels in English (0.19.0); newer ones are translated, see `approval_order`."""
LONG_COMMAND = 70
"""Characters beyond which Hermes adds "show full command" (cli.py `_approval_choices`, 0.19.0)."""
UNTRANSLATED = "approval_"


class End(StrEnum):
    """How a dialog came to its end."""

    ANSWERED = "answered"
    TIMED_OUT = "timed_out"
    """Nobody answered in time: Hermes took it for a refusal."""
    LEFT = "left"
    """It is no longer on the screen, and nothing says who answered it."""
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Dialog:
    """A dialog that stands open. The first of a worker's is the one in its pane; others wait behind it."""

    number: int
    """Counts up a worker; never given twice."""
    kind: str
    """approval, question, open_question, confirm, sudo or secret."""
    text: str
    since: float
    choices: tuple[str, ...] = ()
    """As the screen numbers them; a question's "other" is left out."""
    probe: str = ""
    """The start of its text, letters and digits only, by the event that told of it."""
    told: bool = False
    """An event told of it; else it was read off the screen."""
    turn: str = ""
    call: str = ""
    questions: int = 1
    """Questions that one call asks, one after the other (0.22)."""
    long: bool = False
    """A command beyond `LONG_COMMAND`."""
    shown: str = ""
    """The box, as the screen showed it last."""
    seen: float = 0.0
    """When the screen showed it first; 0 = not yet."""
    left: int = -1
    """The countdown on the screen, seconds; -1 = none was read."""
    deadline: float = 0.0
    """When Hermes gives it up, seconds since the epoch; 0 = not known."""
    slack: float = 2.0
    """Seconds by which the deadline may be too late."""
    alerted: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A dialog that is over."""

    number: int
    kind: str
    time: float
    how: End
    choice: str = ""
    """What Hermes says was chosen: once, session, always, deny; "" where it doesn't say."""

    def __str__(self) -> str:
        """Return it for an error message."""
        match self.how:
            case End.ANSWERED:
                return f"was answered ({self.choice})" if self.choice else "was answered"
            case End.TIMED_OUT:
                return "timed out, and Hermes took that for a refusal"
            case End.DIED:
                return "ended with its process"
            case _:
                return "has left the screen"


def letters(text: str) -> str:
    """Return a text's letters and digits: what wrapping and boxes leave alone."""
    return "".join(mark for mark in text if mark.isalnum())


def probe_of(text: str) -> str:
    """Return what of an event's text must stand on the screen."""
    return letters(text.split(REDACTED)[0])[:PROBE]


def shows(dialog: Dialog, glance: Glance) -> bool:
    """Whether the screen shows this dialog, as far as one reading can tell.

    A countdown that went up belongs to another dialog, whatever its text.
    """
    typing = dialog.kind == PromptKind.QUESTION and glance.kind is PromptKind.OPEN_QUESTION
    if str(glance.kind) != dialog.kind and not typing:
        return False
    if 0 <= dialog.left < glance.left - 1:
        return False
    box = letters(glance.dialog)
    if dialog.shown and box == letters(dialog.shown):
        return True
    if not dialog.told:
        return False
    if dialog.questions > 1 and dialog.shown:
        return False  # the next question of the same call stands in the same box
    return dialog.probe in box or (not box and bool(glance.choices))


def without_other(kind: PromptKind, choices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the choices to show: the last one of a question asks for an answer of one's own."""
    return choices[:-1] if kind is PromptKind.QUESTION else choices


def approval_order(choices: tuple[str, ...], *, long: bool) -> tuple[str, ...]:
    """Return what each numbered choice of an approval means: once, session, always, deny, view; () = unclear.

    Known labels decide. In another language their number does, where it leaves no doubt:
    Hermes offers once, [session, [always,]] deny and, for a long command, view.
    """
    meant = tuple(_label(choice) for choice in choices)
    if choices and all(meant):
        return meant
    plain: dict[int, tuple[str, ...]] = {
        2: ("once", "deny"),
        3: ("once", "session", "deny"),
        4: ("once", "session", "always", "deny"),
    }
    if not long:
        return plain.get(len(choices), ())
    return (*plain[4], "view") if len(choices) == 5 else ()


def _label(choice: str) -> str:
    text = choice.strip().lower()
    if UNTRANSLATED in text:  # a build without its texts shows their names (0.22.2)
        text = text.rsplit(UNTRANSLATED, 1)[1]
        return text if text in LABELS.values() else ""
    return LABELS.get(text, "")
