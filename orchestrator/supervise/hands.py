"""Apply: carries out one action and returns what came of it. Only here is anything typed or signalled."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import HermuxError, NotReady
from orchestrator.fleet import action as act
from orchestrator.fleet import handover
from orchestrator.fleet.message import Message, MessageKind, Method, digest
from orchestrator.fleet.observation import (
    Acted,
    Autopsied,
    LaunchFailed,
    Observation,
    Swept,
    Taken,
)
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.fleet.worker import Flight, Worker
from orchestrator.hermes import database, home, launch, typing
from orchestrator.store import inbox
from orchestrator.store.files import write_text
from orchestrator.store.journal import Journal
from orchestrator.store.paths import FleetPaths, WorkerPaths
from orchestrator.supervise.bounds import Bounds
from orchestrator.supervise.memoir import past
from orchestrator.supervise.notify import Notifier
from orchestrator.supervise.processes import of_worker, send
from orchestrator.supervise.sight import Sight
from orchestrator.supervise.starting import Starter
from orchestrator.terminal.control import Control
from orchestrator.terminal.process import Process

log = logging.getLogger("hermux")
NUDGE_TEXT = (
    "[hermux] Your process was interrupted and has been restarted in this same conversation. "
    "Look at what you were doing, do not repeat steps that are already done, and go on."
)


class Hands:
    """`terminal()` gives a control client that works, started again where the old one was lost."""

    def __init__(
        self,
        paths: FleetPaths,
        sight: Sight,
        terminal: Callable[[], Control],
        *,
        env: Mapping[str, str],
        journal: Journal,
        notifier: Notifier,
    ) -> None:
        self._notifier = notifier
        self._paths = paths
        self._sight = sight
        self._terminal = terminal
        self._env = env
        self.journal = journal
        self._bounds = Bounds(paths)
        self._starter = Starter(paths, sight, terminal, env=env, bounds=self._bounds)
        self._references: dict[Path | None, bool] = {}

    def do(self, action: act.Action, worker: Worker) -> list[Observation]:
        """Carry out one action. A failure is an answer or a line in the log, never an exception."""
        try:
            return self._do(action, worker)
        except (HermuxError, OSError) as error:
            log.warning("%s: %s: %s", action.worker, type(action).__name__, error)
            return _failed(action, error)
        except Exception as error:  # one worker's fault is one event, never the end of the loop
            log.exception("%s: %s", action.worker, type(action).__name__)
            return _failed(action, error)

    def _do(self, action: act.Action, worker: Worker) -> list[Observation]:
        match action:
            case act.Launch():
                return [self._starter.launch(action, worker)]
            case act.Look():
                return self._look(worker)
            case act.Take():
                return [self._take(action, worker)]
            case act.Paste():
                return self._paste(action, worker)
            case act.Press():
                return self._press(action, worker)
            case act.MoveMessage():
                self._move(action)
                if worker.life is not None:
                    root = self._starter.root(worker.spec)
                    self._bounds.delivered(worker.spec, root, launched=worker.life.launched)
                return [Acted(action.worker, action.token)]
            case act.Nudge():
                return [self._nudge(action, worker)]
            case act.HandOver():
                return [self._hand_over(action)]
            case act.Signal():
                self._signal(action, worker)
            case act.Sweep():
                return [self._sweep(action)]
            case act.Autopsy():
                return [self._autopsy(action, worker)]
            case act.CloseSession():
                self._close(worker)
            case act.Alert():
                self._notifier.call(worker.name, action.dialog)
            case act.Note():
                self.write(action)
        return []

    def write(self, note: act.Note) -> None:
        """Put a decision into the journal; a full disk does not stop supervision."""
        try:
            self.journal.write(
                v=1,
                time=time.time(),
                worker=note.worker,
                what=note.what,
                attempt=note.attempt,
                text=note.text,
                reason=note.reason,
                cause=note.cause,
            )
        except OSError as error:
            log.warning("the journal cannot be written: %s", error)

    def note(self, text: str) -> None:
        """Put what concerns the supervisor, and no single worker, into the journal."""
        try:
            self.journal.write(v=1, time=time.time(), worker="", what="supervisor", text=text)
        except OSError as error:
            log.warning("the journal cannot be written: %s", error)

    def _look(self, worker: Worker) -> list[Observation]:
        if worker.life is None:
            return []
        return [self._sight.glance(worker, self._terminal().view(worker.life.pane))]

    def _take(self, action: act.Take, worker: Worker) -> Observation:
        paths = self._paths.worker(worker.name)
        waiting = {m.id: m for m in inbox.current(paths)}
        message = waiting.get(action.message) or inbox.take(paths, action.message)
        method, line, expected = self._plan(paths, worker.spec, message)
        return Taken(
            worker.name,
            action.token,
            message.id,
            message.kind,
            method,
            line,
            expected,
            tuple(message.keys),
            dialog=message.dialog,
            choice=message.choice,
        )

    def _plan(self, paths: WorkerPaths, spec: WorkerSpec, message: Message) -> tuple[Method, str, str]:
        if message.kind is MessageKind.ANSWER and message.choice != "text":
            return Method.KEY, message.text, digest(message.text)
        if message.kind is not MessageKind.TEXT:
            return Method.PASTE, message.text, digest(message.text)
        file = inbox.text_file(paths, message.id)
        typed = typing.plan(message.text, file=file, references_work=self._references_work(spec))
        by_file = typed.method is Method.READ_FILE
        return typed.method, typed.line, digest(typed.line if by_file else message.text)

    def _references_work(self, spec: WorkerSpec) -> bool:
        where = self._starter.hermes(spec).site_packages
        if where not in self._references:
            self._references[where] = where is not None and typing.paste_reference_supported(where)
        return self._references[where]

    def _press(self, action: act.Press, worker: Worker) -> list[Observation]:
        """Press keys; with a guard only if the screen, looked at a millisecond before, still shows that."""
        if worker.life is None:
            return []
        if action.guard is None:
            self._terminal().keys(worker.life.pane, *action.keys)
            return []
        why = "the worker reported something meanwhile" if self._sight.unread(worker) else ""
        now = self._sight.glance(worker, self._terminal().view(worker.life.pane)).glance
        if not now.same(action.guard) or now.left > action.guard.left:
            why = "the screen changed"
        if not why and not self._terminal().keys_unless_typed(
            worker.life.pane, action.guard.keyed, *action.keys
        ):
            why = "a person typed meanwhile"
        return [Acted(worker.name, action.token, ok=not why, detail=why)]

    def _paste(self, action: act.Paste, worker: Worker) -> list[Observation]:
        if worker.life is None:
            return []
        file = self._paths.worker(worker.name).dir / "paste"
        write_text(file, action.line, sync=False)
        try:
            pasted = self._terminal().paste(worker.life.pane, file, keyed=action.keyed)
        finally:
            file.unlink(missing_ok=True)
        return [] if action.keyed is None else [Acted(worker.name, action.token, ok=pasted)]

    def _move(self, action: act.MoveMessage) -> None:
        paths, move = self._paths.worker(action.worker), action.move
        if move.error and (paths.inbox_new / f"{move.message}.json").exists():
            inbox.take(paths, move.message)
        if not (paths.inbox_cur / f"{move.message}.json").exists():
            return
        if move.back:
            inbox.put_back(paths, move.message)
        elif move.error:
            inbox.finish(paths, move.message, error=move.error)
        else:
            receipt: dict[str, Any] = {
                "method": move.method,
                "sha256": move.digest,
                "session": move.session,
                "turn": move.turn,
                "time": time.time(),
            }
            inbox.finish(paths, move.message, receipt=receipt)

    def _nudge(self, action: act.Nudge, worker: Worker) -> Observation:
        """Queue the nudge, once an attempt whoever asks."""
        self._tell(action.worker, action.message, worker.spec.nudge_text or NUDGE_TEXT, "nudge")
        return Acted(action.worker, action.token, detail=action.message)

    def _hand_over(self, action: act.HandOver) -> Observation:
        """Queue the hand-over of an attempt that began a new conversation; without a past there is none."""
        paths = self._paths.worker(action.worker)
        told = past(paths, handover.TURNS)
        if told:
            text = handover.text(action.reason, told, str(paths.turns))
            self._tell(action.worker, action.message, text, "handover")
        return Acted(action.worker, action.token, ok=bool(told), detail=action.message)

    def _tell(self, worker: str, ident: str, text: str, sender: str) -> None:
        paths = self._paths.worker(worker)
        if inbox.look(paths, ident) is None:
            inbox.put(paths, Message(ident, worker, MessageKind.TEXT, text, time.time(), sender=sender))

    def _signal(self, action: act.Signal, worker: Worker) -> None:
        if worker.life is None:
            return
        pid = launch.read_pid(self._paths.worker(worker.name).attempt(worker.attempt))
        script = Process(worker.life.pid, worker.life.start)
        hermes = Process.of(pid) if pid else None
        if hermes is not None and script.alive():
            hermes.signal(signal.Signals(action.number))
        elif action.number == signal.SIGKILL or hermes is None:
            script.signal(signal.Signals(action.number))

    def _sweep(self, action: act.Sweep) -> Observation:
        folder = self._paths.worker(action.worker).dir
        left = of_worker(folder)
        send(left, action.number)
        return Swept(action.worker, action.token, len(left))

    def _autopsy(self, action: act.Autopsy, worker: Worker) -> Observation:
        root = home.profile_dir(self._starter.root(worker.spec), worker.spec.hermes_profile)
        try:
            return self._read_database(action, root)
        except (database.DatabaseUnreadable, HermuxError) as error:
            problem = str(error)
        session = action.session if (root / "state.db").exists() else ""
        return Autopsied(worker.name, action.token, {}, session=session, problem=problem)

    def _read_database(self, action: act.Autopsy, root: Path) -> Observation:
        with database.copied(root) as copy:
            stored: dict[str, str] = {}
            for flight in action.flights:
                text = self._flight_text(action.worker, flight)
                found = database.find_user_message(copy, text, since=flight.since) if text else None
                if found is not None:
                    stored[flight.message] = found.session_id
            known = action.session or next(iter(stored.values()), "")
            session = known or database.latest_session(copy) or ""
            if session and not database.session_exists(copy, session):
                session = ""
            last = database.last_row_role(copy, session) if session else None
        unfinished = last is not None and last.unfinished
        return Autopsied(action.worker, action.token, stored, session=session, unfinished=unfinished)

    def _flight_text(self, worker: str, flight: Flight) -> str:
        if flight.method is Method.READ_FILE:
            return str(flight.line)
        found = inbox.look(self._paths.worker(worker), flight.message)
        return str(found.data.get("text", "")) if found is not None else ""

    def _close(self, worker: Worker) -> None:
        """End the worker's pane, and with it its session; panes that a person added there stay."""
        self._sight.panes.pop(worker.pane, None)
        if any(row.pane_id == worker.pane for row in self._terminal().panes()):
            self._terminal().kill_pane(worker.pane)


def _failed(action: act.Action, error: Exception) -> list[Observation]:
    """Return the answer that an action has when it could not be carried out."""
    match action:
        case act.Launch():
            return [LaunchFailed(action.worker, action.attempt, str(error), hold=isinstance(error, NotReady))]
        case act.Take() if isinstance(error, OSError):
            return []  # a full disk: the step is asked for again at its deadline, the message stays
        case act.Take():
            return [_no_message(action, str(error))]
        case act.HandOver() | act.Nudge():
            return [Acted(action.worker, action.token, ok=False)]
        case act.Autopsy():
            return [Autopsied(action.worker, action.token, {}, session=action.session, problem=str(error))]
        case _:
            return []


def _no_message(action: act.Take, problem: str) -> Taken:
    return Taken(
        action.worker, action.token, action.message, MessageKind.TEXT, Method.PASTE, "", "", problem=problem
    )


def own_environment() -> dict[str, str]:
    """Return this process's environment; `python` is the interpreter that runs the rehearsal model."""
    return {**os.environ, "HERMUX_PYTHON": sys.executable}
