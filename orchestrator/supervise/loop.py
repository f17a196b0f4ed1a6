"""The loop: wait → observe → decide → record → apply. Synchronous, on `selectors`, one thread.

It is woken by the `wake` FIFO (commands and plugins write whose files changed), by a pidfd a worker, and by
the clock where a step is due; a turn is about the workers that are concerned. Nothing that a SIGKILL would
lose is kept here: `state.json` is written before an action of a decision is carried out that must not happen
twice.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

from orchestrator.errors import HermuxError, TerminalError
from orchestrator.fleet import action as act
from orchestrator.fleet.alerts import alerts, status_line
from orchestrator.fleet.decide import Fleet, decide
from orchestrator.fleet.looking import next_look
from orchestrator.fleet.observation import DesiredSeen, Gone, Launched, Observation, ServerLost
from orchestrator.fleet.outcome import for_memory, unforeseen
from orchestrator.fleet.worker import Worker
from orchestrator.hermes.launch import read_exit
from orchestrator.store.journal import Journal
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.store.redact import keys_of, redact
from orchestrator.store.wake import drain, open_wake
from orchestrator.supervise import adopt
from orchestrator.supervise.hands import Hands, own_environment
from orchestrator.supervise.memory import Memory
from orchestrator.supervise.notify import Notifier
from orchestrator.supervise.picture import Picture
from orchestrator.supervise.processes import Deaths
from orchestrator.supervise.rehearsal import Rehearsal
from orchestrator.supervise.sdnotify import Manager
from orchestrator.supervise.sight import Sight
from orchestrator.supervise.tmux import Tmux
from orchestrator.supervise.turn import Turn, Turns
from orchestrator.supervise.work import Work
from orchestrator.terminal.process import Process
from orchestrator.version import __version__

log = logging.getLogger("hermux")
SHORTEST_NAP = 0.05
"""Seconds between two turns that nothing but the clock or the FIFO asked for."""
ROUNDS = 24
"""Answers to actions are decided upon at once, at most so many times in a turn."""
RECORD_EVERY = 1.0
LINGER = 60.0
"""Seconds after which a supervisor with nothing to run ends, and its tmux server with it."""
KEYBOARD = (act.Paste, act.Press)
QUIET = (act.Look, act.Note)
REPEATABLE = (*QUIET, act.Autopsy, act.Sweep)
"""Actions that do no harm when a supervisor is killed and the next one asks for them again."""


class Supervisor:
    """One fleet's supervisor; the caller holds the fleet's supervisor lock."""

    def __init__(
        self, paths: FleetPaths, lock: FileLock, *, linger: float = LINGER, manager: Manager | None = None
    ) -> None:
        self._manager = manager or Manager({})
        self.paths = paths
        self._lock = lock
        self._keys: frozenset[str] = frozenset()
        self._linger = linger
        self._env = own_environment()
        self._selector = selectors.DefaultSelector()
        self._wake = open_wake(paths.wake)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._signals, self._signal_in = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(self._signal_in, False)
        self._selector.register(self._signals, selectors.EVENT_READ)
        self._deaths = Deaths(
            lambda fd: self._selector.register(fd, selectors.EVENT_READ), self._selector.unregister
        )
        self._sight = Sight(paths)
        self._tmux = Tmux(
            paths,
            env=self._env,
            watch=lambda fd: self._selector.register(fd, selectors.EVENT_READ),
            unwatch=self._selector.unregister,
            forget=lambda: self._sight.panes.clear(),
        )
        self._notifier = Notifier(
            paths.fleet,
            env=self._env,
            terminals=lambda: self._tmux.terminal().terminals(),
            redact=self._redact,
        )
        self._hands = Hands(
            paths,
            self._sight,
            self._tmux.terminal,
            env=self._env,
            journal=Journal(paths.journal, redact=self._redact),
            notifier=self._notifier,
        )
        self._rehearsal = Rehearsal(paths)
        self._fleet: dict[str, Worker] = {}
        self._turns = Turns()
        self._picture = Picture(paths, self._redact)
        self._ending = False
        self._late: list[Observation] = []
        self._recorded = 0.0
        self._memory = Memory(paths, self._notifier.settings)
        self._work = Work(paths)
        self._panes_read = 0.0
        self._needed = time.time()
        self._status = ""
        me = Process.of(os.getpid())
        self._me = {"pid": os.getpid(), "start": me.start if me else 0.0}

    def run(self) -> None:
        """Supervise until SIGTERM or SIGINT (workers go on), or until there is nothing to supervise."""
        signal.set_wakeup_fd(self._signal_in)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)
        self._take_over()
        self._manager.ready()
        while not self._ending:
            self._manager.alive()
            began = time.monotonic()
            self._turn()
            nap = next_look(self._fleet, time.time())
            self._wait(nap if self._deaths.exact else min(nap, 0.1), began + SHORTEST_NAP)
        self._manager.stopping()
        self._record(time.time())
        self._hands.note("ended")
        self._tmux.drop()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _take_over(self) -> None:
        """Adopt what runs; start nothing twice."""
        lost = self._tmux.lost(self._hands.note)
        rows = self._tmux.terminal().panes()
        known = adopt.remembered(self.paths)
        known |= adopt.found_again(self.paths, known, rows)
        gone: list[Observation] = list(lost)
        for name, before in known.items():
            worker = adopt.adopt(before, rows, self.paths.worker(name).launch)
            self._fleet[name] = worker
            if worker.life is not None and adopt.alive(worker):
                self._deaths.watch(name, worker.life)
            elif worker.life is not None:
                gone.append(self._death(worker))
        live = sum(1 for w in self._fleet.values() if w.life is not None) - len(gone) + len(lost)
        text = f"supervisor {__version__} began; {live} live workers adopted"
        log.info(text)
        self._hands.note(text)
        self._decide(gone, Turn(frozenset(), everyone=True))

    def _wait(self, nap: float, earliest: float) -> None:
        """Wait for `nap` seconds or until something happens; the FIFO is not listened to before `earliest`.

        So a fleet that reports a hundred times a second has twenty turns in it.
        """
        if (early := min(nap, earliest - time.monotonic())) > 0:
            self._selector.unregister(self._wake)
            happened = self._happened(early)
            self._selector.register(self._wake, selectors.EVENT_READ)
            if happened:
                return
            nap -= early
        self._happened(nap)

    def _happened(self, nap: float) -> bool:
        ready = [key.fd for key, _ in self._selector.select(nap)]
        if self._wake in ready:
            self._turns.name(drain(self._wake))
        if self._signals in ready:
            os.read(self._signals, 512)
        return bool(ready)

    def _turn(self) -> None:
        now = time.time()
        lost = self._tmux.lost(self._hands.note)
        dead = self._deaths.dead()
        self._turns.name(dead)
        turn = self._turns.next(self._fleet, now)
        if lost:
            turn = Turn(frozenset(), everyone=True)
        seen: list[Observation] = [self._death(self._fleet[name]) for name in dead]
        # what a worker said last comes before its death
        seen = [*lost, *self._sight.files(self._fleet, turn), *seen]
        if not dead:
            seen += [*self._panes(now), *self._work.seen(self._fleet)]
        self._decide(seen, turn)
        if any(isinstance(each, DesiredSeen) for each in seen):
            self._keys = keys_of(self.paths, self._fleet)
            self._picture.forget()
        self._status_line()
        self._memory.measure(self._fleet, now)
        self._rest(now)

    def _panes(self, now: float) -> list[Observation]:
        """Read all panes where it is due: with every look while a step is awaited, else each second."""
        self._tmux.drain()
        if time.monotonic() - self._panes_read < next_look(self._fleet, now):
            return []
        self._panes_read = time.monotonic()
        try:
            rows = self._tmux.terminal().panes()
            self._rehearsal.keep(self._fleet, self._tmux.terminal(), rows, now)
            if self._tmux.server.recall():
                self._hands.note("the tmux server's socket was removed: it was told to make it again")
        except TerminalError as error:
            log.warning("tmux could not be asked: %s", error)
            self._tmux.drop()
            return []
        return self._sight.rows(rows, self._fleet)

    def _death(self, worker: Worker) -> Gone:
        """Return how a worker died; its last screen is kept, if it still has a pane."""
        assert worker.life is not None
        row, screen = self._sight.panes.get(worker.life.pane), ""
        if worker.life.pane and not self._tmux.dead:
            folder = self.paths.worker(worker.name).attempt(worker.attempt)
            try:
                terminal = self._tmux.terminal()
                screen = self._redact(terminal.capture(worker.life.pane))
                if read_exit(folder) is None:
                    row = next((r for r in terminal.panes() if r.pane_id == worker.life.pane), row)
                (folder / "screen.txt").write_text(screen)
            except (HermuxError, OSError) as error:
                log.warning("%s: its last screen could not be kept: %s", worker.name, error)
        gone = self._sight.death(worker, screen, row)
        if not unforeseen(gone.outcome):
            return gone
        return replace(gone, outcome=for_memory(gone.outcome, self._memory.traces(worker, time.time())))

    def _decide(self, seen: Sequence[Observation], turn: Turn) -> None:
        unrecorded, seen = False, [*self._late, *seen]
        self._late = []
        only = None if turn.everyone else turn.workers
        for _ in range(ROUNDS):
            now = time.time()
            fleet, actions = self._think(seen, now, only)
            changed = any(_shows_anew(w, self._fleet.get(n)) for n, w in fleet.items())
            lost = self._fleet.keys() - fleet.keys()
            self._fleet = dict(fleet)
            for name in lost:
                self._forget(name)
            unrecorded |= changed or bool(lost) or any(not isinstance(a, QUIET) for a in actions)
            if any(not isinstance(a, REPEATABLE) for a in actions):
                unrecorded = not self._record(now)
            seen = self._apply([a for a in actions if not (unrecorded and isinstance(a, KEYBOARD))])
            if not seen:
                break
            only = frozenset()
        else:
            self._late = list(seen)
        if unrecorded or time.monotonic() - self._recorded >= RECORD_EVERY:
            self._record(time.time())

    def _think(
        self, seen: Sequence[Observation], now: float, only: frozenset[str] | None
    ) -> tuple[Fleet, list[act.Action]]:
        """Decide; a fault in the handling of one worker leaves that one as it was, and no other."""
        try:
            return decide(self._fleet, seen, now, self._memory.host(self._fleet, now), only)
        except Exception:
            log.exception("a decision failed; each worker is decided upon alone")
        fleet, actions = dict(self._fleet), list[act.Action]()
        for name, worker in self._fleet.items():
            own = [s for s in seen if not isinstance(s, DesiredSeen | ServerLost) and s.worker == name]
            try:
                alone, more = decide({name: worker}, own, now, self._memory.host(self._fleet, now), only)
            except Exception:
                log.exception("%s: a decision failed", name)
                continue
            fleet.update(alone)
            actions += more
        return fleet, actions

    def _redact(self, text: str) -> str:
        return redact(text, self._keys)

    def _forget(self, name: str) -> None:
        self._sight.forget(name)

    def _apply(self, actions: Sequence[act.Action]) -> list[Observation]:
        answers: list[Observation] = []
        for action in actions:
            worker = self._fleet.get(action.worker)
            if worker is None:
                continue
            for answer in self._hands.do(action, worker):
                if isinstance(answer, Launched):
                    self._deaths.watch(answer.worker, answer.life)
                answers.append(answer)
        return answers

    def _record(self, now: float) -> bool:
        """Write `state.json` and say whether it was written.

        On a full disk nothing is typed, since nobody could know of it afterwards: the steps of a
        delivery try again by themselves.
        """
        self._recorded = time.monotonic()
        self._notifier.look()
        head: dict[str, Any] = {
            "schema": 1,
            "version": __version__,
            "fleet": self.paths.fleet,
            "supervisor": self._me,
            "tmux": {"socket": str(self._tmux.server.socket_path), "pid": self._tmux.server.pid},
            "alerts": self._alerts(now),
        }
        try:
            self._picture.write(head, self._fleet, now)
        except OSError as error:
            log.error("state.json cannot be written: %s", error)
            return False
        return True

    def _alerts(self, now: float) -> list[dict[str, Any]]:
        told = alerts(self._fleet.values(), now)
        if self._notifier.problem:
            told.append({"text": self._notifier.problem, "since": self._notifier.problem_since})
        return told

    def _status_line(self) -> None:
        """Tell whoever is attached how the fleet stands and who waits for a person."""
        text, people = status_line(self._fleet.values())
        control = self._tmux.control
        if text == self._status or control is None:
            return
        try:
            control.set_waiting(people)
            control.set_status(text)
            self._status = text
        except TerminalError as error:
            log.warning("the status line: %s", error)

    def _rest(self, now: float) -> None:
        """End when nothing has been wanted or alive for a while; the tmux server goes too.

        A supervisor whose lock file was removed or replaced ends at once: another may hold the new one.
        """
        if not self._lock.in_place():
            log.error("%s is not the file that this supervisor has locked: it ends", self._lock.path)
            self._ending = True
            return
        if any(w.wanted or w.life is not None or w.op is not None for w in self._fleet.values()):
            self._needed = now
        elif now - self._needed >= self._linger:
            log.info("nothing to supervise for %.0f s", self._linger)
            self._ending = True
            self._tmux.drop()
            self._tmux.server.kill_server()


def _shows_anew(worker: Worker, before: Worker | None) -> bool:
    """Whether readers must see at once what changed: the state, and the dialogs with what is known of them."""
    return worker is not before and (before is None or _face(worker) != _face(before))


def _face(worker: Worker) -> tuple[str, tuple[object, ...]]:
    return worker.word, tuple((each.number, each.deadline > 0, each.choices) for each in worker.dialogs)
