"""The files of one worker that tell news: what waits in its inbox, its event feed, its setup command."""

from __future__ import annotations

import logging
import os
import time

from orchestrator.fleet.observation import InboxSeen, Observation, Said, SettingUp
from orchestrator.fleet.worker import Head, Phase, Worker
from orchestrator.hermes.feed import LIMIT, Feed, rotate
from orchestrator.hermes.launch import setup_runs
from orchestrator.store import inbox
from orchestrator.store.paths import WorkerPaths

log = logging.getLogger("hermux")
SETTLED = 2.0
"""Seconds after which the time of a directory tells a further change from the last: file systems' clocks tick."""


class Folder:
    """Remembers what was read, so that a look at a worker without news is three `stat` calls."""

    def __init__(self, paths: WorkerPaths, offset: int) -> None:
        """`offset` is where the feed was read to."""
        self._paths = paths
        self._new = str(paths.inbox_new)
        self._offset = offset
        self._feed: Feed | None = None
        self._listed: tuple[int, tuple[Head, ...]] = (-1, ())

    def changed(self) -> bool:
        """Whether there may be news."""
        stamp = self._stamp()
        return self._feed is None or stamp < 0 or stamp != self._listed[0] or self._feed.behind()

    def read(self, worker: Worker) -> list[Observation]:
        """Return the news since the last call."""
        return [*self._queue(worker), *self._events(worker)]

    def setup(self, worker: Worker) -> list[Observation]:
        """Return whether the setup command runs, where there is one and that has changed."""
        if not worker.spec.setup or worker.phase is not Phase.STARTING or worker.life is None:
            return []
        running = setup_runs(self._paths.attempt(worker.attempt))
        return [] if running is worker.setting_up else [SettingUp(worker.name, worker.attempt, running)]

    def unread(self) -> bool:
        """Whether the worker has reported something that was not read yet."""
        return self._feed is not None and self._feed.behind()

    def close(self) -> None:
        """Close the feed."""
        if self._feed is not None:
            self._feed.close()

    def _queue(self, worker: Worker) -> list[Observation]:
        stamp = self._stamp()
        if stamp >= 0 and self._listed == (stamp, worker.queue):
            return []
        self._listed = -1, ()  # what cannot be read now is read again
        try:
            names = tuple(sorted(n for n in self._names() if n.endswith(".json") and n[0] != "."))
            if names != tuple(f"{head.id}.json" for head in worker.queue):
                waiting = inbox.list_new(self._paths)
                return [InboxSeen(worker.name, tuple(Head(m.id, m.kind) for m in waiting))]
        except OSError as error:
            log.warning("%s: the inbox cannot be read: %s", worker.name, error)
            return []
        self._listed = stamp, worker.queue
        return []

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._new)  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _stamp(self) -> int:
        """Return the time of the inbox, nanoseconds; -1 = none, or too new to be relied on."""
        try:
            changed = os.stat(self._new).st_mtime_ns  # noqa: PTH116
        except OSError:
            return 0
        return changed if time.time() - changed / 1e9 > SETTLED else -1

    def _events(self, worker: Worker) -> list[Observation]:
        try:
            if self._feed is None:
                self._feed = Feed.at(self._paths.events, self._offset)
            events = self._feed.read()
            if events:
                rotate(self._feed.path, LIMIT)
        except OSError as error:
            log.warning("%s: the event feed cannot be read: %s", worker.name, error)
            return []
        return [Said(worker.name, tuple(events))] if events else []
