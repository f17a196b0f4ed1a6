"""Messages: what is delivered to a worker, and the receipt that proves it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class MessageKind(StrEnum):
    """What the supervisor does with a message."""

    TEXT = "text"
    SLASH = "slash"
    """A Hermes command typed on purpose; no receipt but the prompt having taken it."""
    INTERRUPT = "interrupt"
    KEYS = "keys"
    ANSWER = "answer"
    """A person's answer to one dialog, by its number."""


class Method(StrEnum):
    """How a text reaches Hermes."""

    PASTE = "paste"
    """One bracketed paste of the text itself."""
    REFERENCE = "reference"
    """`[Pasted text #1: N lines → FILE]`, which Hermes expands to the file's exact content."""
    READ_FILE = "read_file"
    """A request to read the file, with its sha256: for what Hermes would rewrite even so."""
    KEY = "key"
    """One key, in a dialog."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it lies in an inbox. `text` is normalised: LF line ends, no outer blanks."""

    id: str
    worker: str
    kind: MessageKind
    text: str
    created: float
    sender: str = "cli"
    keys: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """What normalising changed, in words, for the receipt."""
    dialog: int = 0
    """Number of the dialog that it answers."""
    choice: str = ""
    """The answer: once, session, always, deny, choice (`text` is its number) or text (`text`)."""


def normalise(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text as Hermes will hold it, and what that changed.

    CRLF and CR become LF, and outer blanks go (Hermes does both itself, measured on 0.19.0).
    """
    changed = []
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    if unix != text:
        changed.append("line ends became LF")
    bare = unix.strip()
    if bare != unix:
        changed.append("outer blanks removed")
    return bare, tuple(changed)


def digest(text: str) -> str:
    """Return the sha256 of a text as UTF-8, in hex: what receipts compare."""
    return hashlib.sha256(text.encode()).hexdigest()
