"""A key's value is in one file of the worker, 0600 and gone with it, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import said, script, shell
from tests.e2e.sandbox import Sandbox, sandbox


@dataclass(frozen=True, slots=True)
class Planted:
    """A worker that works with a key which nobody else may see."""

    box: Sandbox
    model: RehearsalServer
    canary: str

    @property
    def env(self) -> Path:
        return self.box.dir / "workers" / "spy" / "env"


@pytest.fixture
def planted(hermes: Path) -> Iterator[Planted]:
    canary = f"sk-canary-{uuid4().hex}"
    with RehearsalServer() as model, sandbox(hermes) as box:
        done = box.run(
            "spawn", "--name", "spy", "--endpoint", model.url, "--key-env", "MY_KEY", env={"MY_KEY": canary}
        )
        assert done.returncode == 0, done.stderr
        assert canary not in done.stdout + done.stderr
        yield Planted(box, model, canary)


def files_with(home: Path, canary: str) -> list[Path]:
    """Return the files below a folder that hold the text, in their content or their name."""
    found = []
    for path in home.rglob("*"):
        with suppress(OSError):
            if path.is_file() and canary.encode() in path.read_bytes():
                found.append(path)
        if canary in path.name:
            found.append(path)
    return found


def processes_with(canary: str) -> list[list[str]]:
    """Return the command lines, of any process, that hold the text."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if canary in " ".join(process.cmdline()):
                found.append(process.cmdline())
    return found


def test_the_key_is_nowhere_else(planted: Planted) -> None:
    box, canary = planted.box, planted.canary
    turn = script(
        shell("env > stolen; cat /proc/self/environ >> stolen; set >> stolen"),
        said(f"the key may be {canary}?"),
        say="steal",
    )
    answer = box.out("ask", "spy", turn.replace(canary, "KEY"))
    assert answer == "the key may be KEY?"
    stolen = (box.home / "stolen").read_text()
    assert "HERMUX_WORKER=spy" in stolen
    assert canary not in stolen
    assert planted.env.stat().st_mode & 0o777 == 0o600
    assert files_with(box.home, canary) == [planted.env]
    assert not processes_with(canary)
    for args in (
        ["show-environment", "-g"],
        ["show-environment", "-t", "=spy:"],
        ["show-options", "-g"],
        ["show-options", "-s"],
        ["show-options", "-gw"],
        ["show-options", "-t", "=spy:"],
        ["list-panes", "-a", "-F", "#{pane_start_command}"],
        ["capture-pane", "-p", "-S", "-", "-t", "=spy:"],
    ):
        assert canary not in box.tmux(*args), args
    sent = {request.headers["authorization"] for request in planted.model.requests}
    assert sent == {f"{len(canary)} characters, sha256 {sha256(canary.encode()).hexdigest()[:12]}"}


def test_what_we_print_and_write_is_redacted(planted: Planted) -> None:
    """The endpoint's own error repeats the key, and so does the model's answer."""
    box, canary = planted.box, planted.canary
    leaks = script({"reasoning": f"I know {canary}", "text": f"your key is {canary}"}, say="repeat")
    box.run("send", "spy", "-", stdin=leaks)
    box.out("wait", "spy", "--timeout", "60")
    failing = script({"status": 401, "error": f"invalid key {canary}"}, say="fail")
    box.run("send", "spy", "-", stdin=failing)
    box.shows("spy", "held")
    for args in (
        ["ls"],
        ["ls", "--json"],
        ["why", "spy"],
        ["why", "spy", "--json"],
        ["logs", "spy", "--json"],
        ["events", "spy", "--json"],
        ["endpoint", "show", "--json"],
    ):
        done = box.run(*args)
        assert done.returncode == 0
        assert canary not in done.stdout + done.stderr, args
    written = {path.relative_to(box.dir) for path in files_with(box.dir, canary)}
    inbox = Path("workers/spy/inbox")
    assert {path for path in written if inbox not in path.parents} == {Path("workers/spy/env")}


def test_the_file_goes_with_the_worker(planted: Planted) -> None:
    box, canary = planted.box, planted.canary
    box.out("ask", "spy", "hello")
    box.out("stop", "spy")
    assert planted.env.exists(), "a start after a reboot needs it"
    box.out("rm", "spy")
    assert not files_with(box.home, canary)


def test_a_wrong_key_is_not_repeated(planted: Planted) -> None:
    with suppress(FileNotFoundError):
        planted.env.stat()
    done = planted.box.run("spawn", "--endpoint", "http://127.0.0.1:9", "--key-env", planted.canary)
    assert done.returncode == 2
    assert planted.canary not in done.stdout + done.stderr
    assert "not the key" in done.stderr
