"""Observe: everything that the supervisor reads, turned into observations."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.fleet.observation import (
    DesiredSeen,
    Glanced,
    Gone,
    InboxSeen,
    Observation,
    PaneSeen,
    Said,
    SettingUp,
    Wanted,
)
from orchestrator.fleet.worker import Glance, Head, Outcome, OutcomeKind, Phase, PromptKind, Worker
from orchestrator.hermes.feed import LIMIT, Feed, rotate
from orchestrator.hermes.launch import read_exit, setup_runs
from orchestrator.hermes.prompt import read_prompt
from orchestrator.store import inbox
from orchestrator.store.desired import load_desired
from orchestrator.store.paths import FleetPaths
from orchestrator.terminal.pane import PaneRow, View

log = logging.getLogger("hermux")
LAST_WORDS = 3


class Sight:
    """Reads files and panes; remembers only what tells it that nothing has changed."""

    def __init__(self, paths: FleetPaths) -> None:
        self._paths = paths
        self._desired_seen = (0, 0)
        self._feeds: dict[str, Feed] = {}
        self.panes: dict[str, PaneRow] = {}

    def files(self, fleet: Mapping[str, Worker]) -> list[Observation]:
        """Return what changed in `desired.json`, the inboxes and the event feeds."""
        seen: list[Observation] = self._desired()
        for name, worker in fleet.items():
            try:
                seen += [*self._queue(name, worker), *self._events(name, worker)]
                seen += self._setup(name, worker)
            except Exception:  # one worker's fault is one line in the log, never the end of the loop
                log.exception("%s: its files cannot be read", name)
        return seen

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

    def _queue(self, name: str, worker: Worker) -> list[Observation]:
        paths = self._paths.worker(name)
        try:
            files = os.listdir(paths.inbox_new)  # noqa: PTH208
            names = tuple(sorted(n for n in files if n.endswith(".json") and n[0] != "."))
        except OSError:
            names = ()
        if names == tuple(f"{head.id}.json" for head in worker.queue):
            return []
        return [InboxSeen(name, tuple(Head(m.id, m.kind) for m in inbox.list_new(paths)))]

    def _setup(self, name: str, worker: Worker) -> list[Observation]:
        """Return whether the setup command runs, where there is one and that has changed."""
        if not worker.spec.setup or worker.phase is not Phase.STARTING or worker.life is None:
            return []
        running = setup_runs(self._paths.worker(name).attempt(worker.attempt))
        return [] if running is worker.setting_up else [SettingUp(name, worker.attempt, running)]

    def _events(self, name: str, worker: Worker) -> list[Observation]:
        feed = self._feeds.get(name)
        if feed is None:
            feed = self._feeds[name] = Feed.at(self._paths.worker(name).events, worker.talk.offset)
        try:
            events = feed.read()
            if events:
                rotate(feed.path, LIMIT)
        except OSError as error:
            log.warning("%s: the event feed cannot be read: %s", name, error)
            return []
        return [Said(name, tuple(events))] if events else []

    def unread(self, worker: Worker) -> bool:
        """Whether the worker has reported something that was not read yet."""
        feed = self._feeds.get(worker.name)
        return feed is not None and feed.behind()

    def forget(self, name: str) -> None:
        """Drop what is remembered of a worker that is no more."""
        feed = self._feeds.pop(name, None)
        if feed is not None:
            feed.close()

    def rows(self, rows: list[PaneRow], fleet: Mapping[str, Worker]) -> list[Observation]:
        """Take in the periodic read of all panes."""
        self.panes = {row.pane_id: row for row in rows}
        return [
            PaneSeen(name, worker.attempt, row.bells, row.activity, row.in_mode)
            for name, worker in fleet.items()
            if worker.life is not None and (row := self.panes.get(worker.life.pane)) is not None
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
                first_run=prompt.first_run,
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
