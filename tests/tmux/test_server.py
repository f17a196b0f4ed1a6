"""The private server: hermetic, started once, ended for sure."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from orchestrator.errors import TerminalError
from orchestrator.terminal.config import write_config
from orchestrator.terminal.control import Control
from orchestrator.terminal.pane import KEEP_ALIVE, Liveness
from orchestrator.terminal.process import Process
from orchestrator.terminal.server import Server, socket_name
from tests.tmux.screens import until_shows
from tests.until import until

HOSTILE = """
set -g base-index 7
set -g default-command 'echo stolen'
set -g remain-on-exit off
set -g prefix C-b
set -g exit-empty on
set -g status off
set-hook -g session-created 'kill-server'
"""


def test_socket_names() -> None:
    assert [socket_name("default"), socket_name("night")] == ["hermux", "hermux-night"]


def test_the_users_configuration_and_locale_do_not_matter(folder: Path, environment: dict[str, str]) -> None:
    (folder / "home" / ".tmux.conf").write_text(HOSTILE)
    hostile = {**environment, "TMUX": "/nowhere/default,1,0", "TMUX_PANE": "%0", "LC_ALL": "C", "LANG": "C"}
    write_config(folder / "tmux.conf", fleet="default")
    server = Server("hermux", folder / "tmux.conf", env=hostile)
    server.ensure()
    control = Control(server)
    control.start()
    pane = control.new_session("coder-1", ["/bin/sh", "-c", "printf '漢字 ⚕ ❯ ok'; cat"], cwd=folder)
    assert "漢字 ⚕ ❯ ok" in until_shows(control, pane.pane_id, "ok")
    assert "漢字 ⚕ ❯ ok" in server.capture("coder-1", 5)
    assert server.run("show-options", "-gv", "base-index") == ["0"]
    assert server.run("show-options", "-gv", "prefix") == ["C-]"]
    assert server.run("show-options", "-gv", "remain-on-exit") == ["on"]
    control.close()
    server.kill_server()


def test_no_secret_of_the_caller_reaches_the_server(folder: Path, environment: dict[str, str]) -> None:
    canary = "sk-canary-0123456789"
    keys = dict.fromkeys(("OPENAI_API_KEY", "HCA_API_KEY", "AWS_SECRET", "DISPLAY", "SSH_AUTH_SOCK"), canary)
    write_config(folder / "tmux.conf", fleet="default")
    server = Server("hermux", folder / "tmux.conf", env={**environment, **keys})
    pid = server.ensure()
    server.new_session("coder-1", ["/bin/sh", "-c", "env; cat"], cwd=folder)
    until(lambda: "HOME=" in server.capture("coder-1", 100), what="env has printed")
    shown = [*server.run("show-environment", "-g"), server.capture("coder-1", 100, history=True)]
    assert canary not in "\n".join(shown)
    if Path("/proc/self/environ").exists():
        assert canary.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    attached = subprocess.run(
        server.client_argv("-C", "attach-session", "-t", "=coder-1"),
        env={**environment, **keys},
        input=b"show-environment\n",
        capture_output=True,
        timeout=10,
    )
    assert canary.encode() not in attached.stdout
    server.kill_server()


def test_ensure_finds_what_runs(fleet_server: Server, environment: dict[str, str]) -> None:
    other = Server("hermux", fleet_server.config, env=environment)
    assert other.pid == fleet_server.pid, "the record tells a new supervisor"
    assert other.ensure() == fleet_server.ensure()
    assert fleet_server.run("display-message", "-p", "#{socket_path}") == [str(fleet_server.socket_path)]


def test_four_at_once_start_one_server(folder: Path, environment: dict[str, str]) -> None:
    config = folder / "tmux.conf"
    write_config(config, fleet="default")
    pids: list[int] = []
    servers = [Server("hermux", config, env=environment) for _ in range(4)]
    threads = [threading.Thread(target=lambda s=server: pids.append(s.ensure())) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 4 and len(set(pids)) == 1
    servers[0].kill_server()


def test_a_start_right_after_a_kill_by_somebody_else(fleet_server: Server, folder: Path) -> None:
    for number in range(30):
        fleet_server.new_session(f"w-{number}", ["cat"], cwd=folder)
    for _ in range(5):
        before = fleet_server.pid
        fleet_server.run("kill-server")
        assert fleet_server.ensure() != before
        assert fleet_server.state() is Liveness.ALIVE


def test_the_keep_alive_session_comes_back(fleet_server: Server) -> None:
    pid = fleet_server.pid
    fleet_server.run("kill-session", "-t", f"={KEEP_ALIVE}")
    assert fleet_server.state() is Liveness.ALIVE
    assert fleet_server.ensure() == pid
    assert fleet_server.run("list-sessions", "-F", "#{session_name}") == [KEEP_ALIVE]


def test_a_vanished_socket_is_made_again(fleet_server: Server) -> None:
    pid = fleet_server.pid
    fleet_server.socket_path.unlink()
    assert fleet_server.ensure() == pid


def test_a_server_that_hangs_is_unknown_and_can_still_be_ended(fleet_server: Server) -> None:
    os.kill(fleet_server.pid, signal.SIGSTOP)
    assert fleet_server.state() is Liveness.UNKNOWN
    with pytest.raises(TerminalError, match="did not answer"):
        fleet_server.run("list-sessions", timeout=0.2)
    process = Process.of(fleet_server.pid)
    fleet_server.kill_server(timeout=1.0)
    assert process and not process.alive()
    assert fleet_server.state() is Liveness.DEAD


def test_a_server_of_somebody_else_is_left_alone(folder: Path, environment: dict[str, str]) -> None:
    write_config(folder / "tmux.conf", fleet="default")
    server = Server("hermux", folder / "tmux.conf", env=environment)
    foreign = [*server.client_argv("-f", "/dev/null", "new-session", "-d", "-s", "mine", "cat")]
    subprocess.run(foreign, env=environment, check=True, timeout=10)
    with pytest.raises(TerminalError, match="not started by hermux"):
        server.ensure()
    with pytest.raises(TerminalError, match="not started by hermux"):
        server.kill_server()
    sessions = server.run("list-sessions", "-F", "#{session_name}")
    server.run("kill-server")
    assert sessions == ["mine"]
    until(lambda: server.state() is Liveness.DEAD)
    server.socket_path.unlink(missing_ok=True)


def test_it_stays_without_workers_and_is_gone_after_kill_server(fleet_server: Server, folder: Path) -> None:
    fleet_server.new_session("coder-1", ["cat"], cwd=folder)
    fleet_server.run("kill-session", "-t", "=coder-1")
    assert fleet_server.state() is Liveness.ALIVE
    fleet_server.kill_server()
    assert fleet_server.state() is Liveness.DEAD
    fleet_server.kill_server()


def test_a_changed_configuration_reaches_a_running_server(fleet_server: Server, control: Control) -> None:
    assert not write_config(fleet_server.config, fleet="default")
    control.set_status("3 ready")
    assert write_config(fleet_server.config, fleet="default", prefix="C-a")
    fleet_server.reload()
    assert fleet_server.run("show-options", "-gv", "prefix") == ["C-a"]
    assert fleet_server.run("show-options", "-gv", "@hermux_status") == ["3 ready"]
    assert fleet_server.config.stat().st_mode & 0o777 == 0o600


def test_callers_with_another_socket_folder_find_it(
    fleet_server: Server, folder: Path, environment: dict[str, str]
) -> None:
    (folder / "elsewhere").mkdir()
    elsewhere = {**environment, "TMUX_TMPDIR": str(folder / "elsewhere")}
    fleet_server.new_session("coder-1", ["/bin/sh", "-c", "echo here; exec cat"], cwd=folder)
    by_record = Server("hermux", fleet_server.config, env=elsewhere)
    by_path = Server("hermux", folder / "none" / "tmux.conf", env=elsewhere, socket=fleet_server.socket_path)
    for reader in (by_record, by_path):
        until(partial(shows_here, reader), what="the reader sees the screen")
    assert by_record.ensure() == fleet_server.pid
    stranger = Server("hermux", folder / "none" / "tmux.conf", env=elsewhere)
    assert stranger.state() is Liveness.DEAD
    assert stranger.socket_path.is_relative_to(folder / "elsewhere")
    by_record.kill_server()
    assert Server("hermux", fleet_server.config, env=elsewhere).socket_path == stranger.socket_path


def shows_here(server: Server) -> bool:
    return server.capture("coder-1", 3) == "here"
