"""Calling people to a dialog: a bell at every attached terminal, and one command of the user's.

Neither may hold up the loop or end it: terminals are opened without waiting, the command runs in a thread
that ends it in time, and settings that cannot be read are an alert.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from orchestrator.errors import HermuxError
from orchestrator.fleet.dialog import Dialog
from orchestrator.store.settings import Notify, Settings, load_settings, settings_path

log = logging.getLogger("hermux")
AT_ONCE = 4
"""Commands that run at the same time; calls beyond it wait, and the oldest `WAITING` of them are kept."""
WAITING = 64
TEXT_KEPT = 2000
SAID_KEPT = 500
"""Characters of a command's output that go to the log."""


class Notifier:
    """`redact` takes secrets out of a text; `terminals()` gives the terminals of whoever is attached."""

    def __init__(
        self,
        fleet: str,
        *,
        env: Mapping[str, str],
        terminals: Callable[[], Sequence[str]],
        redact: Callable[[str], str],
    ) -> None:
        self._fleet = fleet
        self._env = env
        self._terminals = terminals
        self._redact = redact
        self._settings = Settings()
        self._stamp: tuple[int, int] | None = None
        self._calls: list[tuple[Notify, str]] = []
        self._running = 0
        self._lock = threading.Lock()
        self.problem = ""
        """What is wrong with the settings, "" if nothing; they are as they were understood before."""
        self.problem_since = 0.0

    def look(self) -> None:
        """Read the settings again if their file changed; never raises."""
        try:
            status = settings_path(self._env).stat()
            stamp = (status.st_mtime_ns, status.st_ino)
        except OSError:
            stamp = (0, 0)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._settings, self.problem = load_settings(self._env), ""
        except Exception as error:  # whatever a person's editor left there, supervision goes on
            log.error("the settings are left as they were: %s", error)
            self.problem, self.problem_since = " / ".join(str(error).splitlines()), time.time()

    def settings(self) -> Settings:
        """Return the settings as they were last understood."""
        self.look()
        return self._settings

    def call(self, worker: str, dialog: Dialog) -> None:
        """Tell people of a dialog, as they wish it."""
        self.look()
        notify = self._settings.notify
        if notify.bell:
            self._ring()
        if notify.command:
            self._queue(notify, json.dumps(self._told(worker, dialog), ensure_ascii=False))

    def _told(self, worker: str, dialog: Dialog) -> dict[str, Any]:
        left = dialog.deadline - time.time() if dialog.deadline else None
        return {
            "schema": 1,
            "fleet": self._fleet,
            "worker": worker,
            "id": f"{worker}#{dialog.number}",
            "kind": dialog.kind,
            "text": self._redact(dialog.text)[:TEXT_KEPT],
            "choices": [self._redact(choice)[:200] for choice in dialog.choices],
            "seconds_left": None if left is None else round(max(0.0, left), 1),
        }

    def _ring(self) -> None:
        try:
            terminals = self._terminals()
        except HermuxError as error:
            log.warning("who is attached could not be asked: %s", error)
            return
        for terminal in terminals:
            with suppress(OSError):  # it was closed, or its reader stands still
                handle = os.open(terminal, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
                try:
                    os.write(handle, b"\a")
                finally:
                    os.close(handle)

    def _queue(self, notify: Notify, text: str) -> None:
        with self._lock:
            self._calls.append((notify, text))
            if len(self._calls) > WAITING:
                log.warning(
                    "%d calls for a person wait for %s: the oldest is dropped", WAITING, notify.command[0]
                )
                self._calls.pop(0)
            if self._running >= AT_ONCE:
                return
            self._running += 1
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._calls:
                    self._running -= 1
                    return
                notify, text = self._calls.pop(0)
            try:
                said = run(notify, text, self._env)
            except Exception:
                log.exception("%s", notify.command[0])
                continue
            if said:
                log.info("%s: %s", notify.command[0], self._redact(said))


def run(notify: Notify, text: str, env: Mapping[str, str]) -> str:
    """Run the command with a text on its standard input; return what is to be logged, "" for nothing.

    It and what it started is killed after the timeout; what it prints is bounded.
    """
    try:
        process = subprocess.Popen(
            notify.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot be run: {error.strerror or error}"
    watch = threading.Timer(notify.timeout, _end, [process])
    watch.daemon = True
    watch.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError), process.stdin:
            process.stdin.write(text.encode("utf-8", "replace") + b"\n")
        printed = process.stdout.read(SAID_KEPT)
        while process.stdout.read(65536):
            pass
        code = process.wait()
    finally:
        watch.cancel()
        process.stdout.close()  # type: ignore[union-attr]
    words = " ".join(printed.decode("utf-8", "replace").split())
    ended = "" if code == 0 else f"ended by signal {-code}" if code < 0 else f"exit {code}"
    return "; ".join(filter(None, [ended, words]))


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
