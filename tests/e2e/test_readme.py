"""The README's commands run as printed, in a fresh home, in the order of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.looking import attach_and_leave
from tests.e2e.sandbox import Sandbox, sandbox

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line != "./scripts/test"]
"""`./scripts/test` runs this very test."""


@pytest.fixture(scope="module")
def box(hermes: Path) -> Iterator[Sandbox]:
    """The default fleet, since the page says `tmux -L hermux`; the socket's folder is our own."""
    with sandbox(hermes, fleet="default") as made:
        yield made


@pytest.mark.timeout(600)
def test_commands(box: Sandbox) -> None:
    """One test, since each line builds on those before it."""
    assert COMMANDS[0] == "./scripts/start 3"
    for command in COMMANDS:
        if "attach" in shlex.split(command):
            attach_and_leave(command, box, ROOT)
            continue
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=box.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        if command == COMMANDS[0]:
            next_steps(done.stdout, box)


def next_steps(output: str, box: Sandbox) -> None:
    """What `scripts/start` prints as the next three commands runs as printed."""
    commands = [line.strip() for line in output.partition("\nnext:\n")[2].splitlines() if line.strip()]
    assert len(commands) == 3, output
    for command in commands:
        if "attach" in shlex.split(command):
            attach_and_leave(command, box, ROOT)
        else:
            subprocess.run(["/bin/sh", "-c", command], env=box.env, cwd=ROOT, timeout=120, check=True)


def test_python(box: Sandbox) -> None:
    for block in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-c", block],
            env=box.env,
            cwd=box.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
