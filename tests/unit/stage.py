"""A fleet on disk as a supervisor would keep it, for tests of commands: files only, nothing runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from orchestrator.api import Fleet
from orchestrator.fleet.message import digest
from orchestrator.fleet.spec import Endpoint, EndpointKind, WorkerSpec
from orchestrator.store import inbox
from orchestrator.store.desired import DesiredWorker, Want, edit_desired, load_desired
from orchestrator.store.files import write_json
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from tests.until import until


def spec(name: str, role: str = "coder", *, cwd: str = "/work") -> WorkerSpec:
    endpoint = Endpoint(
        "http://127.0.0.1:1/v1", "hermux-rehearsal", 131072, kind=EndpointKind.REHEARSAL, source="test"
    )
    return WorkerSpec(name, role, cwd, f"hx-default-{name}", endpoint)


class Stage:
    """Holds the supervisor's lock, so that commands find one; `play` acts its part in a thread."""

    def __init__(self, root: Path) -> None:
        self.env = {"HOME": str(root), "XDG_STATE_HOME": str(root / "state"), "PATH": "/usr/bin:/bin"}
        self.paths = FleetPaths(root / "state" / "hermux" / "default", "default").make()
        self.fleet = Fleet(self.paths, self.env)
        self.entries: dict[str, dict[str, Any]] = {}
        self.lock = FileLock(self.paths.supervisor_lock)
        self._thread: threading.Thread | None = None
        self._failed: list[BaseException] = []

    def __enter__(self) -> Stage:
        assert self.lock.try_acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.join(10)
        self.lock.release()
        assert not self._failed, self._failed

    def worker(self, name: str, **entry: Any) -> None:
        """Add a worker, or change what the picture shows of it."""
        if name not in load_desired(self.paths).workers:
            with edit_desired(self.paths) as wanted:
                wanted.workers[name] = DesiredWorker(
                    spec(name, cwd=str(self.paths.root)), Want(entry.pop("want", "run"))
                )
            self.paths.worker(name).make()
        shown = {
            "phase": "up",
            "word": "ready",
            "witness": "event",
            "since": time.time(),
            "generation": 1,
            "attempt": 1,
        }
        self.entries[name] = self.entries.get(name, shown) | entry
        self.draw()

    def draw(self) -> None:
        picture = {
            "schema": 1,
            "version": "0.1.0",
            "time": time.time(),
            "alerts": [],
            "workers": self.entries,
        }
        write_json(self.paths.state, picture, sync=False)

    def forget(self, name: str) -> None:
        del self.entries[name]
        self.draw()

    def play(self, *acts: Callable[[], object]) -> None:
        """Act the supervisor's part beside the command, one act after the other; what one raises fails the test."""

        def part() -> None:
            try:
                for act in acts:
                    act()
            except BaseException as error:
                self._failed.append(error)

        self._thread = threading.Thread(target=part)
        self._thread.start()

    def take(self, name: str, *, turn: str = "t1") -> str:
        """Deliver the next message that comes, as the supervisor does; return its id."""
        worker = self.paths.worker(name)
        message = until(lambda: inbox.list_new(worker))[0]
        inbox.take(worker, message.id)
        receipt = {
            "method": "paste",
            "sha256": digest(message.text),
            "turn": turn,
            "session": "s",
            "time": time.time(),
        }
        self.event(name, "pre_llm_call", turn=turn, sha256=digest(message.text), preview=message.text[:200])
        inbox.finish(worker, message.id, receipt=receipt)
        return message.id

    def event(
        self, name: str, event: str, *, turn: str = "t1", attempt: int = 1, platform: str = "cli", **data: Any
    ) -> None:
        line = {"v": 1, "t": time.time(), "pid": 1, "attempt": attempt, "event": event, "session": "s"}
        line |= {"platform": platform, "turn": turn, **data}
        with self.paths.worker(name).events.open("a") as feed:
            feed.write(json.dumps(line) + "\n")

    def end(self, name: str, *, turn: str = "t1", answer: str = "42", **data: Any) -> None:
        """End a turn with its answer."""
        content = {
            "turn": turn,
            "session": "s",
            "user": "?",
            "answer": answer,
            "truncated": False,
            "tools": [],
        }
        (self.paths.worker(name).turns / f"{turn}.json").write_text(json.dumps(content))
        self.event(name, "on_session_end", turn=turn, completed=True, interrupted=False, **data)
