"""A private tmux server for each test, and the proof that nothing of it stays."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.terminal.config import write_config
from orchestrator.terminal.control import Control
from orchestrator.terminal.server import Server
from tests.until import until


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path (a socket's path holds 107 bytes); everything of a test lies there."""
    path = Path(os.path.realpath(tempfile.mkdtemp(prefix="hx-", dir="/tmp")))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """The environment of a caller: this process's, with sockets and home in the test's folder."""
    home = folder / "home"
    home.mkdir()
    return {**os.environ, "TMUX_TMPDIR": str(folder), "HOME": str(home)}


@pytest.fixture(autouse=True)
def no_leaks(folder: Path) -> Iterator[None]:
    """After each test no process of its folder, no child, no socket and no descriptor is left."""
    before = _descriptors()
    children = set(psutil.Process().children(recursive=True))
    yield
    try:
        until(lambda: not _processes_of(folder), 5.0, what=f"no process of {folder} is left")
    finally:
        for process in _processes_of(folder):
            process.kill()
    left = set(psutil.Process().children(recursive=True)) - children
    assert not left, left
    sockets = [path for path in folder.rglob("*") if path.is_socket()]
    assert not sockets, sockets
    assert _descriptors() <= before, _descriptors() - before


@pytest.fixture
def fleet_server(no_leaks: None, folder: Path, environment: dict[str, str]) -> Iterator[Server]:
    """A running server as a fleet has it (libtmux's pytest plugin owns the name `server`)."""
    config = folder / "tmux.conf"
    write_config(config, fleet="default")
    made = Server("hermux", config, env=environment)
    made.ensure()
    yield made
    made.kill_server()


@pytest.fixture
def control(fleet_server: Server, folder: Path) -> Iterator[Control]:
    """A control client of that server."""
    made = Control(fleet_server, pid_file=folder / "control.json")
    made.start()
    yield made
    made.close()


def _descriptors() -> set[str]:
    """Return what this process has open, as "number target"."""
    root = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    found = {path: str(path.readlink()) for path in root.iterdir() if path.is_symlink()}
    return {f"{path.name} {target}" for path, target in found.items() if not target.endswith("/fd")}


def _processes_of(folder: Path) -> list[psutil.Process]:
    """Return the live processes that were started with this folder for their sockets."""
    return [process for process in psutil.process_iter() if _lives_in(process, folder)]


def _lives_in(process: psutil.Process, folder: Path) -> bool:
    try:
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return not zombie and process.environ().get("TMUX_TMPDIR") == str(folder)
    except (psutil.Error, OSError):
        return False
