"""The fleet's private tmux server: started, asked and ended. For what happens once; see `control`.

Hermetic: own socket, own configuration, scrubbed environment. No option, file or session of the
user's matters, and none is touched: a server that carries no mark of ours is refused.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import TerminalError
from orchestrator.terminal import command
from orchestrator.terminal.binary import find_tmux
from orchestrator.terminal.config import COLUMNS, FLEET_OPTION, ROOT_OPTION, ROWS, TILE_FLAG
from orchestrator.terminal.environment import attach_env, server_env
from orchestrator.terminal.pane import KEEP_ALIVE, Liveness, Pane
from orchestrator.terminal.process import Process, load, load_text, save

if TYPE_CHECKING:
    from orchestrator.terminal.call import Call, DeadlineServer

_SLEEP_FOR_EVER = ("sleep", "999999999")
_WHOSE = f"#{{pid}} #{{{FLEET_OPTION}}} #{{{ROOT_OPTION}}}"
_NO_SERVER = ("no server running on", "No such file or directory", "Connection refused")


def socket_name(fleet: str) -> str:
    """Return the name for `tmux -L`: "hermux" for the default fleet, "hermux-<fleet>" for others."""
    return "hermux" if fleet == "default" else f"hermux-{fleet}"


class Server:
    """One tmux server by its socket name. Making the object starts and asks nothing.

    `env` (default: this process's) decides where the socket lies (TMUX_TMPDIR, as for tmux itself)
    and what a server started here inherits. Beside `config` lies `tmux.json`, which holds the
    server's pid, start time and socket: while that server lives, its socket is used, so callers
    with another TMUX_TMPDIR find it. `socket` overrides both.
    """

    def __init__(
        self,
        socket_name: str,
        config: Path,
        *,
        env: Mapping[str, str] | None = None,
        socket: Path | None = None,
    ) -> None:
        self.socket_name = socket_name
        self.config = config.absolute()
        self._caller = dict(os.environ if env is None else env)
        self._record = self.config.with_name("tmux.json")
        self._process: Process | None = None
        self._socket = socket or self._recorded_socket()

    @property
    def socket_path(self) -> Path:
        """Where the socket lies, by tmux' own rule; it need not exist."""
        return self._socket or self.socket_folder / self.socket_name

    @property
    def socket_folder(self) -> Path:
        """Where the sockets of this caller's `tmux -L` lie; it need not exist."""
        folder = Path(self._caller.get("TMUX_TMPDIR") or "/tmp")
        folder = folder if folder.is_dir() else Path("/tmp")
        return folder.resolve() / f"tmux-{os.getuid()}"

    @property
    def caller(self) -> Mapping[str, str]:
        """The environment of whoever uses this object."""
        return self._caller

    @property
    def pid(self) -> int:
        """The server's pid as last seen by `ensure` or `state`, also of an earlier supervisor; 0 = never."""
        known = self._known()
        return known.pid if known else 0

    def died(self) -> bool:
        """Whether the server that was last seen is confirmed dead; asks the kernel, not tmux."""
        known = self._known()
        return known is not None and not known.alive()

    def client_argv(self, *words: str) -> list[str]:
        """Return the argv of a tmux client of this server; wide characters work in every locale."""
        where = ["-S", str(self._socket)] if self._socket else ["-L", self.socket_name]
        return [str(find_tmux(self._caller).path), "-u", *where, *words]

    def client_env(self) -> dict[str, str]:
        """Return the environment that every call of ours runs in."""
        return server_env(self._caller)

    def ensure(self, *, timeout: float = 10.0) -> int:
        """Return the pid of the running server, started when it was not; the keep-alive session exists.

        A server that is just going down is waited for. Raises TerminalError when there is none after
        `timeout` seconds, or when the server on our socket was not started by hermux; NotReady
        without tmux.
        """
        deadline = time.monotonic() + timeout
        while (state := self.state()) is not Liveness.ALIVE or not self._keep_alive():
            problem = self._start() if state is Liveness.DEAD else "it does not answer"
            if time.monotonic() > deadline:
                raise TerminalError(f"no tmux server on {self.socket_path}: {problem}")
            time.sleep(0.02 if problem else 0)
        return self.pid

    def state(self, *, timeout: float = 2.0) -> Liveness:
        """Ask the server; `DEAD` only when nobody listens and its last known process is gone.

        A server whose socket was deleted by a cleaner of temporary folders is told to make it again.
        Raises TerminalError only when the server that answers was not started by hermux.
        """
        try:
            answer = self._call("display-message", "-p", _WHOSE, timeout=timeout)
        except TerminalError:
            return Liveness.UNKNOWN
        pid, _, mark = (answer.stdout or [""])[0].partition(" ")
        fleet, _, root = mark.partition(" ")
        if pid.isdigit() and not fleet:
            raise self._foreign()
        if pid.isdigit() and root != str(self.config.parent):
            raise self._of_another(root)
        if pid.isdigit():
            self._remember(int(pid))
            return Liveness.ALIVE
        if not any(sign in line for line in answer.stderr for sign in _NO_SERVER):
            return Liveness.UNKNOWN
        return Liveness.UNKNOWN if self._call_back() else Liveness.DEAD

    def recall(self) -> bool:
        """Have a live server whose socket was deleted make it again; return whether that was so."""
        return not self.socket_path.exists() and self._call_back()

    def _call_back(self) -> bool:
        """Tell the server that was last seen to make its socket again (tmux does on SIGUSR1); False if it is dead."""
        known = self._known()
        if known is None or not known.alive():
            return False
        with suppress(OSError):  # tmux makes the socket and not its folder
            self.socket_path.parent.mkdir(mode=0o700, exist_ok=True)
        return known.signal(signal.SIGUSR1)

    def reload(self) -> None:
        """Have the running server read its configuration again, after `write_config` changed it."""
        self.run("source-file", "--", str(self.config).replace("#", "##"))

    def run(self, *words: str, timeout: float = 5.0) -> list[str]:
        """Run one tmux command, whose words arrive as they are, and return the lines it prints.

        Raises TerminalError with tmux' own words when it refuses, or on a timeout.
        """
        answer = self._call(*words, timeout=timeout)
        if answer.returncode:
            raise TerminalError(f"tmux {words[0]}: {' '.join(answer.stderr) or 'refused'}")
        return answer.stdout

    def new_session(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        columns: int = COLUMNS,
        rows: int = ROWS,
        options: Mapping[str, str] | None = None,
    ) -> Pane:
        """Make a detached session that runs `argv` and return its pane.

        `options` are set on its window (`@name` for one's own). Raises TerminalError when the name
        is taken or `cwd` is no directory.
        """
        made = self._all(command.new_session(name, argv, cwd=cwd, columns=columns, rows=rows))
        pane_id, pid, *size = made[0].split()
        grown = size != [str(columns), str(rows)]
        self._all(command.settle(pane_id, columns=columns, rows=rows, resize=grown))
        self._all(["set-option", "-w", "-t", pane_id, key, value] for key, value in (options or {}).items())
        return Pane(pane_id, int(pid))

    def capture(self, target: str, lines: int, *, history: bool = False, ansi: bool = False) -> str:
        """Return the last `lines` rows of a pane id's or session's screen, blank rows at its end left out.

        `history` also counts what scrolled off. Raises TerminalError when there is no such pane.
        """
        start = -lines if history else None
        rows = self.run(*command.capture(target, start=start, ansi=ansi))
        while rows and not rows[-1].strip():
            rows.pop()
        return "\n".join(rows[-lines:]) if lines > 0 else ""

    def attach_argv(self, session: str, *, read_only: bool = False) -> list[str]:
        """Return the argv that attaches a person to exactly this session; run it with `attach_env()`.

        One who only reads does not size the worker: see `watch_argv`.
        """
        if read_only:
            return self.watch_argv(session, read_only=True)
        return self.client_argv("attach-session", "-t", command.session_target(session))

    def watch_argv(self, session: str, *, read_only: bool, tile: bool = False) -> list[str]:
        """Return the argv of a client that shows a part of the screen where its terminal is smaller.

        tmux 3.3a obeys `ignore-size` only while some client without it is attached anywhere, so the
        window's size is fixed first; a hook frees it when the last client leaves (`config.BACK_TO_SIZE`).
        """
        there = command.session_target(session)
        flags = ["ignore-size", *(["read-only"] if read_only else []), *([TILE_FLAG] if tile else [])]
        fixed = ["set-option", "-w", "-t", there, "window-size", "manual", ";"]
        return self.client_argv(*fixed, "attach-session", "-f", ",".join(flags), "-t", there)

    def attach_env(self) -> dict[str, str]:
        """Return the environment for a person's client: not nested, with a TERM that is known here."""
        return attach_env(self._caller)

    def reap(self) -> None:
        """Make the server collect dead children: tmux 3.3a on Debian loses one SIGCHLD in four."""
        known = self._known()
        if known:
            known.signal(signal.SIGCHLD)

    def kill_server(self, timeout: float = 5.0) -> None:
        """End the server with all its sessions and return when its process is gone.

        A server that is not gone after half of `timeout` is killed. Raises TerminalError when it
        even then stays, was not started by hermux, or could not be asked and is not known by pid.
        """
        state = self.state(timeout=timeout / 2)
        known = self._known()
        if state is Liveness.UNKNOWN and known is None:
            raise TerminalError(f"the tmux server on {self.socket_path} can't be asked")
        if state is Liveness.ALIVE:
            self._call("kill-server", timeout=timeout / 2)
        if known and not known.wait_gone(timeout / 2):
            known.signal(signal.SIGKILL)
            if not known.wait_gone(timeout / 2):
                raise TerminalError(f"the tmux server (pid {known.pid}) does not end")
        self._record.unlink(missing_ok=True)
        self.socket_path.unlink(missing_ok=True)
        self._process = None

    @cached_property
    def _libtmux(self) -> DeadlineServer:
        from orchestrator.terminal.call import DeadlineServer  # imports libtmux: 0.2 s

        return DeadlineServer(self.client_argv("-f", str(self.config)), env=self.client_env())

    def _call(self, *words: str, timeout: float) -> Call:
        return self._libtmux.cmd(*words, timeout=timeout)

    def _all(self, commands: Iterable[command.Words]) -> list[str]:
        """Run the commands in turn and return what the last one printed."""
        printed: list[str] = []
        for words in commands:
            printed = self.run(*words)
        return printed

    def _start(self) -> str:
        """Start the server with its keep-alive session; return "" or what tmux said against it.

        Right after a `kill-server` tmux may refuse, or give a server that ends at once.
        """
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        made = ("new-session", "-d", "-P", "-F", "#{pid}", "-s", KEEP_ALIVE, *size, "--", *_SLEEP_FOR_EVER)
        try:
            answer = self._call(*made, timeout=5.0)
        except TerminalError as error:
            return str(error)
        if answer.returncode or not answer.stdout:
            return " ".join(answer.stderr) or "the server ended at once"
        self._remember(int(answer.stdout[0]))
        return ""

    def _keep_alive(self) -> bool:
        """Return whether the keep-alive session exists, made again if somebody killed it."""
        there = self._call("has-session", "-t", command.session_target(KEEP_ALIVE), timeout=2.0)
        return not there.returncode or not self._start()

    def _of_another(self, root: str) -> TerminalError:
        return TerminalError(
            f"the tmux server on {self.socket_path} belongs to the fleet in {root}",
            hint="choose another fleet name (-F NAME or HERMUX_FLEET), or another TMUX_TMPDIR",
        )

    def _foreign(self) -> TerminalError:
        return TerminalError(
            f"the tmux server on {self.socket_path} was not started by hermux",
            hint="end it, or choose another fleet name with --fleet",
        )

    def _known(self) -> Process | None:
        self._process = self._process or load(self._record)
        return self._process

    def _recorded_socket(self) -> Path | None:
        known = self._known()
        text = load_text(self._record, "socket")
        return Path(text) if text and known and known.alive() else None

    def _remember(self, pid: int) -> None:
        seen = Process.of(pid)
        if seen is None or seen == self._known():
            return
        self._process = seen
        save(self._record, seen, socket=str(self.socket_path))
