"""`hermux attach`, by people in small, strange and nested terminals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.e2e.play import said, script
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until


@pytest.fixture(scope="module")
def desk(hermes: Path) -> Iterator[Sandbox]:
    with sandbox(hermes) as box:
        box.hire("desk")
        yield box


def size(box: Sandbox) -> str:
    return box.tmux("display-message", "-p", "-t", "=desk:", "#{window_width}x#{window_height}").strip()


def leave(terminal: pexpect.spawn) -> int:
    """Detach as the status line says; return the exit code."""
    terminal.send("\x1d")
    terminal.send("d")
    terminal.expect(pexpect.EOF)
    terminal.close()
    return int(terminal.exitstatus)


@pytest.mark.parametrize("verb", ["attach", "a"])
def test_a_small_terminal_gives_the_size_back(desk: Sandbox, verb: str) -> None:
    assert size(desk) == "120x40"
    terminal = desk.terminal(verb, "desk", columns=80, rows=20)
    terminal.expect("detach: Ctrl-] then d")
    until(lambda: size(desk) == "80x19", 10, what="the worker has the terminal's size")
    assert leave(terminal) == 0
    until(lambda: size(desk) == "120x40", 10, what="the worker has its own size again")
    assert desk.out("ask", "desk", script(said("still fine"))) == "still fine"
    assert desk.worker("desk")["attempt"] == 1


@pytest.mark.parametrize(
    "env",
    [
        {"TMUX": "/tmp/tmux-0/default,123,0", "TMUX_PANE": "%0"},
        {"TERM": "dumb"},
        {"TERM": "no-such-terminal"},
        {"TERM": ""},
        {"LANG": "C", "LC_ALL": "C"},
    ],
    ids=lambda env: "-".join(env.values()).replace("/", ""),
)
def test_strange_surroundings(desk: Sandbox, env: dict[str, str]) -> None:
    around = Sandbox(desk.home, desk.fleet, desk.env | env)
    terminal = around.terminal("attach", "desk")
    terminal.expect("detach: Ctrl-] then d")
    assert leave(terminal) == 0


def test_from_inside_another_tmux(desk: Sandbox) -> None:
    """A real outer server of the person's own, which is left as it was."""
    outer = ["-L", "outer", "-f", "/dev/null"]
    terminal = pexpect.spawn(
        "tmux",
        [*outer, "new-session", "-s", "mine", "hermux attach desk"],
        env=desk.env,
        cwd=str(desk.home),
        dimensions=(30, 100),
        timeout=20,
    )
    terminal.expect("detach: Ctrl-] then d")
    assert leave(terminal) == 0


def test_read_only(desk: Sandbox) -> None:
    terminal = desk.terminal("attach", "desk", "--read-only")
    terminal.expect("detach: Ctrl-] then d")
    terminal.send("typed by accident")
    assert leave(terminal) == 0
    assert "typed by accident" not in desk.out("peek", "desk")
    assert desk.worker("desk")["word"] != "draft"


def test_what_is_typed_there_reaches_the_worker(desk: Sandbox) -> None:
    terminal = desk.terminal("attach", "desk")
    terminal.expect("detach: Ctrl-] then d")
    terminal.send("a person was here")
    until(lambda: "a person was here" in desk.out("peek", "desk"), 20, every=0.2)
    assert desk.shows("desk", "draft")
    terminal.send("\x7f" * len("a person was here"))
    assert leave(terminal) == 0
    assert desk.shows("desk", "ready")


def test_the_status_line_says_who_waits(desk: Sandbox) -> None:
    terminal = desk.terminal("attach", "desk")
    terminal.expect("detach: Ctrl-] then d")
    shown = desk.tmux("display-message", "-p", "-t", "=desk:", "#{T:status-left}#{T:status-right}")
    assert "1 ready" in shown
    assert leave(terminal) == 0


def test_without_a_terminal(desk: Sandbox) -> None:
    done = desk.run("attach", "desk")
    assert (done.returncode, done.stdout) == (2, "")
    assert "attach needs a terminal" in done.stderr
    assert "hermux peek desk" in done.stderr
