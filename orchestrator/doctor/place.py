"""A folder of the doctor's own for whatever it starts, and the rehearsal model as a child. Nothing of it stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from orchestrator.errors import NotReady
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.terminal.process import Process, load, save

PREFIX = "hermux-doctor-"
OWNER = "doctor.json"
REHEARSAL_LIMIT = 30.0
"""Seconds for the rehearsal model to say its address; it takes 0.3."""


@contextmanager
def place(
    env: Mapping[str, str], prefix: str = PREFIX, *, keep: Callable[[], bool] = lambda: False
) -> Iterator[Path]:
    """Make an empty folder (0700) below TMPDIR, and remove it with the processes that still name it.

    Folders of the same prefix whose makers were killed are removed as well. Where `keep` says so at the end,
    the processes are ended and the folder stays, as nobody's.
    """
    base = Path(env.get("TMPDIR") or tempfile.gettempdir())
    _sweep(base, prefix)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base)).resolve()
    except OSError as error:
        raise NotReady(
            f"no folder can be made in {base}: {error.strerror}", hint="export TMPDIR=/var/tmp"
        ) from error
    me = Process.of(os.getpid())
    if me is not None:
        save(folder / OWNER, me)
    try:
        yield folder
    finally:
        with undisturbed():
            if keep():
                end_all(folder)
                (folder / OWNER).unlink(missing_ok=True)
            else:
                remove(folder)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no Ctrl-C, TERM or HUP into what cleans up."""
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before[number] = signal.signal(number, signal.SIG_IGN)
    except ValueError:
        pass  # not the main thread, which alone gets them
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove(folder: Path) -> None:
    """End what runs with this folder in its environment, and delete it."""
    end_all(folder)
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        end_all(folder)
        time.sleep(0.05)


def end_all(folder: Path, *, grace: float = 3.0) -> None:
    """End every process whose home or worker's folder lies in `folder`: TERM, and KILL after `grace` seconds."""
    found = _inside(folder)
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    for process in psutil.wait_procs(found, timeout=grace)[1]:
        with suppress(psutil.Error):
            process.kill()


def _inside(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.uids().real != os.getuid():
                continue
            env = process.environ()
            homes = (env.get("HERMES_HOME", ""), env.get("HERMUX_DIR", ""), env.get("XDG_STATE_HOME", ""))
            if any(home.startswith(f"{folder}/") for home in homes):
                found.append(process)
    return found


def _sweep(base: Path, prefix: str) -> None:
    for folder in base.glob(f"{prefix}*"):
        with suppress(OSError):
            owner = load(folder / OWNER)
            if folder.stat().st_uid == os.getuid() and owner is not None and not owner.alive():
                remove(folder)


@contextmanager
def rehearsal(folder: Path) -> Iterator[Endpoint]:
    """Run a rehearsal model of the doctor's own, on a free port of this machine; it belongs to `folder`."""
    command = [sys.executable, "-m", "orchestrator.rehearsal", "--port", "0"]
    home = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(home), os.environ.get("PYTHONPATH", "")]))
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, "HERMUX_DIR": str(folder / "rehearsal")},
        start_new_session=True,
        text=True,
    )
    try:
        yield _address(child)
    finally:
        with undisturbed():
            child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout:
                child.stdout.close()


def _address(child: subprocess.Popen[str]) -> Endpoint:
    assert child.stdout is not None
    line = child.stdout.readline()
    url = line.split()[-1] if line.strip() else ""
    if not url.startswith("http"):
        raise NotReady("the rehearsal model does not start", hint="to see why: hermux mock-endpoint")
    return Endpoint(url, "hermux-rehearsal", 131072, kind=EndpointKind.REHEARSAL, source="rehearsal model")
