"""The tmux program: where it is, and whether it is new enough."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from orchestrator.errors import NotReady

MINIMUM = (3, 2)
"""`attach -f no-output,ignore-size` and `run-shell -C` came with tmux 3.2."""


@dataclass(frozen=True, slots=True)
class TmuxBinary:
    """An installed tmux; `version` is what it calls itself: "3.3a", "next-3.6", "master"."""

    path: Path
    version: str


def find_tmux(env: Mapping[str, str]) -> TmuxBinary:
    """Return the tmux on PATH; raise NotReady, with what to type, when there is none or it is too old."""
    found = shutil.which("tmux", path=env.get("PATH"))
    if not found:
        raise NotReady("tmux is not installed", hint=f"install it: {_install()}")
    binary = TmuxBinary(Path(found).absolute(), _version(found))
    number = re.search(r"(\d+)\.(\d+)", binary.version)
    if number and (int(number[1]), int(number[2])) < MINIMUM:
        raise NotReady(
            f"tmux {binary.version} is too old; 3.2 or newer is needed", hint=f"update it: {_install()}"
        )
    return binary


@lru_cache(maxsize=8)
def _version(path: str) -> str:
    try:
        asked = subprocess.run(
            [path, "-V"], capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotReady(f"{path} does not run: {error}", hint=f"reinstall it: {_install()}") from error
    name, _, version = asked.stdout.strip().partition(" ")
    if asked.returncode or name != "tmux":
        raise NotReady(f"{path} is no tmux: {(asked.stderr or asked.stdout).strip()[:200]}")
    return version


def _install() -> str:
    return "brew install tmux" if sys.platform == "darwin" else "sudo apt-get install -y tmux"
