"""What Hermes' prompt line says: the state that is read off a screen, pure and without a guess.

The symbol decides, never a word: texts are translated in newer versions, and answers may contain
any of them. `⚕` (0.19) or `☤` (0.22) busy, `⚠` approval or confirmation, `?` and `✎` questions,
`🔐` `🔑` hidden input, a braille spinner for a slash command, `(PROFILE )SYMBOL` ready. A screen
that shows nothing of this is `UNKNOWN`, and a dead process may leave any of it standing: whether
the process lives must be known from elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zlib import crc32

from orchestrator.fleet.prompt import DIALOGS, PromptKind
from orchestrator.hermes.screen import FULL_ROWS, Zone, box_above, cut, find_zone


@dataclass(frozen=True, slots=True)
class Prompt:
    """A screen, read."""

    kind: PromptKind
    typed: str = ""
    """The text after the symbol, further rows after a newline; Hermes' own placeholders are left out."""
    before_cursor: str | None = None
    """The part of `typed` in front of the cursor, where a cursor was given: what follows may be a
    grey suggestion from the history, which Enter does not submit."""
    dialog: str = ""
    """The text of the dialog box, without its choices."""
    choices: tuple[str, ...] = ()
    background: int = 0
    """Children and /background tasks that the status bar counts. 0.22 may have no room for the count."""
    first_run: bool = False
    """Hermes asks a first-run question instead of showing its prompt."""
    body: int = 0
    """Digest of what stands above the prompt and the line that Hermes repaints; digits, its timers, left out."""
    left: int = -1
    """The countdown of a dialog in seconds, -1 = none is shown."""

    @property
    def own(self) -> str:
        """`typed` without a suggestion: the part in front of the cursor, or all of it where that is
        unknown or empty (a person may have moved the cursor to the start of a draft)."""
        return self.before_cursor or self.typed


_ICONS = {
    "⚕": PromptKind.BUSY,
    "☤": PromptKind.BUSY,
    "⚠": PromptKind.APPROVAL,
    "⚙": PromptKind.CONFIRM,
    "?": PromptKind.QUESTION,
    "✎": PromptKind.OPEN_QUESTION,
    "🔐": PromptKind.SUDO,
    "🔑": PromptKind.SECRET,
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", PromptKind.COMMAND),
}
_READY = re.compile(r"(?:[a-z0-9][a-z0-9_-]{0,63} )?❯(?: |$)")
_ICON = re.compile(rf"([{''.join(_ICONS)}])\ufe0f?(?: |$)")
_SUFFIX = re.compile(r"(?:[a-z0-9][a-z0-9_-]{0,63} )?[^\w\s\[\]()/\"'.,;:!?*+=-](?: |$)")
_PLACEHOLDER = re.compile(
    r"cli\.tui\.placeholder_\w+|msg=(?:interrupt|queue|steer) · /queue.*|type 1/2/3\b.*"
    r"|type your answer here and press Enter|type (?:password|secret) \(hidden\).*|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] .*",
    re.DOTALL,
)
_COUNTS = re.compile(r"[│·] [⛓▶]\ufe0f? (\d+)(?= |$)")
_CHILD = re.compile(r" ● .+ · \d+\w* · \S+")
_CHOICE = re.compile(r" {0,4}(?:❯ )?(?:\d\.|\[\d\]) (.+)")
_COUNTDOWN = re.compile(r"  .*  \((\d+)s\)")
_LEFT = re.compile(r" *hermes --resume \S+(?: -p \S+)?|Pane is dead\b.*")
_SYMBOL_ONLY = re.compile(r"(?:\S+ )?\S{1,2}")
"""A prompt without its rules: Hermes leaves them out for a moment after a resize."""
_FIRST_RUN = re.compile(r"^Run setup now\? \[Y/n\]|^ *→ \([●○]\) ", re.MULTILINE)


def read_prompt(screen: str, *, profile: str = "", cursor: tuple[int, int] | None = None) -> Prompt:
    """Return what a captured screen (plain text, from its first row) says.

    `profile` is the Hermes profile that leads the ready prompt; with it any skin's symbol is known.
    `cursor` is tmux's (x, y), in cells from the top left.
    """
    zone = find_zone(screen)
    if zone is None:
        return _without_zone(screen)
    found = _symbol(zone.rows[0], profile)
    if found is None or not zone.status:  # no status bar: the model picker, or a redraw
        return Prompt(PromptKind.UNKNOWN)
    kind, skip = found
    if len(zone.rows) >= FULL_ROWS:
        return Prompt(PromptKind.UNKNOWN, typed="\n".join(zone.rows))  # may be scrolled: no symbol to trust
    return _read(zone, kind, skip, cursor)


