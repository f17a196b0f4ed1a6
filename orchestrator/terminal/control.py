"""One control-mode client for what happens every second: a command costs 0.1 ms instead of 2 to 4."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.errors import TerminalError
from orchestrator.terminal import command
from orchestrator.terminal.config import COLUMNS, ROWS, STATUS_OPTION, WAITING_OPTION
from orchestrator.terminal.pane import KEEP_ALIVE, PANE_FORMAT, Pane, PaneRow, View, parse_row
from orchestrator.terminal.process import Process, load, save
from orchestrator.terminal.server import Server
from orchestrator.terminal.wire import ATTACH, Wire

_FACTS = "#{cursor_x} #{cursor_y} #{?pane_in_mode,1,0} #{session_activity}"


def end_stale(pid_file: Path, *, timeout: float = 2.0) -> bool:
    """End the control client that a killed supervisor left; return whether there was one.

    Only the very process (pid and start time) that the file names is killed.
    """
    stale = load(pid_file)
    ended = stale is not None and stale.signal(signal.SIGKILL)
    if stale and ended:
        stale.wait_gone(timeout)
    pid_file.unlink(missing_ok=True)
    return ended


class Control:
    """A synchronous conversation with the server, for one thread.

    Start it from a thread that lives as long as the client shall: Linux' parent-death signal is
    tied to the thread. Every method raises TerminalError when tmux refuses (`%error`), does not
    answer in time, or has gone. After the last, `alive` is false and only `close` and a new `start`
    help; a command in flight then may or may not have been executed.
    """

    def __init__(self, server: Server, *, pid_file: Path | None = None) -> None:
        """With `pid_file`, the client's pid and start time are kept there for `end_stale`."""
        self._server = server
        self._pid_file = pid_file
        self._client: Wire | None = None
        self._rows: dict[str, PaneRow | None] = {}

    def start(self, *, timeout: float = 5.0) -> None:
        """Attach to the running server (see `Server.ensure`) and return when it answers."""
        self.close()
        if self._pid_file:
            end_stale(self._pid_file)
        self._client = Wire(self._server.client_argv(*ATTACH), env=self._server.client_env())
        process = Process.of(self._client.pid)
        if self._pid_file and process:
            save(self._pid_file, process)
        try:
            self.request("display-message -p ready", timeout=timeout)
        except TerminalError:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the client has been started and was not found gone."""
        return self._client is not None and not self._client.lost

    def fileno(self) -> int:
        """Return the descriptor that is readable when `drain` has something to read, until `close`."""
        return self._wire().fileno()

    def drain(self) -> list[str]:
        """Read without waiting and return the notifications since the last call (the newest 256).

        Raises TerminalError when the server or the client is gone.
        """
        return self._wire().notices()

    def request(self, line: str, *, timeout: float = 2.0) -> list[str]:
        """Send one command line (one command; quote with `command.join`) and return the lines it prints."""
        return self._ask([line], timeout=timeout)

    def run(self, *commands: command.Words, timeout: float = 2.0) -> list[str]:
        """Send commands as words, all at once, and return what the last one prints.

        All are executed; the first refusal among them is raised.
        """
        return self._ask([command.join(words) for words in commands], timeout=timeout)

    def close(self) -> None:
        """Detach and collect the client; safe to call twice and after the server's death."""
        if self._client is None:
            return
        self._client.close()
        self._client = None
        if self._pid_file:
            self._pid_file.unlink(missing_ok=True)

    def panes(self) -> list[PaneRow]:
        """Return all panes of the server, the keep-alive session's left out (1.1 ms for 100)."""
        lines = self.run(["list-panes", "-a", "-F", PANE_FORMAT])
        self._rows = {line: self._rows.get(line) or parse_row(line) for line in lines}  # most are as before
        return [row for row in self._rows.values() if row and row.session != KEEP_ALIVE]

    def capture(self, pane_id: str, *, start: int | None = None, ansi: bool = False) -> str:
        """Return the screen, its rows joined by line ends; `start=-100` adds 100 lines of history."""
        return "\n".join(self.run(command.capture(pane_id, start=start, ansi=ansi)))

    def view(self, pane_id: str) -> View:
        """Return the screen, the cursor and whether the pane is in a mode, asked for in one write."""
        there = command.pane_target(pane_id)
        ask = ["display-message", "-p", "-t", there, _FACTS]
        lines = [command.join(ask), command.join(command.capture(pane_id))]
        facts, rows = self._each(lines, timeout=2.0)
        x, y, mode, keyed = (int(word) for word in facts[0].split())
        return View("\n".join(rows), (x, y), bool(mode), keyed)

    def keys(self, pane_id: str, *names: str) -> None:
        """Send keys by tmux' names ("Enter", "C-c", "Space"); a name that is none is typed as text.

        A pane in a mode swallows them: see `PaneRow.in_mode` and `cancel_mode`.
        """
        self.run(["send-keys", "-t", command.pane_target(pane_id), "--", *names])

    def keys_unless_typed(self, pane_id: str, keyed: int, *names: str) -> bool:
        """Send keys if nobody has pressed one in a client since the view with this `keyed`; return whether.

        tmux checks and sends in one breath. Its clock has whole seconds: `keyed` must be older than one.
        """
        there = command.pane_target(pane_id)
        send = command.join(["send-keys", "-t", there, "--", *names])
        return self._unless_typed(command.unless_typed(there, keyed, send), timeout=2.0)

    def literal(self, pane_id: str, text: str) -> None:
        """Type a short text without line ends, key by key; nothing in it is taken for a key's name."""
        self.run(["send-keys", "-l", "-t", command.pane_target(pane_id), "--", text])

    def paste(self, pane_id: str, file: Path, *, keyed: int | None = None, timeout: float = 10.0) -> bool:
        """Paste a file's bytes, as one bracketed paste where the program asked for that; return whether.

        With `keyed` only if nobody typed since, as in `keys_unless_typed`. No Enter is sent, and line ends
        stay LF. Raises TerminalError when the file is empty (tmux would keep quiet) or holds an ESC, which
        could end the bracket. Copy mode does not stop it.
        """
        content = file.read_bytes()
        if not content or b"\x1b" in content:
            raise TerminalError(f"{file} can't be pasted: it {'holds an ESC' if content else 'is empty'}")
        there = command.pane_target(pane_id)
        first, path = command.expanded(file.absolute())
        buffer = f"hermux-{there[1:]}"
        load_it = ["load-buffer", "-b", buffer, "--", path]
        paste_it = ["paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", there]
        if keyed is None:
            self.run(*first, load_it, paste_it, timeout=timeout)
            return True
        guarded = command.unless_typed(there, keyed, command.join(paste_it))
        if self._unless_typed(*first, load_it, guarded, timeout=timeout):
            return True
        self.run(["delete-buffer", "-b", buffer])
        return False

    def respawn(self, pane_id: str, argv: Sequence[str], *, cwd: Path) -> int:
        """Start `argv` in a pane that exists, whatever still ran there being hung up; return its pid."""
        return int(self.run(*command.respawn(pane_id, argv, cwd=cwd))[0])

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
        """Make a detached session as `Server.new_session` does, in a tenth of the time."""
        made = self.run(*command.new_session(name, argv, cwd=cwd, columns=columns, rows=rows))
        return self._settled(made, columns, rows, options)

    def new_window(
        self, session: str, argv: Sequence[str], *, cwd: Path, columns: int = COLUMNS, rows: int = ROWS
    ) -> Pane:
        """Add a window that runs `argv` to a session that exists, in the background."""
        return self._settled(self.run(*command.new_window(session, argv, cwd=cwd)), columns, rows, None)

    def _settled(self, made: list[str], columns: int, rows: int, options: Mapping[str, str] | None) -> Pane:
        """Note the size of a new window and, where it was born with another, give it that size."""
        pane_id, pid, *size = made[0].split()
        grown = size != [str(columns), str(rows)]
        noted = [["set-option", "-w", "-t", pane_id, key, value] for key, value in (options or {}).items()]
        self.run(*command.settle(pane_id, columns=columns, rows=rows, resize=grown), *noted)
        return Pane(pane_id, int(pid))

    def kill_pane(self, pane_id: str) -> None:
        """End this pane, and the session if it was its last; its processes only get a SIGHUP."""
        self.run(command.kill_pane(pane_id))

    def kill_session(self, session: str) -> None:
        """End exactly this session; its processes only get a SIGHUP."""
        self.run(command.kill_session(session))

    def cancel_mode(self, pane_id: str) -> None:
        """Leave copy mode and any other mode; nothing happens where there is none."""
        self.run(["copy-mode", "-q", "-t", command.pane_target(pane_id)])

    def resize(self, pane_id: str, columns: int, rows: int) -> None:
        """Give the pane's window this size, from now on its own, until a client looks at it."""
        self.run(*command.settle(pane_id, columns=columns, rows=rows, resize=True))

    def terminals(self) -> list[str]:
        """Return the terminals of the people who are attached, by their device files."""
        rows = self.run(["list-clients", "-F", "#{client_control_mode} #{client_tty}"])
        return [row.removeprefix("0 ") for row in rows if row.startswith("0 /")]

    def set_waiting(self, sessions: Sequence[str]) -> None:
        """Say which sessions wait for a person, for the key that goes from one to the next."""
        ring = [*sessions, *sessions[:1]]
        self.run(["set-option", "-g", WAITING_OPTION, f"|{'|'.join(ring)}|" if ring else ""])

    def set_status(self, text: str) -> None:
        """Show a text of one line in the status line of whoever is attached."""
        self.run(["set-option", "-g", STATUS_OPTION, text.replace("#", "##")])

    def _ask(self, lines: list[str], *, timeout: float) -> list[str]:
        return self._each(lines, timeout=timeout)[-1]

    def _unless_typed(self, *commands: command.Words, timeout: float) -> bool:
        """Send commands whose last is `command.unless_typed`; return whether that ran what it guards."""
        lines = [command.join(words) for words in commands]
        return self._each(lines, timeout=timeout, more=1)[-1] != [command.TYPED]

    def _each(self, lines: list[str], *, timeout: float, more: int = 0) -> list[list[str]]:
        """Return the answers; the last command has `more` of them beside its own."""
        answers = self._wire().ask(lines, timeout=timeout, more=more)
        for line, answer in zip([*lines, *lines[-1:] * more], answers, strict=True):
            if not answer.ok:
                raise TerminalError(f"tmux {line.split(' ')[0]}: {' '.join(answer.lines) or 'refused'}")
        return [list(answer.lines) for answer in answers]

    def _wire(self) -> Wire:
        if self._client is None:
            raise TerminalError("there is no control client")
        return self._client
