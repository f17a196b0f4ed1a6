"""Post-mortem reader of Hermes' `state.db`: what a worker that is dead had taken in.

Only for a process that is known to be dead: another process that opens and closes the file of a
live one can end its writes (POSIX locks). Even so the original is never opened as a database: the
file and its journals (0.19 keeps a WAL, 0.22 a rollback journal) are copied to a private folder
and read there. Schema as of 0.19.0, tables `sessions` and `messages`; a failed turn leaves its user
row, and each user message stays a row of its own although Hermes joins unanswered ones with the next
("a", empty line, "b") for the model (measured on 0.19.0 and 0.22.2).
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import NotReady

FILE = "state.db"
_JOURNALS = ("-wal", "-journal")
_SLACK = 1.0
"""Seconds that a row's time may lie before the moment noted: both are this machine's clock."""


class DatabaseUnreadable(NotReady):
    """`state.db` is torn, of another schema, or can't be copied; nothing follows from that."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a user message lies: the newest session that holds it, and the time of every row of it."""

    session_id: str
    times: tuple[float, ...]


class LastRow(NamedTuple):
    """The last message of a session: an `assistant` with `stop` ended its turn, all else did not."""

    role: str
    finish_reason: str

    @property
    def unfinished(self) -> bool:
        """Whether the last turn has no final answer."""
        return not (self.role == "assistant" and self.finish_reason == "stop")


def find_user_message(home: Path | Copied, text: str, *, since: float) -> Found | None:
    """Return where `text` was stored as a user message at or after `since` (epoch seconds), or None.

    `home` is the Hermes profile's folder.
    Raises DatabaseUnreadable.
    """
    with _copy(home) as database:
        rows = database.execute(
            "SELECT session_id, timestamp FROM messages"
            " WHERE role = 'user' AND timestamp >= ? AND content = ? ORDER BY id",
            (since - _SLACK, text),
        ).fetchall()
    return Found(str(rows[-1][0]), tuple(float(row[1]) for row in rows)) if rows else None


def session_exists(home: Path | Copied, session_id: str) -> bool:
    """Whether `--resume` would find the session. Raises DatabaseUnreadable."""
    with _copy(home) as database:
        return database.execute("SELECT 1 FROM sessions WHERE id = ?", (session_id,)).fetchone() is not None


HEADER = b"SQLite format 3\0"


def cannot_resume(home: Path, session_id: str) -> str:
    """Return why `--resume` is of no use, "" where nothing speaks against it; costs one read, so no row is looked for.

    Hermes 0.19 starts with an empty conversation on a file that is no database, and keeps nothing from then on. A
    file that cannot be read for now is no such file: nobody gives up a conversation for that.
    """
    try:
        with (home / FILE).open("rb") as stream:
            found = stream.read(len(HEADER))
    except FileNotFoundError:
        return f"session {session_id} is gone: there is no {FILE} any more"
    except OSError:
        return ""
    return "" if found == HEADER else f"session {session_id} cannot be read: {FILE} is damaged"


def set_aside(home: Path, stamp: str) -> None:
    """Move a damaged database out of Hermes' way; nothing is deleted. Raises OSError."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path = home / (FILE + suffix)
        if path.exists():
            path.rename(home / f"{FILE}.damaged-{stamp}{suffix}")


def latest_session(home: Path | Copied) -> str | None:
    """Return the newest conversation of a person's or ours in the profile. Raises DatabaseUnreadable."""
    with _copy(home) as database:
        row = database.execute(
            "SELECT id FROM sessions WHERE source = 'cli' AND id NOT LIKE 'bg~_%' ESCAPE '~'"
            " ORDER BY started_at DESC, rowid DESC LIMIT 1"
        ).fetchone()
    return str(row[0]) if row else None


def last_row_role(home: Path | Copied, session_id: str) -> LastRow | None:
    """Return the last message of a session, or None for an empty or unknown one. Raises DatabaseUnreadable."""
    with _copy(home) as database:
        row = database.execute(
            "SELECT role, COALESCE(finish_reason, '') FROM messages WHERE session_id = ? ORDER BY id DESC LIMIT 1",
            (session_id,),
        ).fetchone()
    return LastRow(str(row[0]), str(row[1])) if row else None


@dataclass(frozen=True, slots=True)
class Copied:
    """A private copy of a profile's database, for several questions; open within `copied` alone."""

    connection: sqlite3.Connection


@contextmanager
def copied(home: Path) -> Iterator[Copied]:
    """Copy the database once: what is given stands for `home` in every function here. See `_copy`."""
    with _copy(home) as connection:
        yield Copied(connection)


@contextmanager
def _copy(home: Path | Copied) -> Iterator[sqlite3.Connection]:
    """Open a private copy of the database; a profile that never ran has an empty one.

    Raises DatabaseUnreadable, also for what goes wrong while it is open.
    """
    if isinstance(home, Copied):
        yield home.connection
        return
    try:
        with tempfile.TemporaryDirectory(prefix="hermux-db-") as folder:
            copy = Path(folder) / FILE
            fresh = not _copy_files(home / FILE, copy)
            with closing(sqlite3.connect(copy, timeout=2.0)) as database:
                # Nothing of the copy need last: no fsync when its journal is folded in, and no -shm file.
                database.execute("PRAGMA synchronous = OFF")
                database.execute("PRAGMA locking_mode = EXCLUSIVE")
                if fresh:
                    database.executescript(_EMPTY)
                yield database
    except (OSError, sqlite3.Error) as error:
        raise DatabaseUnreadable(f"can't read {home / FILE}: {error}") from error


_EMPTY = """
CREATE TABLE sessions (id TEXT, source TEXT, parent_session_id TEXT, started_at REAL);
CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content TEXT, timestamp REAL, finish_reason TEXT);
"""


def _copy_files(source: Path, copy: Path) -> bool:
    """Copy the database and its journals; False where there is none."""
    if not source.exists():
        return False
    shutil.copyfile(source, copy)
    for suffix in _JOURNALS:
        journal = source.with_name(source.name + suffix)
        if journal.exists():
            shutil.copyfile(journal, copy.with_name(copy.name + suffix))
    return True
