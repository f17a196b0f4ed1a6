"""How a text must be typed so that Hermes takes it as it stands.

Hermes rewrites much of what is typed at its prompt (cli.py, 0.19.0): `/word` is a command, a leading
existing path becomes an attachment, `@file:x` is replaced by the file, terminal reports and paste
marks are cut out, tabs and odd characters are drawn as something else. So only texts that are shown
exactly as they are get typed. Others lie in a file, and what is typed is

    [Pasted text #1: 3 lines → FILE]        Hermes replaces it by the file's content (its own paste form)
    Read the whole file FILE (…)            where even that would be rewritten, or isn't known to work
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.fleet.message import Method, digest

MAX_CHARACTERS = 400
MAX_NEWLINES = 3
SLOW_LINE = 50_000
"""Hermes prints the first and last two lines of a message whole: measured on 0.19.0, a line of 20 KB costs
nothing, one of 100 KB 10 s without a reaction to keys, one of 1 MB 264 s. The turn itself goes on."""
ROW_CELLS = 60
MAX_ROWS = 6
"""Six rows of 60 cells: fits the eight input rows of the narrowest pane with a full prompt (64 columns)."""

_REFERENCE = re.compile(r"(?<![\w/])@(?:(?:diff|staged)\b|[A-Za-z_]+:)")
"""Wider than agent/context_references.py `REFERENCE_PATTERN`: newer versions know more kinds."""
_ONE_TURN_MARK = "__HERMES_MOA_TURN_V1__"
"""hermes_cli/moa_config.py: a text that starts with it is decoded as a one-turn configuration."""
_SCRUBBED = re.compile(r"\x1b|\^\[|\[?20[01]~|0[01]~|<\d+;\d+;\d+[Mm]|~\[\[e")
"""Wider than hermes_cli/input_sanitize.py and cli.py `_SGR_MOUSE_BARE_RE`: cut out of what is typed."""
_PATH_START = re.compile(r"[\"']?(?:/|~|\.{1,2}/|file:|[A-Za-z]:[\\/])")
"""cli.py `_detect_file_drop`; a leading `/` also makes a command."""
_PLAIN_START = re.compile(r"[^\W_]|[\"'(\[{<*`«“‘„¿¡—–-]|[^\x00-\x7f]")
_CATEGORIES = frozenset(
    {"Lu", "Ll", "Lt", "Lo", "Lm", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}
)
_SYMBOLS = frozenset({"Sm", "Sc"})
_PASTE_SOURCE = re.compile(r"\\\[Pasted text #\\d\+: \\d\+ lines (?:\\u2192|→) \(\.\+\?\)\\\]")


@dataclass(frozen=True, slots=True)
class Typed:
    """What is typed into the prompt, by which method, and why not the text itself ("" = it is)."""

    method: Method
    line: str
    why: str


def plan(text: str, *, file: Path, references_work: bool) -> Typed:
    """Decide how `text` (normalised: LF, no outer blanks) reaches Hermes; `file` will hold it as UTF-8.

    `references_work` says whether this Hermes expands its own paste form (`paste_reference_supported`).
    Raises UsageError for an empty text, a text that is no Unicode, or a file path that can't be typed.
    """
    _refuse(text, file)
    why = rewritten(text)
    if not why:
        return Typed(Method.PASTE, text, "")
    by_file = rewritten_even_so(text)
    if not by_file and not references_work:
        by_file = "this Hermes is not known to expand paste references"
    if not by_file and not _referable(file):
        by_file = "the file's path does not fit into a paste reference"
    if by_file:
        return Typed(Method.READ_FILE, _request(text, file), by_file)
    return Typed(Method.REFERENCE, f"[Pasted text #1: {text.count(chr(10)) + 1} lines → {file}]", why)


def rewritten(text: str) -> str:
    """Say why Hermes would not take the typed text as it stands; "" where it does."""
    if reason := rewritten_even_so(text):
        return reason
    if text[0] == "/":
        return "a leading / would be a command"
    if _PATH_START.match(text):
        return "a leading path would be an attachment"
    if not _PLAIN_START.match(text):
        return f"a leading {text[0]!r} may be a command"
    if text.isdigit():
        return "a bare number may choose from a list"
    return _shape(text) or _characters(text) or _forms(text)


def unanswerable(text: str) -> str:
    """Say why the text cannot be typed into a dialog; "" where it can.

    Hermes 0.19 takes there what the prompt shows: it expands no paste form, and runs no command.
    """
    return (
        _shape(text)
        or _characters(text)
        or ("looks like a terminal report" if _SCRUBBED.search(text) else "")
    )


def rewritten_even_so(text: str) -> str:
    """Say why Hermes would rewrite the text even inside a paste reference; "" where it doesn't."""
    if _REFERENCE.search(text):
        return "Hermes would replace an @-reference"
    if text.startswith(_ONE_TURN_MARK):
        return "Hermes would decode it as a one-turn configuration"
    return ""


