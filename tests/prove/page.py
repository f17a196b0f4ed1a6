"""`docs/proof.md`: the result of a long run, with what it was run on."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path

import psutil

from orchestrator.version import __version__
from tests.prove.messages import Proof

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
TEXT = """\
# Proof: no message lost, none doubled

`scripts/prove` sends numbered messages to workers, each a real Hermes with the rehearsal model, and
kills with SIGKILL meanwhile: Hermes, the launch script above it, or the supervisor, at a random moment
0 to 400 ms after an Enter, or 0 to 300 ms into a hook of Hermes ({hooks}), before or after hermux's own
plugin had that hook. A supervisor that was killed is started again as every command starts one; workers
come back by themselves. At the end the newest request of each worker at the model has to hold every
message that was sent to it, in the order of sending, in exactly one user message; no request may hold
one twice; and Hermes may have asked the model with it as the new message in one turn only.

Run by `scripts/prove --messages {messages} --workers {workers} --seed {seed}` on {date}:
{machine}.

| | |
|---|---|
{rows}

Verdict: {verdict}.
"""


def page(found: Proof, hermes: Path) -> str:
    """Return the page; no path of the machine stands in it."""
    from tests.prove.plan import HOOKS

    return TEXT.format(
        hooks=", ".join(f"`{hook}`" for hook in HOOKS),
        messages=found.messages,
        workers=found.workers,
        seed=found.seed,
        date=time.strftime("%Y-%m-%d"),
        machine=machine(hermes),
        rows="\n".join(f"| {name} | {value} |" for name, value in found.rows()),
        verdict="every message in exactly one user message" if found.good else "FAILED",
    )


def machine(hermes: Path) -> str:
    """Return a line on what a proof ran on."""
    memory = psutil.virtual_memory().total / 2**30
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return (
        f"{os.cpu_count()} CPUs, {memory:.0f} GiB, {system}, Python {platform.python_version()}, "
        f"{_first_line('tmux', '-V')}, {_first_line(str(hermes), '--version')}, hermux {__version__}"
    )


def _first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout.strip().splitlines() or ["unknown"])[0]
