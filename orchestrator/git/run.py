"""git as a process: never a prompt, never a hook, never an editor, always a time limit, English messages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import NotReady

OLDEST = (2, 20)
READ_LIMIT = 60.0
"""Seconds that a question may take."""
WRITE_LIMIT = 1800.0
"""Seconds that a checkout of a large repository may take."""

_LOCAL = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
)
"""Variables that would lead git elsewhere: a command of ours may run inside a git hook."""

_ALWAYS = (
    "--no-pager",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "advice.addEmbeddedRepo=false"),
)


class GitFailed(NotReady):
    """git said no, was not there, or gave no answer in time: nothing is known then, so everything is kept."""

    def __init__(self, message: str, *, hint: str = "", said: str = "") -> None:
        super().__init__(message, hint=hint)
        self.said = said
        """The whole of git's stderr."""


@dataclass(frozen=True, slots=True)
class Git:
    """git, run in one directory: a worktree, or a git directory."""

    where: Path
    env: Mapping[str, str] = field(repr=False)

    def read(self, *args: str, data: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """Return stdout of a command that only reads: it takes no lock. Raises GitFailed."""
        return self._run(args, data, {"GIT_OPTIONAL_LOCKS": "0", **(extra or {})}, READ_LIMIT)

    def write(
        self,
        *args: str,
        data: bytes = b"",
        extra: Mapping[str, str] | None = None,
        timeout: float = WRITE_LIMIT,
    ) -> bytes:
        """Return stdout of a command that changes something. Raises GitFailed."""
        return self._run(args, data, extra or {}, timeout)

    def line(self, *args: str) -> str:
        """Return the only line that a reading command prints."""
        return self.read(*args).decode(errors="surrogateescape").removesuffix("\n")

    def ask(self, *args: str) -> bool:
        """Return the answer of a command that says yes with exit 0 and no with 1; raises GitFailed for others."""
        done = self._process(args, b"", {"GIT_OPTIONAL_LOCKS": "0"}, READ_LIMIT)
        if done.returncode not in (0, 1):
            raise _failure(args, done.stderr)
        return done.returncode == 0

    def _run(self, args: Sequence[str], data: bytes, extra: Mapping[str, str], timeout: float) -> bytes:
        done = self._process(args, data, extra, timeout)
        if done.returncode != 0:
            raise _failure(args, done.stderr)
        return done.stdout

    def _process(
        self, args: Sequence[str], data: bytes, extra: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                ["git", "-C", str(self.where), *_ALWAYS, *args],
                input=data,
                capture_output=True,
                env=environment(self.env) | dict(extra),
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {args[0]} in {self.where} gave no answer within {timeout:g} s") from None
        except FileNotFoundError as error:
            raise _absent() from error
        except (OSError, ValueError) as error:
            raise GitFailed(f"git {args[0]} in {self.where} cannot be run: {error}") from error


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that git gets: the caller's, without what would lead it elsewhere or ask."""
    kept = {name: value for name, value in env.items() if name not in _LOCAL}
    return kept | {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GCM_INTERACTIVE": "never",
    }


def check_version(env: Mapping[str, str]) -> tuple[int, int]:
    """Return git's version; raises GitFailed when there is no git, or none that is new enough."""
    text = Git(Path("/"), env).line("--version")
    found = re.search(r"(\d+)\.(\d+)", text)
    if not found:
        raise GitFailed(f"`git --version` says {text[:60]!r}", hint="install git")
    version = int(found[1]), int(found[2])
    if version < OLDEST:
        raise GitFailed(
            f"git {version[0]}.{version[1]} is too old for worktrees: {OLDEST[0]}.{OLDEST[1]} or newer is needed",
            hint="install a newer git, or use --shared",
        )
    return version


def _absent() -> GitFailed:
    return GitFailed("git is not installed, or not in PATH", hint="install git, or use --shared")


def _failure(args: Sequence[str], stderr: bytes) -> GitFailed:
    said = stderr.decode(errors="replace").strip()
    lines = [line for line in said.splitlines() if line.strip()]
    chosen = next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[0] if lines else ""
    )
    return GitFailed(f"git {args[0]}: {chosen.removeprefix('fatal: ') or 'failed without a word'}", said=said)
