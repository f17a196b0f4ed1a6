"""libtmux with a deadline: one tmux command a call, for what happens once.

libtmux waits for ever and in the caller's environment; a hung tmux client then holds whatever its
caller holds. Its accessors (`server.sessions`) are lenient and raise on hostile pane titles, so only
`cmd` is used. Importing libtmux takes 0.2 s: this module is imported when the first call is made.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

from libtmux import Server as LibtmuxServer
from libtmux.common import tmux_cmd

from orchestrator.errors import TerminalError
from orchestrator.terminal.command import argument


class Call(tmux_cmd):
    """libtmux's answer (`stdout`, `stderr`: lines; `returncode`) of a tmux that ended in time."""

    def __init__(self, argv: list[str], *, env: Mapping[str, str], timeout: float) -> None:
        self.cmd = argv
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=timeout,
                env=dict(env),
                cwd="/",
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired as error:
            raise TerminalError(f"tmux did not answer within {timeout:g} s") from error
        except (OSError, ValueError) as error:
            raise TerminalError(f"tmux could not be run: {error}") from error
        self.returncode = done.returncode
        self.stdout = done.stdout.removesuffix("\n").split("\n") if done.stdout else []
        self.stderr = [line for line in done.stderr.split("\n") if line]


class DeadlineServer(LibtmuxServer):
    """A libtmux server whose `cmd` runs in a given environment and ends in time."""

    def __init__(self, argv: list[str], *, env: Mapping[str, str]) -> None:
        """`argv` is tmux with the flags that name the server; `env` is all that tmux is given."""
        super().__init__(socket_name="", tmux_bin=argv[0])
        self._argv, self._env = argv, env

    def cmd(  # type: ignore[override]  # libtmux' own Server.cmd breaks its mixin's protocol, too
        self, cmd: str, *args: Any, target: str | int | None = None, timeout: float = 5.0
    ) -> Call:
        """Run one tmux command; raise TerminalError after `timeout` seconds.

        A refusal shows in `returncode` and `stderr`.
        """
        aimed = [] if target is None else ["-t", str(target)]
        words = [argument(str(word)) for word in (*aimed, *args)]
        return Call([*self._argv, cmd, *words], env=self._env, timeout=timeout)
