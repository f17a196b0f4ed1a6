"""What is said when tmux is missing, too old, or something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import NotReady
from orchestrator.terminal.binary import find_tmux


def fake(folder: Path, answer: str) -> dict[str, str]:
    """Return an environment whose `tmux` is a script that answers so."""
    program = folder / "tmux"
    program.write_text(f"#!/bin/sh\n{answer}\n")
    program.chmod(0o700)
    return {"PATH": str(folder)}


def test_the_real_one(environment: dict[str, str]) -> None:
    found = find_tmux(environment)
    assert found.path.is_absolute() and found.version


@pytest.mark.parametrize("version", ["3.2", "3.3a", "3.7", "next-3.8", "master", "10.0"])
def test_new_enough(folder: Path, version: str) -> None:
    assert find_tmux(fake(folder, f"echo tmux {version}")).version == version


@pytest.mark.parametrize(
    "answer, said",
    [
        ("echo tmux 3.1c", "too old"),
        ("echo tmux 2.9a", "too old"),
        ("echo screen 4", "is no tmux"),
        ("echo missing library >&2; exit 127", "missing library"),
    ],
)
def test_not_good_enough(folder: Path, answer: str, said: str) -> None:
    with pytest.raises(NotReady, match=said):
        find_tmux(fake(folder, answer))


def test_missing(folder: Path) -> None:
    with pytest.raises(NotReady, match="not installed") as raised:
        find_tmux({"PATH": str(folder)})
    assert "install tmux" in raised.value.hint or "install -y tmux" in raised.value.hint
