"""A person's client: from any terminal, without leaving a mark on the window's size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from orchestrator.terminal.control import Control
from orchestrator.terminal.server import Server
from tests.tmux.screens import row_of
from tests.until import until

DETACH = "\x1dd"


@contextmanager
def attached(server: Server, session: str, *, columns: int, rows: int, **env: str) -> Iterator[pexpect.spawn]:
    """Attach in a terminal of that size, as a person would, and close the terminal at the end."""
    program, *words = server.attach_argv(session)
    terminal = pexpect.spawn(
        program,
        words,
        dimensions=(rows, columns),
        env={**server.attach_env(), **env},
        encoding="utf-8",
        timeout=10,
    )
    yield terminal
    terminal.close(force=True)


def size(control: Control, pane_id: str) -> tuple[int, int, int]:
    row = row_of(control, pane_id)
    return row.columns, row.rows, row.attached


@pytest.mark.parametrize("columns, rows", [(90, 30), (200, 60)])
def test_the_size_comes_back_after_a_detach(
    fleet_server: Server, control: Control, folder: Path, columns: int, rows: int
) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    small = control.new_session("coder-2", ["cat"], cwd=folder, columns=70, rows=20)
    for _ in range(2):
        with attached(fleet_server, "coder-1", columns=columns, rows=rows) as terminal:
            until(lambda: size(control, pane.pane_id) == (columns, rows - 1, 1), what="follows the client")
            terminal.send(DETACH)
            terminal.expect(pexpect.EOF)
            until(lambda: size(control, pane.pane_id) == (120, 40, 0), what="120x40 again")
    assert size(control, small.pane_id) == (70, 20, 0)


def test_the_size_comes_back_after_a_lost_terminal_and_a_switch(
    fleet_server: Server, control: Control, folder: Path
) -> None:
    first = control.new_session("coder-1", ["cat"], cwd=folder)
    second = control.new_session("coder-2", ["cat"], cwd=folder, columns=100, rows=30)
    with attached(fleet_server, "coder-1", columns=80, rows=24):
        until(lambda: size(control, first.pane_id) == (80, 23, 1))
        fleet_server.run("switch-client", "-c", client_of(fleet_server, "coder-1"), "-t", "=coder-2")
        until(lambda: size(control, second.pane_id) == (80, 23, 1))
        until(lambda: size(control, first.pane_id) == (120, 40, 0))
    until(lambda: size(control, second.pane_id) == (100, 30, 0))


def test_while_one_of_two_stays_its_size_counts(fleet_server: Server, control: Control, folder: Path) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    with attached(fleet_server, "coder-1", columns=100, rows=31):
        until(lambda: size(control, pane.pane_id) == (100, 30, 1))
        with attached(fleet_server, "coder-1", columns=80, rows=25):
            until(lambda: size(control, pane.pane_id) == (80, 24, 2))
        until(lambda: size(control, pane.pane_id) == (100, 30, 1))


def test_a_tiny_client_makes_no_tiny_newcomer(fleet_server: Server, control: Control, folder: Path) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    with attached(fleet_server, "coder-1", columns=20, rows=5):
        until(lambda: row_of(control, pane.pane_id).attached)
        born = control.new_session("coder-2", ["cat"], cwd=folder)
        other = fleet_server.new_session("coder-3", ["cat"], cwd=folder, columns=64, rows=30)
        assert size(control, born.pane_id) == (120, 40, 0)
        assert size(control, other.pane_id) == (64, 30, 0)


@pytest.mark.parametrize("term", ["", "dumb", "no-such-terminal", "xterm-256color", "screen-256color"])
def test_any_terminal_type_and_from_inside_tmux(
    fleet_server: Server, control: Control, folder: Path, environment: dict[str, str], term: str
) -> None:
    control.new_session("coder-1", ["/bin/sh", "-c", "printf '漢字'; exec cat"], cwd=folder)
    control.set_status("2 ready, 1 waits #[fg=red]#{pid}")
    nested = {**environment, "TMUX": f"{folder}/other,1,0", "TMUX_PANE": "%0", "TERM": term, "LC_ALL": "C"}
    person = Server("hermux", fleet_server.config, env=nested)
    with attached(person, "coder-1", columns=150, rows=40) as terminal:
        terminal.expect("漢字")
        terminal.expect_exact("2 ready, 1 waits #[fg=red]#{pid}")
        terminal.expect_exact("detach: Ctrl-] then d")
        terminal.send(DETACH)
        terminal.expect(pexpect.EOF)


def test_the_status_is_changed_while_somebody_looks(
    fleet_server: Server, control: Control, folder: Path
) -> None:
    control.new_session("coder-1", ["cat"], cwd=folder)
    with attached(fleet_server, "coder-1", columns=150, rows=40) as terminal:
        terminal.expect_exact("detach:")
        control.set_status("coder-1 waits for you")
        terminal.expect_exact("coder-1 waits for you")


def test_a_death_shows_in_the_status_line_and_leaves_the_screen(
    fleet_server: Server, control: Control, folder: Path
) -> None:
    pane = control.new_session("coder-1", ["/bin/sh", "-c", "echo top row; read x; exit 1"], cwd=folder)
    with attached(fleet_server, "coder-1", columns=150, rows=40) as terminal:
        terminal.expect_exact("top row")
        terminal.send("\r")
        terminal.expect_exact("`hermux why coder-1` says why")
    assert control.capture(pane.pane_id).startswith("top row\n")


def test_read_only_types_nothing(fleet_server: Server, control: Control, folder: Path) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    program, *words = fleet_server.attach_argv("coder-1", read_only=True)
    terminal = pexpect.spawn(program, words, dimensions=(40, 120), env=fleet_server.attach_env(), timeout=10)
    until(lambda: row_of(control, pane.pane_id).attached)
    terminal.send("typed by a reader\r")
    terminal.send(DETACH)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert "typed" not in control.capture(pane.pane_id)


def test_prefixes_and_patterns_attach_to_nobody(fleet_server: Server, control: Control, folder: Path) -> None:
    control.new_session("coder-10", ["cat"], cwd=folder)
    with attached(fleet_server, "coder-1", columns=120, rows=40) as terminal:
        terminal.expect("can't find session")


def client_of(server: Server, session: str) -> str:
    """Return the name of the client that looks at a session."""
    rows = server.run("list-clients", "-F", "#{session_name} #{client_name}")
    return next(row.split(" ", 1)[1] for row in rows if row.split(" ", 1)[0] == session)