def paste_reference_supported(site_packages: Path) -> bool:
    """Whether the Hermes in `site_packages` replaces typed paste references by the file, by its source.

    The form is undocumented, so it is looked for, not assumed.
    """
    candidates = [site_packages / "cli.py", *sorted((site_packages / "hermes_cli").glob("cli_*.py"))]
    sources = [_source(path) for path in candidates]
    expands = any(
        _PASTE_SOURCE.search(source) and "def _expand_paste_references(" in source for source in sources
    )
    return expands and any(
        "user_input = self._expand_paste_references(user_input)" in source for source in sources
    )


def _source(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _refuse(text: str, file: Path) -> None:
    if not text.strip():
        raise UsageError("the message is empty", hint="give a text, a file, or '-' for standard input")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the message is no valid Unicode text", hint="send it as UTF-8") from error
    if not str(file).isprintable() or _SCRUBBED.search(str(file)) or _REFERENCE.search(str(file)):
        raise UsageError(f"{str(file)!r} can't be typed at a prompt", hint="choose another state folder")


def _shape(text: str) -> str:
    """Say why the text would not be shown whole in the input rows; "" where it is."""
    lines = text.split("\n")
    if max(map(len, lines[:2] + lines[-2:])) > SLOW_LINE:
        return f"a line longer than {SLOW_LINE:,} characters, which Hermes prints whole: its screen may stand still"
    if len(text) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    if text.count("\n") > MAX_NEWLINES:
        return f"more than {MAX_NEWLINES + 1} lines"
    rows = sum(1 + _width(line) // ROW_CELLS for line in lines)
    return "too many rows for the prompt" if rows > MAX_ROWS else ""


def _width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in ("W", "F") else 1 for char in line)


def _characters(text: str) -> str:
    """Say which character a terminal may draw as something else; "" where there is none."""
    odd = next((char for char in text if char != "\n" and not _drawn(char)), "")
    return f"holds {unicodedata.name(odd, f'U+{ord(odd):04X}')}" if odd else ""


def _drawn(char: str) -> bool:
    if " " <= char <= "~":
        return True
    category = unicodedata.category(char)
    known = category in _CATEGORIES or category in _SYMBOLS
    upright = unicodedata.bidirectional(char) not in ("R", "AL", "AN")
    return known and upright and ord(char) <= 0xFFFF and not 0x1100 <= ord(char) < 0x1200


def _forms(text: str) -> str:
    if _SCRUBBED.search(text):
        return "looks like a terminal report or a paste mark"
    if "[Pasted text #" in text:
        return "holds Hermes' own paste form"
    if re.search(r"(?:^|\s)@", text):
        return "a word with a leading @ opens a list"
    return "a trailing \\ may join lines" if text.endswith("\\") else ""


def _referable(file: Path) -> bool:
    path = str(file)
    return path.startswith("/") and "]" not in path and len(path) <= MAX_CHARACTERS


def _request(text: str, file: Path) -> str:
    return (
        f"Read the whole file {file} ({len(text.encode())} bytes, sha256 {digest(text)}), in parts if it is "
        "long, and do what it says as if it stood here."
    )
