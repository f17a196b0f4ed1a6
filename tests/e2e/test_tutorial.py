"""The commands of docs/tutorial.md run as printed, in a fresh home, in the order of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.looking import attach_and_leave
from tests.e2e.sandbox import Sandbox, sandbox

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]


@pytest.fixture(scope="module")
def box(hermes: Path) -> Iterator[Sandbox]:
    """A home as the page takes it: its fleet, and the usual places."""
    with sandbox(hermes, fleet="tutorial") as made:
        usual = made.home / ".local" / "state"
        usual.parent.mkdir()
        (made.home / "state").rename(usual)
        made.env["XDG_STATE_HOME"] = str(usual)
        (made.home / "state").symlink_to(usual)
        yield made


@pytest.mark.timeout(900)
def test_commands(box: Sandbox) -> None:
    """One test, since each line builds on those before it."""
    cwd, said = box.home, dict[str, str]()
    for command in COMMANDS:
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            assert (name, value) == ("HERMUX_FLEET", box.fleet)
            continue
        if "attach" in shlex.split(command):
            attach_and_leave(command, box, cwd)
            continue
        done = subprocess.run(
            ["/bin/sh", "-ec", f"{command}\necho >&2; pwd >&2"],
            env=box.env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        cwd = Path(done.stderr.splitlines()[-1])
        said[command] = done.stdout
        print(f"$ {command}\n{done.stdout}{done.stderr}")
    assert said["hermux diff coder-1"].count("return a + b") == 1
    assert said["git status --short"] == ""
    (edit,) = (command for command in said if "sed -i" in command)
    assert said[edit] == "The minus was wrong; it is a plus now.\n"
    assert "coder-1#1" in said["hermux inbox"]
    assert "Which database?" not in said["hermux transcript coder-1"]
    assert "The minus was wrong" in said["hermux transcript coder-1"]
    assert "coder-1" in said["hermux worktree ls"]
