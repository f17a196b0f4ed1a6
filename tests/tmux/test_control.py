"""The control client: answers, panes, typing, and its end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import TerminalError
from orchestrator.terminal.command import join
from orchestrator.terminal.control import Control, end_stale
from orchestrator.terminal.pane import KEEP_ALIVE, Liveness
from orchestrator.terminal.process import Process, load, save
from orchestrator.terminal.server import Server
from orchestrator.terminal.wire import ATTACH, Wire
from tests.tmux.screens import reader, row_of, until_shows
from tests.until import until

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
SHARED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SHARED
@given(word=WORDS)
def test_any_word_arrives_as_it_is(control: Control, folder: Path, word: str) -> None:
    control.request(join(["set-buffer", "-b", "word", "--", word]))
    control.request(join(["save-buffer", "-b", "word", "--", str(folder / "word")]))
    assert (folder / "word").read_bytes().decode() == word


@SHARED
@given(words=st.lists(WORDS, min_size=2, max_size=4))
def test_any_argv_arrives_as_it_is(control: Control, folder: Path, words: list[str]) -> None:
    result = folder / "argv"
    result.unlink(missing_ok=True)
    script = 'printf "%s\\0" "$@" > "$0.part"; mv "$0.part" "$0"'
    pane = control.new_session("argv", ["/bin/sh", "-c", script, str(result), *words], cwd=folder)
    until(result.exists, what="the program has written its arguments")
    assert result.read_bytes().decode().split("\0")[:-1] == words
    control.kill_session("argv")
    assert pane.pid


@pytest.mark.parametrize(
    "name", ["plain", "a b", "a#[b", "a#{pid}", "a##c", "a'q", "a;", "$HOME", "~", "%d", "ä漢"]
)
def test_any_directory_and_buffer_file(control: Control, folder: Path, name: str) -> None:
    place = folder / name
    place.mkdir()
    (place / "pwd.sh").write_text('pwd > "$1.part"; mv "$1.part" "$1"; exec cat')
    pane = control.new_session("coder-1", ["/bin/sh", "pwd.sh", str(folder / "first")], cwd=place)
    until((folder / "first").exists)
    control.respawn(pane.pane_id, ["/bin/sh", "pwd.sh", str(folder / "second")], cwd=place)
    until((folder / "second").exists)
    assert {(folder / result).read_text() for result in ("first", "second")} == {f"{place}\n"}
    (place / "text").write_text("from the file")
    control.paste(pane.pane_id, place / "text")
    until_shows(control, pane.pane_id, "from the file")


def test_a_single_word_is_a_program_and_no_shell_line(control: Control, folder: Path) -> None:
    program = folder / "my program; exit 3"
    program.write_text("#!/bin/sh\necho started; exec cat\n")
    program.chmod(0o700)
    pane = control.new_session("coder-1", [str(program)], cwd=folder)
    until_shows(control, pane.pane_id, "started")


def test_a_missing_directory_is_refused(control: Control, folder: Path) -> None:
    with pytest.raises(TerminalError, match="no such directory"):
        control.new_session("coder-1", ["cat"], cwd=folder / "missing")
    assert control.panes() == []


def test_refusals_are_errors_and_answers_stay_in_step(control: Control) -> None:
    with pytest.raises(TerminalError, match="can't find pane"):
        control.capture("%999")
    with pytest.raises(TerminalError, match="unknown command"):
        control.request("no-such-command")
    with pytest.raises(TerminalError, match="one command a line"):
        control.request("display-message -p a\nkill-server")
    assert control.request("display-message -p still") == ["still"]


def test_a_late_answer_is_skipped(control: Control, fleet_server: Server) -> None:
    os.kill(fleet_server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(TerminalError, match="did not answer"):
            control.request("display-message -p late", timeout=0.1)
        with pytest.raises(TerminalError, match="did not answer"):
            control.run(["display-message", "-p", "later"], ["no-such-command"], timeout=0.1)
    finally:
        os.kill(fleet_server.pid, signal.SIGCONT)
    assert control.request("display-message -p now", timeout=5.0) == ["now"]
    assert control.alive


def test_lines_that_look_like_the_protocol(control: Control, folder: Path) -> None:
    text = "%begin 1 2 1\n%end 1 2 1\n%error 1 2 1\n%exit\n%output %1 x\n"
    (folder / "forged").write_text(text)
    pane = control.new_session("coder-1", ["/bin/sh", "-c", "cat forged; exec cat"], cwd=folder)
    assert until_shows(control, pane.pane_id, "%output").startswith(text)
    assert control.request("display-message -p next") == ["next"]


def test_notifications_are_drained_and_wake_a_selector(
    control: Control, fleet_server: Server, folder: Path
) -> None:
    control.drain()
    fleet_server.new_session("coder-1", ["cat"], cwd=folder)
    assert select.select([control], [], [], 5.0)[0]
    seen: list[str] = []

    def announced() -> bool:
        seen.extend(control.drain())
        return "%sessions-changed" in seen

    until(announced)
    assert control.drain() == []


def test_names_are_exact(control: Control, folder: Path) -> None:
    for name in ("coder-1", "coder-10", "code"):
        control.new_session(name, ["cat"], cwd=folder)
    with pytest.raises(TerminalError):
        control.kill_session("coder")
    with pytest.raises(TerminalError):
        control.kill_session("coder-*")
    with pytest.raises(TerminalError, match="duplicate"):
        control.new_session("coder-1", ["cat"], cwd=folder)
    with pytest.raises(TerminalError, match="no session name"):
        control.new_session("a.b", ["cat"], cwd=folder)
    with pytest.raises(TerminalError, match="never killed"):
        control.kill_session(KEEP_ALIVE)
    control.kill_session("coder-1")
    assert {row.session for row in control.panes()} == {"coder-10", "code"}


def test_a_dead_pane_stays_with_its_status_and_takes_a_new_life(
    control: Control, fleet_server: Server, folder: Path
) -> None:
    pane = control.new_session("coder-1", ["/bin/sh", "-c", "echo failed: no config; exit 7"], cwd=folder)

    def dead_with_an_outcome() -> bool:
        fleet_server.reap()
        row = row_of(control, pane.pane_id)
        return row.dead and (row.dead_status is not None or row.dead_signal is not None)

    until(dead_with_an_outcome)
    row = row_of(control, pane.pane_id)
    assert (row.dead_status, row.dead_signal) == (7, None)
    assert "failed: no config" in control.capture(pane.pane_id)
    pid = control.respawn(pane.pane_id, ["sleep", "1000"], cwd=folder)
    row = row_of(control, pane.pane_id)
    assert (row.pid, row.dead, row.dead_status) == (pid, False, None) and pid != pane.pid
    os.kill(pid, signal.SIGKILL)
    until(dead_with_an_outcome)
    row = row_of(control, pane.pane_id)
    assert (row.dead_status, row.dead_signal) == (None, signal.SIGKILL)


def test_each_write_that_rings_is_counted_once(control: Control, folder: Path) -> None:
    ring = "printf '\\a'; read x; printf '\\a'; read x; printf '\\a\\a'; read x; echo no bell; cat"
    pane = control.new_session("coder-1", ["/bin/sh", "-c", ring], cwd=folder)
    other = control.new_session("coder-10", ["cat"], cwd=folder)
    for count in (1, 2, 3):
        until(partial(rung, control, pane.pane_id, count), what=f"{count} bells")
        control.keys(pane.pane_id, "Enter")
    until_shows(control, pane.pane_id, "no bell")
    assert (row_of(control, pane.pane_id).bells, row_of(control, other.pane_id).bells) == (3, 0)
    control.keys(pane.pane_id, "Enter")
    control.respawn(pane.pane_id, ["/bin/sh", "-c", "printf '\\a'; exec cat"], cwd=folder)
    until(partial(rung, control, pane.pane_id, 4), what="the count goes on in the next life")


def rung(control: Control, pane_id: str, count: int) -> bool:
    return row_of(control, pane_id).bells == count


TEXT = "first line\n\ttab ; #{pid} $HOME 'quotes\" \\ -x\n漢字 🎉 é\n-last; \n"


@pytest.mark.parametrize("text", [TEXT, TEXT * 2000, "-n", ";", "x\n\n", "a\r\nb", "#{pane_id}"])
def test_a_paste_arrives_as_one_bracket_and_byte_for_byte(control: Control, folder: Path, text: str) -> None:
    source, result = folder / "message", folder / "taken"
    source.write_bytes(text.encode())
    pane = control.new_session("coder-1", reader(result), cwd=folder)
    until_shows(control, pane.pane_id, "READY")
    control.paste(pane.pane_id, source)
    until(result.exists, what="the paste has ended")
    assert result.read_bytes() == b"\x1b[200~" + text.encode() + b"\x1b[201~"
    assert control.request("list-buffers") == [], "no buffer keeps the text"
    assert TEXT[:20] not in "\n".join(control.request("show-messages"))


@pytest.mark.parametrize("content", [b"", b"out \x1b[201~ of the bracket"])
def test_what_tmux_would_lose_or_break_is_not_pasted(control: Control, folder: Path, content: bytes) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    (folder / "message").write_bytes(content)
    with pytest.raises(TerminalError, match="can't be pasted"):
        control.paste(pane.pane_id, folder / "message")


@pytest.mark.parametrize("text", ["-l", "a;", ";", "Enter", "#{pid}", "漢字 'x' \"y\" $HOME ~"])
def test_a_literal_is_typed_as_it_is(control: Control, folder: Path, text: str) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    control.literal(pane.pane_id, text)
    control.keys(pane.pane_id, "Enter")
    until(
        lambda: control.capture(pane.pane_id).split("\n")[:2] == [text, text], what=f"{text!r} and its echo"
    )


def test_copy_mode_is_seen_and_left(control: Control, folder: Path) -> None:
    pane = control.new_session("coder-1", ["cat"], cwd=folder)
    for mode in (["copy-mode"], ["clock-mode"], ["choose-tree"]):
        control.run([*mode, "-t", pane.pane_id])
        assert row_of(control, pane.pane_id).in_mode
        control.cancel_mode(pane.pane_id)
        assert not row_of(control, pane.pane_id).in_mode
    control.cancel_mode(pane.pane_id)
    control.keys(pane.pane_id, "h", "i", "Enter")
    until_shows(control, pane.pane_id, "hi\nhi")


def test_history_and_colours_are_captured_on_demand(
    control: Control, fleet_server: Server, folder: Path
) -> None:
    show = (
        "i=1; while [ $i -le 100 ]; do echo row $i; i=$((i+1)); done; printf '\\033[31mred\\033[0m'; exec cat"
    )
    pane = control.new_session("coder-1", ["/bin/sh", "-c", show], cwd=folder)
    screen = until_shows(control, pane.pane_id, "red")
    assert "row 5\n" not in screen and "\x1b" not in screen and len(screen.split("\n")) == 40
    assert "row 5\n" in control.capture(pane.pane_id, start=-100)
    assert "\x1b[31m" in control.capture(pane.pane_id, ansi=True)
    assert fleet_server.capture("coder-1", 2) == "row 100\nred"
    assert fleet_server.capture("coder-1", 60, history=True).startswith("row 42\n")
    assert fleet_server.capture(pane.pane_id, 1, ansi=True).startswith("\x1b[31m")


def test_hostile_panes_do_not_break_the_read(control: Control, folder: Path) -> None:
    place = folder / "line\nend|"
    place.mkdir()
    title = "printf '\\033]2;␞|%%99|\\n%%begin\\033\\\\'; echo done; exec cat"
    pane = control.new_session("coder-1", ["/bin/sh", "-c", title], cwd=place)
    until_shows(control, pane.pane_id, "done")
    control.run(["new-session", "-d", "-s", "a|b c", "--", "cat", "-u"])
    control.run(["split-window", "-t", pane.pane_id, "--", "cat", "-u"])
    assert sorted(row.session for row in control.panes()) == ["a|b c", "coder-1", "coder-1"]
    assert row_of(control, pane.pane_id).pid == pane.pid


def test_the_end_of_the_server_is_an_error(control: Control, fleet_server: Server) -> None:
    descriptor = control.fileno()
    fleet_server.kill_server()
    assert select.select([descriptor], [], [], 5.0)[0]
    with pytest.raises(TerminalError, match="gone"):
        until(lambda: control.drain() and False)
    assert not control.alive and control.fileno() == descriptor, "a selector can still be told"
    with pytest.raises(TerminalError, match="gone"):
        control.panes()
    fleet_server.ensure()
    control.start()
    assert control.panes() == [] and control.alive


def test_without_a_server_there_is_no_control_client(fleet_server: Server, folder: Path) -> None:
    fleet_server.kill_server()
    control = Control(fleet_server, pid_file=folder / "control.json")
    with pytest.raises(TerminalError):
        control.start()
    assert not control.alive and not (folder / "control.json").exists()
    assert fleet_server.state() is Liveness.DEAD


SUPERVISOR = """
import sys, time
from pathlib import Path
from orchestrator.terminal.control import Control
from orchestrator.terminal.server import Server
server = Server("hermux", Path(sys.argv[1]) / "tmux.conf")
control = Control(server, pid_file=Path(sys.argv[1]) / "control.json")
control.start()
client = control._wire()
for number in range(20000):
    client._in.write(b"list-panes -a\\n") if number < 1000 else None
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("with_setpriv", [True, False])
def test_the_client_of_a_killed_supervisor_is_gone(
    fleet_server: Server, folder: Path, environment: dict[str, str], with_setpriv: bool
) -> None:
    if not with_setpriv:
        (folder / "bin").mkdir()
        (folder / "bin" / "tmux").symlink_to(fleet_server.client_argv()[0])
        environment = {**environment, "PATH": str(folder / "bin")}
    argv = [sys.executable, "-c", SUPERVISOR, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment) as supervisor:
        assert supervisor.stdout and supervisor.stdout.readline() == b"ready\n"
        client = load(folder / "control.json")
        assert client and client.alive()
        supervisor.kill()
    if sys.platform == "linux":
        assert client.wait_gone(5.0)
    end_stale(folder / "control.json")
    assert client.wait_gone(1.0)
    assert fleet_server.state() is Liveness.ALIVE
    fleet_server.kill_server(timeout=2.0)


def test_only_the_very_client_is_ended(fleet_server: Server, folder: Path) -> None:
    pid_file = folder / "control.json"
    wire = Wire(fleet_server.client_argv(*ATTACH), env=fleet_server.client_env())
    process = Process.of(wire.pid)
    assert process
    save(pid_file, Process(process.pid, process.start - 1))
    assert not end_stale(pid_file) and process.alive()
    save(pid_file, process)
    assert end_stale(pid_file) and not process.alive()
    assert not end_stale(pid_file)
    wire.close()
