"""The systemd user unit: what systemd says of it, and the supervisor under a manager that listens."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e.sandbox import Sandbox


def test_systemd_verifies_the_unit(fleet: Sandbox) -> None:
    unit = fleet.out("service", "install", "--print", "-F", "team")
    path = fleet.home / "hermux-team.service"
    path.write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(path)],
        capture_output=True,
        text=True,
        env=fleet.env | {"XDG_RUNTIME_DIR": str(fleet.home / "tmp")},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in ("Type=notify", "KillMode=process", "Restart=always", "WatchdogSec=60", "OOMPolicy=continue"):
        assert line in unit.splitlines()
    assert f'Environment="XDG_STATE_HOME={fleet.home}/state"' in unit


def test_without_systemd_it_says_what_to_put_where(fleet: Sandbox) -> None:
    if not Path("/run/systemd/system").is_dir():
        done = fleet.run("service", "install")
        assert done.returncode == 1 and "@reboot" in done.stdout and "systemd does not run" in done.stderr
    assert not list(fleet.home.glob("config/systemd/user/*"))
    assert fleet.json("service", "status")["installed"] is False


def test_a_unit_of_somebody_else_stays(fleet: Sandbox) -> None:
    path = fleet.home / "config" / "systemd" / "user" / f"hermux-{fleet.fleet}.service"
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\n")
    done = fleet.run("service", "remove")
    assert done.returncode == 2 and "was not made by hermux" in done.stderr
    assert path.read_text() == "[Service]\n"


def test_the_supervisor_tells_its_manager_and_restores_what_is_wanted(fleet: Sandbox) -> None:
    fleet.hire("coder-1", "--role", "coder")
    pid = fleet.hermes("coder-1").pid
    before = fleet.supervisor()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        address = str(fleet.home / "notify")
        heard.bind(address)
        heard.settimeout(30)
        unit = subprocess.Popen(
            [sys.executable, "-P", "-m", "orchestrator.supervise", "--fleet", fleet.fleet, "--replace"],
            env=fleet.env | {"NOTIFY_SOCKET": address},
            cwd=fleet.home,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert [heard.recv(64), heard.recv(64)] == [b"READY=1", b"WATCHDOG=1"]
            assert fleet.supervisor() == unit.pid != before, "the one that a command started handed over"
            assert fleet.out("up", "--restore").splitlines()[1].split()[:2] == ["coder-1", "restored"]
            assert fleet.hermes("coder-1").pid == pid, "adopted, not doubled"
        finally:
            unit.terminate()
            unit.wait(20)
        assert heard.recv(64) == b"STOPPING=1"
    assert fleet.hermes("coder-1").is_running(), "workers outlive the unit"
