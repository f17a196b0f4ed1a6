"""The post-mortem reader on databases as Hermes leaves them: a WAL, a hot journal, torn, absent."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.hermes.database import (
    HEADER,
    DatabaseUnreadable,
    Found,
    cannot_resume,
    find_user_message,
    last_row_role,
    latest_session,
    session_exists,
)

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, parent_session_id TEXT, started_at REAL NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,
  content TEXT, timestamp REAL NOT NULL, finish_reason TEXT);
INSERT INTO sessions VALUES ('one', 'cli', NULL, 1), ('two', 'cli', 'one', 5), ('three', 'cli', 'two', 7),
  ('child', 'subagent', 'one', 9), ('bg_1', 'cli', 'one', 9), ('other', 'cli', NULL, 6);
INSERT INTO messages (session_id, role, content, timestamp, finish_reason) VALUES
  ('one', 'user', 'hello', 100, NULL), ('one', 'assistant', 'hello', 101, 'stop'),
  ('one', 'user', 'hello', 200, NULL), ('two', 'user', 'hello', 210, NULL), ('two', 'user', 'é\n\nb', 220, NULL);
"""


@pytest.fixture(params=["wal", "delete"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A profile whose process died: in WAL mode nothing has reached the main file yet."""
    live, dead = tmp_path / "live", tmp_path / "dead"
    live.mkdir()
    dead.mkdir()
    database = sqlite3.connect(live / "state.db")
    database.execute(f"PRAGMA journal_mode={request.param}")
    database.executescript(SCHEMA)
    for path in live.iterdir():
        shutil.copy(path, dead / path.name)
    database.close()
    yield dead


def test_a_message_is_found_by_its_exact_text(home: Path) -> None:
    assert find_user_message(home, "hello", since=150) == Found("two", (200.0, 210.0))
    assert find_user_message(home, "é\n\nb", since=0) == Found("two", (220.0,))
    assert find_user_message(home, "b", since=0) is None
    assert find_user_message(home, "hello", since=230) is None
    assert find_user_message(home, "hell", since=0) is None


def test_sessions_and_their_line(home: Path) -> None:
    assert session_exists(home, "one")
    assert not session_exists(home, "none")
    assert latest_session(home) == "three"


def test_the_last_row_tells_an_unfinished_turn(home: Path) -> None:
    last = last_row_role(home, "two")
    assert last is not None
    assert (*last, last.unfinished) == ("user", "", True)
    assert last_row_role(home, "three") is None


def test_the_original_is_not_touched(home: Path) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.iterdir()}
    find_user_message(home, "hello", since=0)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.iterdir()} == before


def test_a_hot_journal_is_rolled_back(tmp_path: Path) -> None:
    live, home = tmp_path / "live.db", tmp_path / "home"
    home.mkdir()
    database = sqlite3.connect(live, isolation_level=None)
    database.executescript(SCHEMA + "PRAGMA cache_size=1; PRAGMA cache_spill=1; BEGIN IMMEDIATE;")
    many = [(f"never committed {number}" * 50,) for number in range(2000)]
    database.executemany(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('one','user',?,300)", many
    )
    shutil.copy(live, home / "state.db")
    shutil.copy(f"{live}-journal", home / "state.db-journal")
    database.close()
    assert find_user_message(home, many[0][0], since=0) is None
    assert find_user_message(home, "hello", since=150) == Found("two", (200.0, 210.0))


def test_a_profile_that_never_ran_holds_nothing(tmp_path: Path) -> None:
    assert find_user_message(tmp_path, "hello", since=0) is None
    assert latest_session(tmp_path) is None
    assert last_row_role(tmp_path, "one") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"no database, but long enough to be one" * 99, b""])
def test_a_torn_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.db").write_bytes(content)
    with pytest.raises(DatabaseUnreadable):
        find_user_message(tmp_path, "hello", since=0)


def test_what_cannot_be_resumed(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    assert "gone" in cannot_resume(tmp_path, "s1")
    file.write_bytes(b"no database at all")
    assert "damaged" in cannot_resume(tmp_path, "s1")
    file.write_bytes(HEADER + b"rest")
    assert cannot_resume(tmp_path, "s1") == ""


def test_a_database_that_cannot_be_read_for_now_costs_no_conversation(tmp_path: Path) -> None:
    (tmp_path / "state.db").symlink_to("/proc/self/mem")  # reading it from its start is EIO
    assert cannot_resume(tmp_path, "s1") == ""
