"""Sends a worker its messages and kills as planned. One thread a worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from orchestrator.api.supervisor import running
from orchestrator.api.worker import Worker
from orchestrator.errors import SupervisorDown
from orchestrator.hermes.launch import read_pid
from tests.prove.plan import Kill, Step, Target, last_text
from tests.prove.watch import Watch

MESSAGE_LIMIT = 180.0
"""Seconds within which a message must have its receipt, kills and boots of a loaded machine included."""
AIM_LIMIT = 120.0
"""Seconds within which the moment of a kill must come."""


@dataclass(slots=True)
class Tally:
    """What happened; shared by all drivers."""

    sent: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Message id → worker and number."""
    kills: Counter[str] = field(default_factory=Counter)
    missed: int = 0
    """Kills whose moment did not come: the message was through before."""
    stuck: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when nothing more is to be sent, killed or started."""


class Driver(threading.Thread):
    """One worker's series, then a last message that nobody disturbs."""

    def __init__(self, worker: Worker, steps: list[Step], last: int, watch: Watch, tally: Tally) -> None:
        super().__init__(name=worker.name, daemon=True)
        self._worker, self._steps, self._last = worker, steps, last
        self._watch, self._tally = watch, tally

    def run(self) -> None:
        """Send everything; a message without a receipt is noted, and the series goes on."""
        waiting: list[str] = []
        for step in self._steps:
            if self._tally.over.is_set():
                return
            before = self._watch.enters(self._worker.name)
            for kill in step.kills[:1]:
                self._ask_for_stall(kill)
            waiting.append(self._send(step.number, step.text))
            for kill in step.kills:
                self._kill(kill, before, waiting[-1])
                before = self._watch.enters(self._worker.name)
            if not step.hurried:
                self._settle(waiting)
        self._settle(waiting)
        self._settle([self._send(self._last, last_text(self._last))])
        self._revive()
        with suppress(Exception):
            self._worker.wait(timeout=MESSAGE_LIMIT)

    def _send(self, number: int, text: str) -> str:
        ident = self._worker.send(text, sender="prove")
        self._tally.sent[ident] = (self._worker.name, number)
        return ident

    def _settle(self, waiting: list[str]) -> None:
        """Wait until these messages lie in `done` or `failed`; empties the list."""
        deadline = time.monotonic() + MESSAGE_LIMIT
        while waiting and not self._tally.over.is_set():
            ident = waiting[0]
            if self._through(ident):
                waiting.pop(0)
            elif time.monotonic() > deadline:
                self._tally.stuck.append(ident)
                waiting.pop(0)
            else:
                self._revive()
                time.sleep(0.05)

    def _through(self, ident: str) -> bool:
        paths = self._worker.paths
        return any((folder / f"{ident}.json").exists() for folder in (paths.inbox_done, paths.inbox_failed))

    def _ask_for_stall(self, kill: Kill) -> None:
        if kill.hook:
            (self._worker.paths.dir / "stall" / "inside").unlink(missing_ok=True)
            (self._worker.paths.dir / "stall" / f"{kill.side}.{kill.hook}").touch()

    def _kill(self, kill: Kill, before: int, ident: str) -> None:
        there = self._in_hook(kill) if kill.hook else self._at_enter(before, ident)
        if there:
            time.sleep(kill.delay)
            there = self._strike(kill.target)
        if there:
            self._tally.kills[kill.kind] += 1
        else:
            self._tally.missed += 1

    def _at_enter(self, before: int, ident: str) -> bool:
        deadline = time.monotonic() + AIM_LIMIT
        while time.monotonic() < deadline and not self._tally.over.is_set():
            if self._watch.entered(self._worker.name, before, 0.5):
                return True
            if self._through(ident):
                return False
            self._revive()
        return False

    def _in_hook(self, kill: Kill) -> bool:
        folder = self._worker.paths.dir / "stall"
        deadline = time.monotonic() + AIM_LIMIT
        while time.monotonic() < deadline and not self._tally.over.is_set():
            if (folder / "inside").exists():
                return True
            time.sleep(0.01)
            self._revive()
        (folder / f"{kill.side}.{kill.hook}").unlink(missing_ok=True)
        return False

    def _strike(self, target: Target) -> bool:
        entry = self._watch.worker(self._worker.name)
        if target is Target.SUPERVISOR:
            pid = (running(self._worker.fleet.paths) or {}).get("pid")
        elif target is Target.SCRIPT:
            pid = entry.get("pid")
        else:
            pid = read_pid(self._worker.paths.attempt(int(entry.get("attempt", 0))))
        if not pid:
            return False
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _revive(self) -> None:
        """Start a supervisor where none is, as every command does; the next round tries again."""
        with suppress(SupervisorDown):
            if not self._tally.over.is_set():
                self._worker.fleet.ensure_supervisor()
