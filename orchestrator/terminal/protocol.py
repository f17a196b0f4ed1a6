"""tmux' control-mode protocol (tmux(1), CONTROL MODE), parsed from bytes. Pure.

An answer stands between `%begin TIME NUMBER FLAGS` and `%end` or `%error` with the same three; in
between come only its lines. Outside of answers every line is a notification.
"""

from __future__ import annotations

from dataclasses import dataclass

_MAX_LINE = 8 * 1024 * 1024
"""Bytes of an unfinished line that are kept: a screen's line is some hundred."""


@dataclass(frozen=True, slots=True)
class Block:
    """One answer. `ours` is false for what tmux ran without having been asked by this client."""

    number: int
    ours: bool
    ok: bool
    lines: tuple[str, ...]


class Parser:
    """Turns what a control client prints into answers and notifications, in their order."""

    def __init__(self) -> None:
        self._rest = b""
        self._open: bytes | None = None
        self._lines: list[str] = []

    def feed(self, data: bytes) -> list[Block | str]:
        """Take the next bytes and return what they complete; a torn line waits for its end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE:
            self._rest = b""
        found = [self._line(line) for line in lines]
        return [item for item in found if item is not None]

    def _line(self, line: bytes) -> Block | str | None:
        word, _, rest = line.partition(b" ")
        if self._open is None:
            if word == b"%begin":
                self._open, self._lines = rest, []
                return None
            return line.decode("utf-8", "replace")
        if word in (b"%end", b"%error") and rest == self._open:
            return self._close(ok=word == b"%end")
        self._lines.append(line.decode("utf-8", "replace"))
        return None

    def _close(self, *, ok: bool) -> Block:
        fields = (self._open or b"").split()
        number, flags = (int(field) if field.isdigit() else 0 for field in [*fields, b"", b"", b""][1:3])
        lines, self._open, self._lines = tuple(self._lines), None, []
        return Block(number=number, ours=bool(flags & 1), ok=ok, lines=lines)
