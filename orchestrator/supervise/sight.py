"""Observe: everything that the supervisor reads, turned into observations."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.fleet.observation import (
    DesiredSeen,
    Glanced,
    Gone,
    Observation,
    PaneSeen,
    Wanted,
)
from orchestrator.fleet.worker import Glance, Outcome, OutcomeKind, Phase, PromptKind, Worker
from orchestrator.hermes.launch import read_exit
from orchestrator.hermes.prompt import read_prompt, session_lost
from orchestrator.store.desired import load_desired
from orchestrator.store.paths import FleetPaths
from orchestrator.supervise.folder import Folder
from orchestrator.supervise.turn import Turn
from orchestrator.terminal.pane import PaneRow, View

log = logging.getLogger("hermux")
LAST_WORDS = 3


class Sight:
    """Reads files and panes; remembers only what tells it that nothing has changed."""

    def __init__(self, paths: FleetPaths) -> None:
        self._paths = paths
        self._desired_seen = (0, 0)
        self._folders: dict[str, Folder] = {}
        self.panes: dict[str, PaneRow] = {}

    def files(self, fleet: Mapping[str, Worker], turn: Turn) -> list[Observation]:
        """Return what changed in `desired.json`, and in the inboxes and event feeds of whom the turn concerns.

        Who is only looked at because it is everyone's turn costs three `stat` calls without news.
        """
        seen: list[Observation] = self._desired()
        for name in fleet if turn.everyone else turn.workers & fleet.keys():
            worker = fleet[name]
            try:
                folder = self._folder(worker)
                if name in turn.workers or folder.changed():
                    seen += folder.read(worker)
                seen += folder.setup(worker)
            except Exception:  # one worker's fault is one line in the log, never the end of the loop
                log.exception("%s: its files cannot be read", name)
        return seen

    def _folder(self, worker: Worker) -> Folder:
        folder = self._folders.get(worker.name)
        if folder is None:
            folder = Folder(self._paths.worker(worker.name), worker.talk.offset)
            self._folders[worker.name] = folder
        return folder

    def _desired(self) -> list[Observation]:
        try:
            status = self._paths.desired.stat()
        except OSError:
            return []
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._desired_seen:
            return []
        try:
            desired = load_desired(self._paths)
        except Exception as error:  # whatever a person's editor left there, the fleet goes on
            log.error("desired.json is left as it was understood before: %s", error)
            self._desired_seen = stamp
            return []
        self._desired_seen = stamp
        return [
            DesiredSeen(
                {
                    name: Wanted(w.spec, w.want, w.generation, w.grace, w.renew, w.roll, w.drain)
                    for name, w in desired.workers.items()
                }
            )
        ]

    def unread(self, worker: Worker) -> bool:
        """Whether the worker has reported something that was not read yet."""
        folder = self._folders.get(worker.name)
        return folder is not None and folder.unread()

    def forget(self, name: str) -> None:
        """Drop what is remembered of a worker that is no more."""
        folder = self._folders.pop(name, None)
        if folder is not None:
            folder.close()

    def rows(self, rows: list[PaneRow], fleet: Mapping[str, Worker]) -> list[Observation]:
        """Take in the periodic read of all panes, and return those that show something new."""
        self.panes = {row.pane_id: row for row in rows}
        return [
            PaneSeen(name, worker.attempt, row.bells, row.activity, row.in_mode)
            for name, worker in fleet.items()
            if worker.life is not None
            and (row := self.panes.get(worker.life.pane)) is not None
            and not _known(worker, row)
        ]

    def glance(self, worker: Worker, view: View) -> Glanced:
        """Return the reading of a screen."""
        prompt = read_prompt(view.screen, profile=worker.spec.hermes_profile, cursor=view.cursor)
        return Glanced(
            worker.name,
            worker.attempt,
            Glance(
                kind=PromptKind(prompt.kind),
                at=time.time(),
                typed=prompt.typed,
                own=prompt.own,
                dialog=prompt.dialog,
                choices=prompt.choices,
                background=prompt.background,
                body=prompt.body,
                first_run=prompt.first_run,
                lost=bool(worker.resume)
                and worker.phase is Phase.STARTING
                and session_lost(view.screen, worker.resume),
                in_mode=view.in_mode,
                left=prompt.left,
                keyed=view.keyed,
            ),
        )

    def death(self, worker: Worker, screen: str, row: PaneRow | None) -> Gone:
        """Return how an attempt ended: what the launch script wrote, else what tmux knows, else unknown.

        An empty status of tmux 3.3a is never read as exit 0 (it loses SIGCHLD).
        """
        folder = self._paths.worker(worker.name).attempt(worker.attempt)
        words = " / ".join([line.strip() for line in screen.splitlines() if line.strip()][-LAST_WORDS:])
        return Gone(worker.name, worker.attempt, _outcome(folder, row), words[:400])


def _known(worker: Worker, row: PaneRow) -> bool:
    same_mode = worker.glance is None or worker.glance.in_mode == row.in_mode
    return same_mode and (worker.bells, worker.painted) == (row.bells, row.activity)


def _outcome(folder: Path, row: PaneRow | None) -> Outcome:
    end = read_exit(folder)
    if end is not None:
        if end.why:
            return Outcome(OutcomeKind.FAILED_TO_START, end.code or 0, end.why)
        if end.signal is not None:
            return Outcome(OutcomeKind.SIGNALLED, end.signal)
        return Outcome(OutcomeKind.EXITED, end.code or 0)
    if row is not None and row.dead_signal:
        return Outcome(OutcomeKind.SIGNALLED, row.dead_signal, "the launch script was killed")
    return Outcome(
        OutcomeKind.UNKNOWN, why="no exit.json: the launch script was killed, or the machine went down"
    )
