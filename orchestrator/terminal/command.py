"""tmux commands as lists of words, and how a word is quoted. Pure.

`Server` hands words to a tmux process, `Control` joins them into a line of tmux's own command
language: one place makes the words for both.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from orchestrator.errors import TerminalError
from orchestrator.terminal.pane import KEEP_ALIVE

Words = list[str]
PATH_OPTION = "@hermux_path"
MADE = "#{pane_id} #{pane_pid} #{window_width} #{window_height}"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNPRINTABLE = re.compile(r"[\x01-\x1f\x7f]+")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PANE = re.compile(r"%[0-9]+")


def quote(word: str) -> str:
    """Return the word for a tmux command line, so that it arrives as it is; raise TerminalError on NUL.

    Nothing is special between tmux's single quotes, but a line end would end the command line of
    a control client: control characters become octal escapes between double quotes.
    """
    if "\0" in word:
        raise TerminalError("a NUL character can't be handed to tmux")
    if _BARE.fullmatch(word):
        return word
    quoted = "'" + word.replace("'", "'\"'\"'") + "'"
    return _UNPRINTABLE.sub(lambda found: "'\"" + _octal(found[0]) + "\"'", quoted)


def _octal(text: str) -> str:
    return "".join(f"\\{ord(character):03o}" for character in text)


def join(words: Iterable[str]) -> str:
    """Return one command line for a control client."""
    return " ".join(quote(word) for word in words)


def argument(word: str) -> str:
    """Return the word for the argv of a tmux process, where a trailing `;` would end the command."""
    return word[:-1] + r"\;" if word.endswith(";") else word


def session_target(session: str) -> str:
    """Return the target that means exactly this session; raise TerminalError for a name tmux would bend."""
    if not _SESSION.fullmatch(session):
        raise TerminalError(f"{session!r} is no session name of hermux")
    return f"={session}:"


def pane_target(pane_id: str) -> str:
    """Return the pane id; raise TerminalError when it is none."""
    if not _PANE.fullmatch(pane_id):
        raise TerminalError(f"{pane_id!r} is no pane id")
    return pane_id


def target(name: str) -> str:
    """Return the exact target for a pane id or a session name."""
    return pane_target(name) if name.startswith("%") else session_target(name)


def expanded(path: Path) -> tuple[list[Words], str]:
    """Return the commands to run first, and the word that tmux' format expansion turns into `path`.

    tmux expands formats in directories and buffer files. `##` stands for `#` except before `[`
    (tmux 3.3a keeps both), so such a path goes through an option, whose value is not expanded.
    """
    text = str(path)
    if "#[" in text:
        return [["set-option", "-g", PATH_OPTION, text]], f"#{{{PATH_OPTION}}}"
    return [], text.replace("#", "##")


def program(argv: Sequence[str]) -> Words:
    """Return the words of a program for tmux, which hands a single word to a shell, and several to exec."""
    if not argv or not argv[0]:
        raise TerminalError("no program to start")
    return ["exec " + shlex.quote(argv[0])] if len(argv) == 1 else list(argv)


def checked(directory: Path) -> Path:
    """Return it when it is a directory: tmux would start the program silently somewhere else."""
    if not directory.is_dir():
        raise TerminalError(f"no such directory: {directory}", hint="create it, or name another with --cwd")
    return directory.absolute()


def new_session(name: str, argv: Sequence[str], *, cwd: Path, columns: int, rows: int) -> list[Words]:
    """Return the commands that make a detached session; the last one prints pane id, pid and size."""
    session_target(name)
    first, directory = expanded(checked(cwd))
    size = ["-x", str(columns), "-y", str(rows)]
    where = ["-s", name, *size, "-c", directory]
    return [*first, ["new-session", "-d", "-P", "-F", MADE, *where, "--", *program(argv)]]


def new_window(session: str, argv: Sequence[str], *, cwd: Path) -> list[Words]:
    """Return the commands that add a window to a session; the last one prints as `new_session` does."""
    first, directory = expanded(checked(cwd))
    where = ["-t", session_target(session), "-c", directory]
    return [*first, ["new-window", "-d", "-P", "-F", MADE, *where, "--", *program(argv)]]


def settle(pane_id: str, *, columns: int, rows: int, resize: bool) -> list[Words]:
    """Return the commands that note the size a window goes back to and, where asked, give it that size.

    `resize-window` leaves the window on `window-size manual`; unset, it follows clients again.
    """
    size = ["-x", str(columns), "-y", str(rows)]
    noted = [["set-option", "-w", "-t", pane_id, "@size", " ".join(size)]]
    if not resize:
        return noted
    return [
        *noted,
        ["resize-window", "-t", pane_id, *size],
        ["set-option", "-w", "-u", "-t", pane_id, "window-size"],
    ]


def respawn(pane_id: str, argv: Sequence[str], *, cwd: Path) -> list[Words]:
    """Return the commands that start a program in a pane that exists; the last one prints its pid."""
    first, directory = expanded(checked(cwd))
    there = pane_target(pane_id)
    return [
        *first,
        ["respawn-pane", "-k", "-t", there, "-c", directory, "--", *program(argv)],
        ["display-message", "-p", "-t", there, "#{pane_pid}"],
    ]


def capture(where: str, *, start: int | None = None, ansi: bool = False) -> Words:
    """Return the command that prints a screen.

    `start` is tmux' own number: 0 is the screen's first row (as None), -100 a hundred lines of the
    history above it.
    """
    words = ["capture-pane", "-p", "-t", target(where)]
    words += ["-e"] if ansi else []
    return words if start is None else [*words, "-S", str(start)]


TYPED = "a person typed"


def unless_typed(there: str, keyed: int, line: str) -> Words:
    """Return the command that runs one command if no client has typed since `keyed`, and else prints `TYPED`.

    A control client is answered twice: for this command, and for the one that it runs.
    `session_activity` is when a key last came from a client of the session (tmux 3.3a: also an attach).
    """
    said = join(["display-message", "-p", TYPED])
    return ["if-shell", "-F", "-t", there, f"#{{==:#{{session_activity}},{keyed}}}", line, said]


def kill_pane(pane_id: str) -> Words:
    """Return the command that ends this pane; with it the window and session that have no other."""
    return ["kill-pane", "-t", pane_target(pane_id)]


def kill_session(session: str) -> Words:
    """Return the command that ends exactly this session; the keep-alive session is refused."""
    if session == KEEP_ALIVE:
        raise TerminalError(f"{KEEP_ALIVE} is never killed: the supervisor sits in it")
    return ["kill-session", "-t", session_target(session)]
