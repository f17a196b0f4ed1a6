"""A real Hermes on a terminal of its own, outside tmux: its prompt stands, and one turn is done.

It gets a throw-away profile that is made and started exactly as a worker's is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.doctor.check import Trouble
from orchestrator.doctor.foreign import oauth_error
from orchestrator.doctor.place import end_all
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.proxy import worker_network
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.hermes.feed import Feed
from orchestrator.hermes.home import write_home
from orchestrator.hermes.launch import read_exit, render_launch
from orchestrator.store.env import write_env
from orchestrator.store.paths import WorkerPaths, make_private
from orchestrator.store.redact import KEY_VARIABLE
from orchestrator.terminal.environment import server_env

PROMPT_LIMIT = 120.0
"""Seconds until the prompt stands: 2 on an idle machine, 15 to 60 were seen on loaded ones."""
TURN_LIMIT = 150.0
"""Seconds for the turn, whose first request has 13,600 tokens of prompt and tools."""
QUIET = 0.5
"""Seconds without output after which the prompt counts as drawn."""
PAUSE = 0.4
"""Seconds between text and Enter: 0.22 takes an Enter within 50 ms as a line break."""
AGAIN = 5.0
"""Seconds after which an Enter that had no effect is given once more."""
NAME, FLEET = "doctor", "doctor"
QUESTION = "Answer with the one word: ready"
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_].*?\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
)
_TORN = re.compile(r"\x1b(?:\][^\x07\x1b]*|\[[0-?]*[ -/]*)?$")
_PROMPT = re.compile(r"(?:^|[\r\n])[^\r\n]{0,80}❯ ")
_FIRST_RUN = re.compile(r"Run setup now\? \[Y/n\]|→ \([●○]\) ")


@dataclass(slots=True)
class RealHermes:
    """One Hermes on a pseudo-terminal. Use it within `with`; times are in seconds."""

    folder: Path
    hermes: Path
    endpoint: Endpoint
    key: str = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    _child: Any = None
    _feed: Feed | None = None
    _events: list[Event] = field(default_factory=list)
    _tail: str = ""
    """The newest output, without escape sequences."""
    _torn: str = ""
    """The beginning of an escape sequence whose end has not come yet."""
    _last_output: float = 0.0

    def __enter__(self) -> RealHermes:
        import pexpect

        script = self._made()
        self._child = pexpect.spawn(
            str(script),
            ["1"],
            env={
                **server_env(self.env),
                "TERM": "xterm-256color",
                "TMPDIR": str(make_private(self.folder / "tmp")),
            },
            cwd=str(self.folder / "work"),
            dimensions=(40, 120),
            encoding="utf-8",
            codec_errors="replace",
        )
        self._last_output = time.monotonic()
        return self

    def __exit__(self, *failure: object) -> None:
        from orchestrator.doctor.place import undisturbed

        with undisturbed():
            if self._child is not None:
                end_all(self.folder)
                self._child.close(force=True)
            if self._feed is not None:
                self._feed.close()

    @property
    def worker(self) -> WorkerPaths:
        return WorkerPaths(self.folder / "worker")

    def wait_prompt(self, limit: float = PROMPT_LIMIT) -> float:
        """Return the seconds until the prompt stood; raises Trouble with what Hermes said instead."""
        begun = time.monotonic()
        while time.monotonic() - begun < limit:
            self._read()
            quiet = time.monotonic() - self._last_output > QUIET
            if self._saw(EventName.PLUGIN_LOADED) and quiet and _PROMPT.search(self._tail):
                return self._last_output - begun
            if _FIRST_RUN.search(self._tail) and quiet:
                raise Trouble("Hermes asks a first-run question in place of its prompt", hint=_REPORT)
        plugin = "" if self._saw(EventName.PLUGIN_LOADED) else "; the plugin did not report"
        raise Trouble(
            f"no prompt within {limit:g} s{plugin}; on the screen: {self._words()!r}",
            hint="is the machine overloaded? try: uptime ; then once more: hermux doctor",
        )

    def one_turn(self, limit: float = TURN_LIMIT) -> tuple[float, str]:
        """Ask one question; return the seconds and the answer. Raises Trouble with the endpoint's error."""
        begun, entered = time.monotonic(), 0
        self._child.send(QUESTION)
        self._settle(PAUSE)
        while time.monotonic() - begun < limit:
            if not self._saw(EventName.TURN_START) and time.monotonic() - begun > entered * AGAIN:
                self._child.send("\r")
                entered += 1
            self._read()
            for event in self._events:
                if event.name is EventName.TURN_ANSWER:
                    return time.monotonic() - begun, str(event.data.get("preview") or "")
            if (error := self._error()) and self._prompt_is_back():
                raise _failed(error)
        error = self._error()
        if error is not None:
            raise _failed(error)
        raise Trouble(
            f"the turn was not done within {limit:g} s",
            hint="the model is slow or hangs: hermux doctor --timeout 300",
        )

    def _made(self) -> Path:
        """Write profile, environment and script as for a worker, and return the script."""
        spec = WorkerSpec(
            NAME,
            "general",
            str(make_private(self.folder / "work")),
            f"hx-{FLEET}-{NAME}",
            self.endpoint,
            hermes=str(self.hermes),
            hermes_root=str(self.folder / "hermes"),
        )
        write_home(self.folder / "hermes", spec, soul="You answer as short as you can.\n", key=bool(self.key))
        worker = self.worker.make()
        network = worker_network({}, self.env)
        write_env(worker, {**network, **({KEY_VARIABLE: self.key} if self.key else {})})
        script = render_launch(
            worker.dir,
            spec,
            fleet=FLEET,
            wake=self.folder / "wake",
            hermes=self.hermes,
            hermes_root=self.folder / "hermes",
        )
        worker.launch.write_text(script)
        worker.launch.chmod(0o700)
        self._feed = Feed(worker.events)
        return worker.launch

    def _read(self) -> None:
        """Take in output and events; raises Trouble when Hermes has ended."""
        import pexpect

        assert self._feed is not None
        ended = False
        try:
            text = self._torn + self._child.read_nonblocking(65536, 0.1)
            whole = _TORN.sub("", text)
            self._torn = text[len(whole) :]
            self._tail = (self._tail + _ESCAPES.sub("", whole))[-4000:]
            self._last_output = time.monotonic()
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            ended = True
        self._events += self._feed.read()
        if ended:
            raise Trouble(f"Hermes ended ({self._outcome()}): {self._words()!r}", hint=_REPORT)

    def _settle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()

    def _saw(self, name: EventName) -> bool:
        return any(event.name is name for event in self._events)

    def _error(self) -> Event | None:
        errors = [event for event in self._events if event.name is EventName.REQUEST_ERROR]
        return errors[-1] if errors else None

    def _prompt_is_back(self) -> bool:
        """Hermes rings once when a main turn is over, however it ended (display.bell_on_complete)."""
        return "\x07" in self._tail.rpartition(QUESTION)[2]

    def _outcome(self) -> str:
        found = read_exit(self.worker.attempt(1))
        if found is None:
            return "how is not known"
        return found.why or (f"exit {found.code}" if found.code is not None else f"signal {found.signal}")

    def _words(self) -> str:
        """Return the last readable words of the output, in a line."""
        kept = re.sub(r"[─-╿▀-▟⠀-⣿\x00-\x1f]+", " ", self._tail).replace(self.key or "\0", "[redacted]")
        return " ".join(kept.split())[-160:]


def _failed(error: Event) -> Trouble:
    said = " ".join(str(error.data.get("error") or error.data.get("reason") or "no word of why").split())[
        :160
    ]
    hint = oauth_error(said) or _next_of(said, error.data.get("status"))
    status = f"HTTP {error.data['status']}: " if error.data.get("status") else ""
    return Trouble(f"the turn failed: {said if said.startswith('HTTP') else status + said}", hint=hint)


def _next_of(said: str, status: object) -> str:
    """Return what to do about a turn that failed although the small requests before it did not."""
    if re.search(r"context|max_tokens|too long|too large", said, re.IGNORECASE):
        return "give the server a longer context: prompt and tools alone take 13,600 tokens, see the check 'context'"
    if status in (401, 403):
        return (
            "another key reaches Hermes: look for one in a .env file of Hermes, see the check 'environment'"
        )
    if "onnection" in said:
        return (
            "something leads Hermes elsewhere: env | grep -iE 'proxy|base_url' ; see the check 'environment'"
        )
    return "small requests are answered, Hermes' large ones are not: look into the server's log"


_REPORT = "run Hermes by itself in this shell, it says more: hermes --version ; hermes doctor"
