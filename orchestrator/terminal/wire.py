"""A tmux client in control mode as a child process: command lines in, answers and notifications out.

It sits in the keep-alive session with `no-output,ignore-size`, so it neither receives what the
panes print nor shrinks windows, and dies with its parent: an orphan with unread data wedges
tmux 3.3a's server.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import NoReturn

from orchestrator.errors import TerminalError
from orchestrator.terminal.pane import KEEP_ALIVE
from orchestrator.terminal.protocol import Block, Parser

ATTACH = ("-C", "attach-session", "-f", "no-output,ignore-size", "-t", f"={KEEP_ALIVE}:")
_DIE_WITH_PARENT = (
    "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,int(sys.argv[1]));os.execv(sys.argv[2],sys.argv[2:])"
)
_KEPT_NOTICES = 256


class Wire:
    """One client, from its start to its end. Every wait has a deadline; failures are TerminalErrors.

    When the other side has gone, `lost` says so and every call raises; the descriptor stays open
    until `close`, so that a selector can be told.
    """

    def __init__(self, argv: list[str], *, env: Mapping[str, str]) -> None:
        """Start `argv` (a tmux command with `ATTACH`)."""
        self._client = subprocess.Popen(
            [*die_with_parent(env), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self._client.stdin and self._client.stdout
        self._in, self._out = self._client.stdin, self._client.stdout
        os.set_blocking(self._in.fileno(), False)
        os.set_blocking(self._out.fileno(), False)
        self.lost = ""
        self._parser = Parser()
        self._answers: deque[Block] = deque()
        self._notices: deque[str] = deque(maxlen=_KEPT_NOTICES)
        self._abandoned = 0

    @property
    def pid(self) -> int:
        """The client's pid (what starts it execs it)."""
        return self._client.pid

    def fileno(self) -> int:
        """Return the descriptor that is readable when something came, or when the other side went."""
        return self._out.fileno()

    def notices(self) -> list[str]:
        """Return the notifications since the last call, the newest 256, after reading without waiting."""
        self._read()
        self._skip_abandoned()
        notices = list(self._notices)
        self._notices.clear()
        return notices

    def ask(self, lines: list[str], *, timeout: float, more: int = 0) -> list[Block]:
        """Send command lines, one command each, and return their answers in order, and `more` of the last.

        Answers carry numbers that nobody knows beforehand but come in the order of the commands,
        so an answer that comes after its deadline is counted off and skipped.
        """
        if any(not line or "\n" in line for line in lines):
            raise TerminalError("a control client takes one command a line")  # an empty line detaches it
        deadline = time.monotonic() + timeout
        self._write("".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape"), deadline)
        count = len(lines) + more
        while not self._complete(count):
            if not _ready(self.fileno(), select.POLLIN, deadline):
                self._abandoned += count
                raise TerminalError(f"tmux did not answer within {timeout:g} s")
            self._read()
        return [self._answers.popleft() for _ in range(count)]

    def close(self) -> None:
        """Detach and collect the client; it is killed when it does not end by itself in 0.5 s."""
        self.lost = self.lost or "the control client is closed"
        self._in.close()
        self._out.close()
        try:
            self._client.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            self._client.kill()
            self._client.wait()

    def _complete(self, count: int) -> bool:
        self._skip_abandoned()
        return not self._abandoned and len(self._answers) >= count

    def _skip_abandoned(self) -> None:
        while self._abandoned and self._answers:
            self._answers.popleft()
            self._abandoned -= 1

    def _write(self, data: bytes, deadline: float) -> None:
        self._refuse_lost()
        while data:
            try:
                data = data[os.write(self._in.fileno(), data) :]
            except BlockingIOError:
                if not _ready(self._in.fileno(), select.POLLOUT, deadline):
                    self._lose("tmux takes no more commands")
            except OSError:
                self._lose("the tmux server is gone")

    def _read(self) -> None:
        """Take what is there without waiting."""
        self._refuse_lost()
        while True:
            try:
                data = os.read(self.fileno(), 1 << 18)
            except BlockingIOError:
                return
            if not data:
                self._lose("the tmux server is gone")
            for item in self._parser.feed(data):
                if isinstance(item, str):
                    self._notices.append(item)
                elif item.ours:
                    self._answers.append(item)

    def _refuse_lost(self) -> None:
        if self.lost:
            raise TerminalError(self.lost)

    def _lose(self, why: str) -> NoReturn:
        self.lost = why
        raise TerminalError(why)


def _ready(descriptor: int, event: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def die_with_parent(env: Mapping[str, str], number: signal.Signals = signal.SIGKILL) -> list[str]:
    """Return the argv prefix that has Linux send a program `number` when this process dies, however it dies.

    The signal is tied to the thread that starts the program. Nothing on other systems.
    """
    if sys.platform != "linux":
        return []
    setpriv = shutil.which("setpriv", path=env.get("PATH"))
    if setpriv:
        return [setpriv, "--pdeathsig", number.name.removeprefix("SIG"), "--"]
    return [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(int(number))]
