"""The rehearsal model as a session of the fleet's own server: there while a worker needs it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping

from orchestrator.errors import HermuxError
from orchestrator.fleet.spec import EndpointKind
from orchestrator.fleet.worker import Worker
from orchestrator.store.files import read_json
from orchestrator.store.paths import FleetPaths
from orchestrator.terminal.control import Control
from orchestrator.terminal.pane import PaneRow

log = logging.getLogger("hermux")
SESSION = "rehearsal"
START_AGAIN = 1.0


class Rehearsal:
    """Keeps one pane running `python -m orchestrator.rehearsal` on the port that the fleet's file names."""

    def __init__(self, paths: FleetPaths) -> None:
        self._paths = paths
        self._started = 0.0

    def keep(self, fleet: Mapping[str, Worker], control: Control, rows: list[PaneRow], now: float) -> None:
        """Start it where it is needed and not alive, at most once a second; end it where it is not needed."""
        needed = any(
            w.spec.endpoint.kind is EndpointKind.REHEARSAL and (w.life is not None or w.wanted)
            for w in fleet.values()
        )
        pane = next((row for row in rows if row.session == SESSION), None)
        try:
            if not needed and pane is not None:
                control.kill_session(SESSION)
            elif needed and (pane is None or pane.dead) and now - self._started >= START_AGAIN:
                self._started = now
                self._start(control, pane)
        except HermuxError as error:
            log.warning("the rehearsal model: %s", error)

    def _start(self, control: Control, pane: PaneRow | None) -> None:
        found = read_json(self._paths.rehearsal) or {}
        port = int(found.get("port", 0))
        if not port:
            log.error("%s names no port", self._paths.rehearsal)
            return
        argv = [sys.executable, "-m", "orchestrator.rehearsal", "--port", str(port)]
        if context := int(found.get("context", 0)):
            argv += ["--context", str(context)]
        if where := str(found.get("log", "")):
            argv += ["--log", where]
        if pane is None:
            control.new_session(SESSION, argv, cwd=self._paths.root)
        else:
            control.respawn(pane.pane_id, argv, cwd=self._paths.root)
        log.info("rehearsal model started on port %d", port)
