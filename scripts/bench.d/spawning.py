"""Eight workers at once from nothing, beside eight bare Hermes that were configured beforehand."""

from __future__ import annotations

import shlex
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import yaml
from home import MODEL, Home, fresh_home, rehearsal, until
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


def measure(*, quick: bool) -> Row:
    """Alternate the two, and who begins, at least three rounds each."""
    ours: list[float] = []
    bare: list[float] = []
    with rehearsal() as url:
        for turn in range(1 if quick else 4):
            contestants = [(ours, _hermux), (bare, _bare)]
            for values, run in contestants if turn % 2 == 0 else contestants[::-1]:
                values.append(run(url))
                print(f"  spawn: {run.__name__[1:]} {values[-1]:.2f} s", flush=True)
    return Row(
        "spawn",
        f"{COUNT} workers spawned at once from nothing, until all are ready",
        Series(f"hermux spawn {COUNT}, to its end", "s", tuple(ours)),
        [Series(f"{COUNT} bare, configured hermes in tmux, to the last prompt line", "s", tuple(bare))],
        limit=LIMIT,
        notes=["hermux' time holds the command, supervisor, tmux server, profiles and the plugin."],
    )


def spawn(home: Home, url: str, count: int = COUNT, *, role: str = ROLE) -> None:
    """Spawn workers of one role and wait until they are ready."""
    home.hermux("spawn", str(count), "--quiet", "--role", role, "--endpoint", url, "--model", MODEL)


def _hermux(url: str) -> float:
    with fresh_home() as home:
        began = time.perf_counter()
        spawn(home, url)
        return time.perf_counter() - began


def _bare(url: str) -> float:
    with fresh_home() as home:
        commands = [_configured(home, url, f"bare-{n + 1}") for n in range(COUNT)]
        names = [f"bare-{n + 1}" for n in range(COUNT)]
        began = time.perf_counter()
        for name, command in zip(names, commands, strict=True):
            _tmux(
                home, "new-session", "-d", "-s", name, "-x", "120", "-y", "40", "-c", str(home.path), command
            )
        return until(lambda: _ready(home, names), timeout=LATEST, every=POLL, what="bare prompts") - began


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
