"""Eight workers at once from nothing, beside eight bare Hermes that were configured beforehand."""

from __future__ import annotations

import resource
import shlex
import statistics
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from home import MODEL, Home, cpu_seconds, fresh_home, rehearsal, until
from row import Row, Series

from orchestrator.fleet.prompt import PromptKind
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.hermes.config import worker_config
from orchestrator.hermes.launch import hermes_arguments
from orchestrator.hermes.prompt import read_prompt
from orchestrator.store.roles import load_role

COUNT = 8
ROLE = "coder"
LIMIT = 1.2
POLL = 0.1
"""Seconds between two looks at the screens; hermux looks as often."""
LATEST = 300.0


@dataclass(frozen=True, slots=True)
class Taken:
    """What one round took: seconds by the clock, and CPU seconds."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, CPU {self.cpu:.2f} s"


def _cpu(rounds: list[Taken]) -> float:
    return statistics.median(each.cpu for each in rounds)


def measure(*, quick: bool) -> Row:
    """Alternate the two, and who begins, at least three rounds each."""
    ours: list[Taken] = []
    plain: list[Taken] = []
    with rehearsal() as url:
        for turn in range(1 if quick else 4):
            contestants = [(ours, _hermux), (plain, bare)]
            for values, run in contestants if turn % 2 == 0 else contestants[::-1]:
                values.append(run(url))
                print(f"  spawn: {run.__name__.lstrip('_')} {values[-1]}", flush=True)
    return Row(
        "spawn",
        f"{COUNT} workers spawned at once from nothing, until all are ready",
        Series(f"hermux spawn {COUNT}, to its end", "s", tuple(each.seconds for each in ours)),
        [
            Series(
                f"{COUNT} bare, configured hermes in tmux, to the last prompt line",
                "s",
                tuple(each.seconds for each in plain),
            )
        ],
        limit=LIMIT,
        notes=[
            "hermux' time holds the command, supervisor, tmux server, profiles and the plugin.",
            f"CPU until then, of everything that was started: hermux {_cpu(ours):.1f} s, bare {_cpu(plain):.1f} s, "
            f"ratio {_cpu(ours) / _cpu(plain):.2f}.",
        ],
    )


def spawn(home: Home, url: str, count: int = COUNT, *, role: str = ROLE) -> None:
    """Spawn workers of one role and wait until they are ready."""
    home.hermux("spawn", str(count), "--quiet", "--role", role, "--endpoint", url, "--model", MODEL)


def _hermux(url: str) -> Taken:
    with fresh_home() as home:
        before, began = _of_children(), time.perf_counter()
        spawn(home, url)
        took = time.perf_counter() - began
        return Taken(took, cpu_seconds(home.path) + _of_children() - before)


def _of_children() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def bare(url: str, count: int = COUNT) -> Taken:
    """Start that many Hermes that were configured beforehand, and wait for the last prompt line."""
    with fresh_home() as home:
        commands = [_configured(home, url, f"bare-{n + 1}") for n in range(count)]
        names = [f"bare-{n + 1}" for n in range(count)]
        before, began = _of_children(), time.perf_counter()
        for name, command in zip(names, commands, strict=True):
            _tmux(
                home, "new-session", "-d", "-s", name, "-x", "120", "-y", "40", "-c", str(home.path), command
            )
        took = until(lambda: _ready(home, names), timeout=LATEST, every=POLL, what="bare prompts") - began
        return Taken(took, cpu_seconds(home.path) + _of_children() - before)


def _configured(home: Home, url: str, name: str) -> str:
    """Make a Hermes profile as hermux makes it, less the plugin, and return the command that starts it."""
    role = load_role(ROLE, home.env)
    endpoint = Endpoint(base_url=url, model=MODEL, context_length=131072)
    spec = WorkerSpec(name, ROLE, str(home.path), name, endpoint, toolsets=role.toolsets)
    config = worker_config(replace(spec, max_turns=role.max_turns), key=False, approvals_timeout=86400)
    config["plugins"] = {"enabled": []}
    profile = home.path / ".hermes" / "profiles" / name
    profile.mkdir(parents=True)
    (profile / "config.yaml").write_text(yaml.safe_dump(config))
    (profile / "SOUL.md").write_text(role.soul)
    hermes = Path(home.env["HERMUX_HERMES"])
    return f"exec {shlex.join([str(hermes), *hermes_arguments(spec)])}"


def _ready(home: Home, names: list[str]) -> bool:
    """Look at the screens that were not ready yet, in one tmux call; forget those that are."""
    words: list[str] = []
    for name in names:
        words += ["display-message", "-p", f"\x01{name}", ";", "capture-pane", "-p", "-t", f"={name}:", ";"]
    for part in _tmux(home, *words[:-1]).split("\x01")[1:]:
        name, _, screen = part.partition("\n")
        if read_prompt(screen, profile=name).kind is PromptKind.READY:
            names.remove(name)
    return not names


def _tmux(home: Home, *words: str) -> str:
    argv = ["tmux", "-L", "bare", "-f", "/dev/null", "-u", *words]
    return subprocess.run(argv, env=home.env, capture_output=True, text=True, timeout=30, check=True).stdout