def session_lost(screen: str, session: str) -> bool:
    """Whether Hermes says at its start that it has no such session (0.19; 0.22 may show the text's key)."""
    said = (f"Session not found: {session}", "cli.resume.session_not_found")
    return any(line.strip().startswith(said) for line in screen.splitlines())


def _without_zone(screen: str) -> Prompt:
    tail = [line.rstrip() for line in screen.split("\n") if line.strip()][-9:]
    if _FIRST_RUN.search("\n".join(tail[-4:])):
        return Prompt(PromptKind.UNKNOWN, first_run=True)
    left = any(_LEFT.fullmatch(line) for line in tail) and not _SYMBOL_ONLY.fullmatch(tail[-1])
    return Prompt(PromptKind.GONE if left else PromptKind.UNKNOWN)


def _symbol(row: str, profile: str) -> tuple[PromptKind, int] | None:
    """Return the kind and how many characters of the row belong to the symbol."""
    if profile and row.startswith(profile + " "):
        symbol = re.match(r"\S+ \S+(?: |$)", row)
        return (PromptKind.READY, symbol.end()) if symbol else None
    if ready := _READY.match(row):
        return PromptKind.READY, ready.end()
    if icon := _ICON.match(row):
        suffix = _SUFFIX.match(row, icon.end())
        return _ICONS[icon.group(1)], suffix.end() if suffix else icon.end()
    return None


def _read(zone: Zone, kind: PromptKind, skip: int, cursor: tuple[int, int] | None) -> Prompt:
    rows = [zone.rows[0][skip:], *zone.rows[1:]]
    typed = "\n".join(rows).rstrip()
    bare = typed if kind is PromptKind.READY else _PLACEHOLDER.sub("", typed)
    box = box_above(zone.above) if kind in DIALOGS else []
    body, choices = _choices(box)
    if kind is PromptKind.APPROVAL and (bare != typed or any("[1]" in line for line in box)):
        kind = PromptKind.CONFIRM
    return Prompt(
        kind,
        typed=bare,
        before_cursor=_before(zone, rows, skip, cursor) if bare else None,
        dialog="\n".join(body).strip(),
        choices=choices,
        background=_background(zone),
        body=_body(zone) if kind is PromptKind.BUSY else 0,
        left=_countdown(zone) if box else -1,
    )


def _before(zone: Zone, rows: list[str], skip: int, cursor: tuple[int, int] | None) -> str | None:
    if cursor is None or not 0 <= cursor[1] - zone.top < len(rows):
        return None
    x, row = cursor[0], cursor[1] - zone.top
    return "\n".join([*zone.rows[:row], cut(zone.rows[row], x)])[skip:]


def _choices(box: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split a box into its text and its numbered choices; wrapped choices are joined again."""
    body: list[str] = []
    choices: list[str] = []
    for line in box:
        if match := _CHOICE.fullmatch(line.rstrip()):
            choices.append(match.group(1))
        elif choices and line.startswith("    ") and line.strip():
            choices[-1] += " " + line.strip()
        else:
            body.append(line.strip())
    text = [line for index, line in enumerate(body) if line or (index and body[index - 1])]
    return text, tuple(choices)


def _body(zone: Zone) -> int:
    lines = [line.rstrip() for line in zone.above[:-1] if line.strip()]
    return crc32(re.sub(r"\d", "", "\n".join(lines[:-1])).encode())


def _countdown(zone: Zone) -> int:
    """Return the number in the hint line between box and status bar."""
    found = _COUNTDOWN.fullmatch(zone.above[-2].rstrip()) if len(zone.above) > 1 else None
    return int(found.group(1)) if found else -1


def _background(zone: Zone) -> int:
    counted = sum(int(number) for number in _COUNTS.findall(zone.status))
    children = 0
    for line in reversed(zone.above[:-1]):
        if not _CHILD.fullmatch(line):
            break
        children += 1
    return max(counted, children)
