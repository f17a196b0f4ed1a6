"""The key that goes to the next worker that waits for a person, and the terminals that a bell reaches."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.errors import TerminalError
from orchestrator.terminal.control import Control
from orchestrator.terminal.server import Server
from tests.tmux.test_attach import attached
from tests.until import until

JUMP = "\x1dw"


def looks_at(server: Server) -> list[str]:
    """Return the sessions that people look at."""
    rows = server.run("list-clients", "-F", "#{client_control_mode} #{session_name}")
    return [row.split(" ", 1)[1] for row in rows if row.startswith("0 ")]


@pytest.mark.parametrize(
    ("waiting", "stations"),
    [
        (["qa-1"], ["qa-1", "qa-1"]),
        (["clerk", "qa-1"], ["clerk", "qa-1", "clerk"]),
        (["boss", "clerk", "qa-1"], ["clerk", "qa-1", "boss", "clerk"]),
    ],
)
def test_the_key_goes_round_those_that_wait(
    fleet_server: Server, control: Control, folder: Path, waiting: list[str], stations: list[str]
) -> None:
    for name in ("boss", "clerk", "qa-1", "qa-10"):
        control.new_session(name, ["cat"], cwd=folder)
    with attached(fleet_server, "boss", columns=160, rows=40) as terminal:
        until(lambda: looks_at(fleet_server) == ["boss"])
        terminal.send(JUMP)
        terminal.expect_exact("no worker waits for a person")
        control.set_waiting(waiting)
        terminal.expect_exact("next who waits: Ctrl-] then w")
        for station in stations:
            terminal.send(JUMP)
            until(lambda: looks_at(fleet_server) == [station], what=station)  # noqa: B023
        control.set_waiting([])
        terminal.send(JUMP)
        terminal.expect_exact("no worker waits for a person")
        assert control.run(["display-message", "-p", "in step"]) == ["in step"]


def test_terminals_are_those_of_people(fleet_server: Server, control: Control, folder: Path) -> None:
    control.new_session("boss", ["cat"], cwd=folder)
    assert control.terminals() == []
    with attached(fleet_server, "boss", columns=100, rows=30) as terminal:
        (found,) = until(control.terminals)
        Path(found).write_bytes(b"\a")
        terminal.expect_exact("\a")
    until(lambda: control.terminals() == [])


def test_a_guarded_key_leaves_the_client_in_step(control: Control, folder: Path) -> None:
    """tmux answers an `if-shell` twice; whatever it decides, the next answer is the next command's."""
    pane = control.new_session("boss", ["cat"], cwd=folder)
    now = control.view(pane.pane_id).keyed
    file = folder / "text"
    file.write_text("pasted")
    assert not control.keys_unless_typed(pane.pane_id, now - 1, "x")
    assert not control.paste(pane.pane_id, file, keyed=now - 1)
    assert control.keys_unless_typed(pane.pane_id, now, "y")
    assert control.paste(pane.pane_id, file, keyed=now)
    for keyed in (now, now - 1):
        with suppress(TerminalError):
            assert not control.keys_unless_typed("%999", keyed, "x")
    assert control.run(["display-message", "-p", "in step"]) == ["in step"]
    until(lambda: control.capture(pane.pane_id).startswith("ypasted\n"))
