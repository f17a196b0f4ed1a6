"""The private fleet of a selftest: own home, state, Hermes root, tmux sockets and repository below one folder."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.api.fleet import Fleet
from orchestrator.api.order import Isolation, Order
from orchestrator.api.supervisor import running
from orchestrator.doctor.place import place, undisturbed
from orchestrator.errors import HermuxError, NotReady
from orchestrator.hermes.install import find_hermes
from orchestrator.store.paths import make_private
from orchestrator.terminal.process import Process

PREFIX = "hermux-selftest-"
FLEET = "selftest"
LONGEST = 48
"""Characters of TMPDIR beyond which /tmp is taken: a socket's path has at most 104."""
BOOT_LIMIT = 300.0
"""Seconds until all workers are ready the first time; eight on two busy cores took 60."""
ROLE = """\
description: A worker that faults are tried on
toolsets: [terminal]
restart: {max_restarts: 1000, period: 1.0, backoff: 0.05, backoff_cap: 0.2, healthy: 1.0}
"""
KEPT = ("PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "SSL_CERT_FILE")


@contextmanager
def room(env: Mapping[str, str], workers: int, *, keep: Callable[[], bool]) -> Iterator[tuple[Fleet, Path]]:
    """Make the fleet, with `workers` ready workers, and its folder; raises what `spawn` raises.

    At the end nothing of it runs; the folder goes too, unless `keep` says that it is to be looked at.
    """
    hermes = find_hermes(env).path
    base = env.get("TMPDIR", "")
    with place({"TMPDIR": base if base and len(base) <= LONGEST else "/tmp"}, PREFIX, keep=keep) as folder:
        fleet = Fleet.open(FLEET, env=_environment(env, folder, hermes))
        try:
            _build(fleet, folder, workers)
            yield fleet, folder
        finally:
            with undisturbed():
                end(fleet)


def _environment(env: Mapping[str, str], folder: Path, hermes: Path) -> dict[str, str]:
    """Return the whole environment of the fleet: of the caller's only what is no setting and no key."""
    dirs = {
        "HOME": "home",
        "TMPDIR": "tmp",
        "TMUX_TMPDIR": "tmux",
        "HERMES_HOME": "hermes",
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "XDG_STATE_HOME": "state",
        "XDG_CACHE_HOME": "cache",
    }
    own = {name: env[name] for name in KEPT if name in env}
    own |= {name: str(make_private(folder / sub)) for name, sub in dirs.items()}
    return own | {"SHELL": "/bin/sh", "TERM": "xterm-256color", "HERMUX_HERMES": str(hermes)}


def _build(fleet: Fleet, folder: Path, workers: int) -> None:
    role = folder / "config" / "hermux" / "roles" / "w"
    make_private(role)
    (role / "role.yaml").write_text(ROLE)
    (role / "SOUL.md").write_text("You take notes.\n")
    fleet.paths.make()
    told = {"schema": 1, "port": _free_port(), "log": str(folder / "requests.jsonl")}
    fleet.paths.rehearsal.write_text(json.dumps(told))
    repository = _repository(folder / "repo", fleet.env)
    order = Order(count=workers, roles=("w",), repo=str(repository), isolation=Isolation.WORKTREE)
    fleet.spawn_order(order, wait=False)
    fleet.wait_ready(fleet.names(), timeout=BOOT_LIMIT)


def _repository(folder: Path, env: Mapping[str, str]) -> Path:
    """Make a git repository with one commit: each worker gets a worktree of it."""
    folder.mkdir()
    who = ["-c", "user.name=selftest", "-c", "user.email=selftest@localhost"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "begin"]):
        try:
            subprocess.run(["git", *words], cwd=folder, env=dict(env), check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotReady(f"git {words[-1]} does not work: {error}", hint="hermux doctor") from error
    return folder


def end(fleet: Fleet) -> None:
    """Stop the workers, the supervisor and the tmux server, as far as there are any."""
    with suppress(HermuxError, OSError):
        fleet.stop(fleet.names(), grace=0)
    holder = running(fleet.paths)
    supervisor = Process.of(int(holder["pid"])) if holder and holder.get("pid") else None
    if supervisor is not None and supervisor.signal(signal.SIGTERM) and not supervisor.wait_gone(5):
        supervisor.signal(signal.SIGKILL)
        supervisor.wait_gone(2)
    with suppress(HermuxError, OSError):
        fleet.server().kill_server()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
