"""The fleet's tmux server and our client in it: started where they are gone, and their deaths noticed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from orchestrator.errors import TerminalError
from orchestrator.fleet.observation import Observation, ServerLost
from orchestrator.store.paths import FleetPaths
from orchestrator.terminal.config import write_config
from orchestrator.terminal.control import Control
from orchestrator.terminal.pane import Liveness
from orchestrator.terminal.server import Server, socket_name

log = logging.getLogger("hermux")


class Tmux:
    """One server, and one control client at a time."""

    def __init__(
        self,
        paths: FleetPaths,
        *,
        env: Mapping[str, str],
        watch: Callable[[int], object],
        unwatch: Callable[[int], object],
        forget: Callable[[], None],
    ) -> None:
        """`watch` and `unwatch` take the client's descriptor; `forget` drops what is known of the panes.

        Pane ids of a dead server are given out again by the next one, so they are forgotten before it starts.
        """
        self._paths = paths
        self._watch, self._unwatch, self._forget = watch, unwatch, forget
        changed = write_config(paths.tmux_conf, fleet=paths.fleet)
        self.server = Server(socket_name(paths.fleet), paths.tmux_conf, env=env)
        if changed and self.server.state() is Liveness.ALIVE:
            self.server.reload()
        self.control: Control | None = None
        """The client, if there is one now."""
        self._handle = -1
        self._died: tuple[str, float] | None = None

    def terminal(self) -> Control:
        """Return a client that works; raises TerminalError, NotReady without tmux."""
        if self.control is not None and self.control.alive:
            return self.control
        self.drop()
        self._notice()
        self.server.ensure()
        control = Control(self.server, pid_file=self._paths.root / "control.json")
        control.start()
        self.control, self._handle = control, control.fileno()
        self._watch(self._handle)
        return control

    @property
    def dead(self) -> bool:
        """Whether the server's death was noticed and not told yet: its panes cannot be asked any more."""
        return self._died is not None

    def lost(self, note: Callable[[str], None]) -> list[Observation]:
        """Return the server's death, once; `note` hears of it, too. The next server runs already."""
        self._notice()
        if self._died is None:
            return []
        (text, at), self._died = self._died, None
        log.error("%s", text)
        note(text)
        return [ServerLost(at)]

    def drain(self) -> None:
        """Read what the client has to say of itself."""
        if self.control is None:
            return
        try:
            self.control.drain()
        except TerminalError as error:
            log.warning("the control client is gone: %s", error)
            self.drop()

    def drop(self) -> None:
        """Give the client up; the next call makes another."""
        control, self.control = self.control, None
        if control is not None:
            self._unwatch(self._handle)
            control.close()

    def _notice(self) -> None:
        """Notice that the server is gone before another takes its place, and start that."""
        if self.server.died():
            self._died = f"the tmux server (pid {self.server.pid}) died, and every pane with it", time.time()
            self._forget()
            self.drop()
            self.server.ensure()
