"""One documented field, and one documented output."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = 1


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `kind` in JSON's words, `|null` where it may be missing."""

    path: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Schema:
    """What some verbs print. `lines`: one object a line instead of one document."""

    verbs: tuple[str, ...]
    fields: tuple[Field, ...]
    lines: bool = False


def fields(text: str) -> tuple[Field, ...]:
    """Return the fields of a table: path, kind and meaning, one a line."""
    rows = (line.split(None, 2) for line in text.splitlines() if line.strip())
    return tuple(Field(path, kind, what) for path, kind, what in rows)
