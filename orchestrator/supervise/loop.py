"""The loop: wait → observe → decide → record → apply. Synchronous, on `selectors`, one thread.

It is woken by the `wake` FIFO (commands and plugins write a byte), by a pidfd a worker, and by the
clock where a step is due. Nothing that a SIGKILL would lose is kept here: `state.json` is written
before an action of a decision is carried out that must not happen twice.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from orchestrator.errors import HermuxError, TerminalError
from orchestrator.fleet import action as act
from orchestrator.fleet.alerts import alerts, status_line
from orchestrator.fleet.decide import Fleet, decide
from orchestrator.fleet.looking import next_look
from orchestrator.fleet.memory import dump
from orchestrator.fleet.observation import DesiredSeen, Gone, Launched, Observation
from orchestrator.fleet.picture import picture
from orchestrator.fleet.worker import Want, Worker
from orchestrator.hermes.launch import read_exit
from orchestrator.store.journal import Journal
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.store.redact import keys_of, redact
from orchestrator.store.state import write_state
from orchestrator.store.wake import drain, open_wake
from orchestrator.supervise import adopt
from orchestrator.supervise.hands import Hands, own_environment
from orchestrator.supervise.memory import Memory
from orchestrator.supervise.notify import Notifier
from orchestrator.supervise.processes import Deaths
from orchestrator.supervise.rehearsal import Rehearsal
from orchestrator.supervise.sdnotify import Manager
from orchestrator.supervise.sight import Sight
from orchestrator.terminal.config import write_config
from orchestrator.terminal.control import Control
from orchestrator.terminal.pane import Liveness
from orchestrator.terminal.process import Process
from orchestrator.terminal.server import Server, socket_name
from orchestrator.version import __version__

log = logging.getLogger("hermux")
SHORTEST_NAP = 0.02
"""Seconds between two turns that nothing but the clock or a FIFO byte asked for."""
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
        changed = write_config(paths.tmux_conf, fleet=paths.fleet)
        self._server = Server(socket_name(paths.fleet), paths.tmux_conf, env=self._env)
        if changed and self._server.state() is Liveness.ALIVE:
            self._server.reload()
        self._control: Control | None = None
        self._sight = Sight(paths)
        self._notifier = Notifier(
            paths.fleet,
            env=self._env,
            terminals=lambda: self.terminal().terminals(),
            redact=self._redact,
        )
        self._hands = Hands(
            paths,
            self._sight,
            self.terminal,
            env=self._env,
            journal=Journal(paths.journal, redact=self._redact),
            notifier=self._notifier,
        )
        self._rehearsal = Rehearsal(paths)
        self._fleet: dict[str, Worker] = {}
        self._entries: dict[str, tuple[Worker, dict[str, Any]]] = {}
        self._ending = False
        self._late: list[Observation] = []
        self._recorded = 0.0
        self._memory = Memory(paths, self._notifier.settings)
        self._panes_read = 0.0
        self._needed = time.time()
        self._status = ""
        me = Process.of(os.getpid())
        self._me = {"pid": os.getpid(), "start": me.start if me else 0.0}

    def terminal(self) -> Control:
        """Return a control client that works; start the server and the client where they are gone."""
        if self._control is not None and self._control.alive:
            return self._control
        self._server.ensure()
        control = Control(self._server, pid_file=self.paths.root / "control.json")
        control.start()
        self._control = control
        self._selector.register(control.fileno(), selectors.EVENT_READ)
        return control

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
            nap = max(next_look(self._fleet, time.time()), SHORTEST_NAP - (time.monotonic() - began))
            self._wait(nap if self._deaths.exact else min(nap, 0.1))
        self._manager.stopping()
        self._record(time.time())
        self._hands.journal.write(v=1, time=time.time(), worker="", what="supervisor", text="ended")
        if self._control is not None:
            self._control.close()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _take_over(self) -> None:
        """Adopt what runs; start nothing twice."""
        rows = self.terminal().panes()
        known = adopt.remembered(self.paths)
        known |= adopt.found_again(self.paths, known, rows)
        gone: list[Observation] = []
        for name, before in known.items():
            worker = adopt.adopt(before, rows, self.paths.worker(name).launch)
            self._fleet[name] = worker
            if worker.life is not None and adopt.alive(worker):
                self._deaths.watch(name, worker.life)
            elif worker.life is not None:
                gone.append(self._death(worker))
        live = sum(1 for w in self._fleet.values() if w.life is not None) - len(gone)
        text = f"supervisor {__version__} began; {live} live workers adopted"
        log.info(text)
        self._hands.journal.write(v=1, time=time.time(), worker="", what="supervisor", text=text)
        self._decide(gone)

    def _wait(self, nap: float) -> None:
        for key, _ in self._selector.select(nap):
            if key.fd == self._wake:
                drain(self._wake)
            elif key.fd == self._signals:
                os.read(self._signals, 512)

    def _turn(self) -> None:
        now = time.time()
        seen: list[Observation] = [self._death(self._fleet[name]) for name in self._deaths.dead()]
        died = bool(seen)
        seen = [*self._sight.files(self._fleet), *seen]  # what it said last comes before its death
        if not died:
            seen += self._panes(now, bool(seen))
        self._decide(seen)
        if any(isinstance(each, DesiredSeen) for each in seen):
            self._keys = keys_of(self.paths, self._fleet)
        self._status_line()
        self._memory.measure(self._fleet, now)
        self._rest(now)

    def _panes(self, now: float, something: bool) -> list[Observation]:
        """Read all panes where it is due: with every look while a step is awaited, else each second."""
        self._drain()
        due = min(next_look(self._fleet, now), 1.0)
        if now - self._panes_read < due and not (something and now - self._panes_read > 0.1):
            return []
        self._panes_read = now
        try:
            rows = self.terminal().panes()
            self._rehearsal.keep(self._fleet, self.terminal(), rows, now)
        except TerminalError as error:
            log.warning("tmux could not be asked: %s", error)
            self._drop_control()
            return []
        return self._sight.rows(rows, self._fleet)

    def _drain(self) -> None:
        if self._control is None:
            return
        try:
            self._control.drain()
        except TerminalError as error:
            log.warning("the control client is gone: %s", error)
            self._drop_control()

    def _drop_control(self) -> None:
        control, self._control = self._control, None
        for key in list(self._selector.get_map().values()):
            if key.fd not in (self._wake, self._signals) and not self._deaths.watches(key.fd):
                self._selector.unregister(key.fd)
        if control is not None:
            control.close()

    def _death(self, worker: Worker) -> Gone:
        """Return how a worker died; its last screen is kept."""
        assert worker.life is not None
        row, screen = self._sight.panes.get(worker.life.pane), ""
        folder = self.paths.worker(worker.name).attempt(worker.attempt)
        try:
            screen = self.terminal().capture(worker.life.pane)
            if read_exit(folder) is None:
                row = next((r for r in self.terminal().panes() if r.pane_id == worker.life.pane), row)
            screen = self._redact(screen)
            (folder / "screen.txt").write_text(screen)
        except (HermuxError, OSError) as error:
            log.warning("%s: its last screen could not be kept: %s", worker.name, error)
        return self._sight.death(worker, screen, row)

    def _decide(self, seen: Sequence[Observation]) -> None:
        unrecorded, seen = False, [*self._late, *seen]
        self._late = []
        for _ in range(ROUNDS):
            now = time.time()
            fleet, actions = self._think(seen, now)
            changed = any(_face(w) != _face(self._fleet.get(n)) for n, w in fleet.items())
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
        else:
            self._late = list(seen)
        if unrecorded or time.time() - self._recorded >= RECORD_EVERY:
            self._record(time.time())

    def _think(self, seen: Sequence[Observation], now: float) -> tuple[Fleet, list[act.Action]]:
        """Decide; a fault in the handling of one worker leaves that one as it was, and no other."""
        try:
            return decide(self._fleet, seen, now, self._memory.host(self._fleet, now))
        except Exception:
            log.exception("a decision failed; each worker is decided upon alone")
        fleet, actions = dict(self._fleet), list[act.Action]()
        for name, worker in self._fleet.items():
            own = [s for s in seen if not isinstance(s, DesiredSeen) and s.worker == name]
            try:
                alone, more = decide({name: worker}, own, now, self._memory.host(self._fleet, now))
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
        self._entries.pop(name, None)

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
        self._recorded = now
        self._notifier.look()
        data: dict[str, Any] = {
            "schema": 1,
            "version": __version__,
            "fleet": self.paths.fleet,
            "time": now,
            "supervisor": self._me,
            "tmux": {"socket": str(self._server.socket_path), "pid": self._server.pid},
            "alerts": self._alerts(now),
            "workers": {name: self._entry(worker) for name, worker in self._fleet.items()},
        }
        try:
            write_state(self.paths, data, redact=self._redact)
        except OSError as error:
            log.error("state.json cannot be written: %s", error)
            return False
        return True

    def _entry(self, worker: Worker) -> dict[str, Any]:
        """Return a worker's entry, made anew only for a worker that changed (values are immutable)."""
        known = self._entries.get(worker.name)
        if known is None or known[0] is not worker:
            known = worker, adopt.entry(worker, picture(worker), dump(worker))
            self._entries[worker.name] = known
        return known[1]

    def _alerts(self, now: float) -> list[dict[str, Any]]:
        told = alerts(self._fleet.values(), now)
        if self._notifier.problem:
            told.append({"text": self._notifier.problem, "since": self._notifier.problem_since})
        return told

    def _status_line(self) -> None:
        """Tell whoever is attached how the fleet stands and who waits for a person."""
        text, people = status_line(self._fleet.values())
        if text == self._status or self._control is None:
            return
        try:
            self._control.set_waiting(people)
            self._control.set_status(text)
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
        if any(w.want is Want.RUN or w.life is not None or w.op is not None for w in self._fleet.values()):
            self._needed = now
        elif now - self._needed >= self._linger:
            log.info("nothing to supervise for %.0f s", self._linger)
            self._ending = True
            if self._control is not None:
                self._drop_control()
            self._server.kill_server()


def _face(worker: Worker | None) -> tuple[str, tuple[object, ...]]:
    """Return what readers must see at once: the state, and the dialogs with what is known of them."""
    if worker is None:
        return "", ()
    return worker.word, tuple((each.number, each.deadline > 0, each.choices) for each in worker.dialogs)
