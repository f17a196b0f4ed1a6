"""What a fault is played on: the fleet as its files show it, the messages that flow, and who is who."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.api.fleet import Fleet
from orchestrator.api.supervisor import running
from orchestrator.fleet.events import EventName
from orchestrator.fleet.message import digest
from orchestrator.hermes.feed import Feed, iter_events
from orchestrator.hermes.launch import read_pid
from orchestrator.selftest.verdict import Judge, Verdict, text
from orchestrator.store.state import read_state
from orchestrator.terminal.process import Process

EVERY = 0.01
"""Seconds between two looks at `state.json`."""


class Stage:
    """One fleet with numbered messages; `dice` decides what is left to chance."""

    def __init__(self, fleet: Fleet, folder: Path, dice: random.Random) -> None:
        self.fleet, self.folder, self.dice = fleet, folder, dice
        self.names = fleet.names()
        self.sent: dict[str, tuple[str, int]] = {}
        """Message id → worker and number."""
        self._open: list[str] = []
        """Messages that had no receipt at the last look."""
        self._digests: dict[tuple[str, str], int] = {}
        self._asked: Counter[int] = Counter()
        self._turns: set[tuple[str, int]] = set()
        self._judge = Judge()
        self._log = 0
        self._feeds = {name: Feed(fleet.paths.worker(name).events) for name in self.names}
        self.sessions: dict[str, str] = {}
        """Each worker's conversation, from its first message on."""

    def until(self, so: Callable[[], bool], limit: float) -> float | None:
        """Look until it is so; return the seconds that it took, None when `limit` seconds were not enough."""
        begun = time.monotonic()
        while not so():
            if time.monotonic() - begun > limit:
                return None
            time.sleep(EVERY)
        return time.monotonic() - begun

    def entry(self, name: str) -> Mapping[str, Any]:
        """Return a worker's entry in `state.json`, {} while there is none."""
        state = read_state(self.fleet.paths)
        return state.workers.get(name, {}) if state else {}

    def up(self, name: str) -> bool:
        """Whether a worker is alive, at its prompt or at work, and in its own conversation."""
        entry = self.entry(name)
        known = self.sessions.get(name)
        pid = int(entry.get("pid") or 0)
        return (
            entry.get("phase") == "up"
            and entry.get("word") not in ("held", "unknown")
            and (not known or entry.get("session") == known)
            and Process.of(pid) is not None
        )

    def all_up(self) -> bool:
        """Whether every worker is."""
        return all(self.up(name) for name in self.names)

    def attempt(self, name: str) -> int:
        """Return the number of a worker's newest attempt."""
        return int(self.entry(name).get("attempt") or 0)

    def reported(self, name: str, event: EventName) -> int:
        """Return how often Hermes has reported an event so far."""
        return sum(each.name is event for each in iter_events(self.fleet.paths.worker(name).dir))

    def hermes(self, name: str) -> int:
        """Return the pid of a worker's Hermes, 0 if it has none."""
        return read_pid(self.fleet.paths.worker(name).attempt(self.attempt(name))) or 0

    def supervisor(self) -> int:
        """Return the supervisor's pid, 0 if none runs."""
        return int((running(self.fleet.paths) or {}).get("pid") or 0)

    def tmux(self, *words: str) -> str:
        """Run plain tmux on the fleet's server, as a person would, and return what it prints."""
        argv = ["tmux", "-S", str(self.fleet.server().socket_path), *words]
        done = subprocess.run(
            argv, capture_output=True, text=True, env=dict(self.fleet.env), timeout=20, check=False
        )
        return done.stdout.strip()

    def tmux_pid(self) -> int:
        """Return the pid of the fleet's tmux server, 0 before it is known."""
        state = read_state(self.fleet.paths)
        return int(((state.data if state else {}).get("tmux") or {}).get("pid") or 0)

    def endpoint_pid(self) -> int:
        """Return the pid of the rehearsal model, 0 when its pane is dead."""
        shown = self.tmux("list-panes", "-t", "=rehearsal:", "-F", "#{pane_dead} #{pane_pid}").split()
        return int(shown[1]) if shown[:1] == ["0"] and Process.of(int(shown[1])) else 0

    def port(self) -> int:
        """Return the port of the rehearsal model."""
        return int(json.loads(self.fleet.paths.rehearsal.read_text())["port"])

    def rehearse(self, path: str, **body: Any) -> None:
        """Tell the rehearsal model something: `faults` or `reset`; raises OSError while it does not answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port()}/rehearsal/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            answer.read()

    def answers(self) -> bool:
        """Whether the rehearsal model answers."""
        with suppress(OSError):
            url = f"http://127.0.0.1:{self.port()}/v1/models"
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5).close()
            return True
        return False

    def send(self, name: str, script: str = "") -> str:
        """Send a worker the next number, with `script` behind it; return the message's id."""
        number = len(self.sent) + 1
        said = f"Note #{number:04d}# of a numbered series. {script}" if script else text(self.dice, number)
        ident = self.fleet.worker(name).send(said, sender="selftest")
        self.sent[ident] = (name, number)
        self._open.append(ident)
        self._digests[name, digest(str(self.fleet.message(ident)[1].get("text") or said))] = number
        return ident

    def tool(self, name: str, command: str) -> str:
        """Send a worker a message whose turn runs a shell command as a tool."""
        steps = [{"tools": [{"name": "terminal", "args": {"command": command}}]}, {"text": "noted"}]
        return self.send(name, json.dumps({"steps": steps}))

    def through(self) -> bool:
        """Whether every message has its receipt and nobody has anything left to do, after a failed turn too.

        The receipts are looked at first: a receipt is older than the model's answer, and `state.json` says of a
        worker that it is busy before the receipt is there.
        """
        if self.waiting():
            return False
        return {self.entry(name).get("word") for name in self.names} <= {"ready", "failed"}

    def waiting(self) -> list[str]:
        """Return the numbers that still wait for a receipt, each with its worker and where its file lies.

        One that failed waits no more: if the model was not asked with it, it is lost.
        """
        where = {ident: self.fleet.message(ident)[0] for ident in self._open}
        self._open = [ident for ident in self._open if where[ident] not in ("done", "failed")]
        told = ((*self.sent[ident], where[ident] or "nowhere") for ident in self._open)
        return [f"#{number} of {name} ({place})" for name, number, place in told]

    def verdict(self) -> Verdict:
        """Judge all messages so far by what the model was asked and what Hermes reported."""
        owners = {number: worker for worker, number in self.sent.values()}
        self._take_requests(owners)
        for name, feed in self._feeds.items():
            for event in feed.read():
                number = self._digests.get((name, str(event.data.get("sha256", ""))))
                if event.name is EventName.REQUEST and number and (event.turn, number) not in self._turns:
                    self._turns.add((event.turn, number))
                    self._asked[number] += 1
        return self._judge.verdict(owners, self._asked)

    def _take_requests(self, owners: Mapping[int, str]) -> None:
        with (self.folder / "requests.jsonl").open("rb") as log:
            log.seek(self._log)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                self._log += len(line)
                # a rehearsal model that was killed may have left the beginning of a line in front
                begin = line.rfind(b'{"number": ')
                with suppress(ValueError):
                    self._judge.take(json.loads(line[max(begin, 0) :])["messages"], owners)

    def revive(self) -> bool:
        """Start a supervisor where none runs, as every command does; return whether one was started."""
        return self.fleet.ensure_supervisor()


def kill(pid: int, number: int) -> bool:
    """Send a real signal; False when there is no such process."""
    if pid <= 0:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
