"""Text of others made fit for a terminal: nothing in it moves the cursor, colours, or turns the reading order."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters but tab and line end, those that turn the reading order, and lone surrogates."""


def visible(text: str) -> str:
    """Return a text with what would act on a terminal shown instead: `␛[31m`, `\\u202e`. Lines are kept."""
    return UNSEEN.sub(_shown, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Return a text on one line, blanks run together, with nothing in it that acts on a terminal."""
    return visible(" ".join(text.split()))


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
