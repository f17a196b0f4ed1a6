"""Asking a worker: its message is followed to the end of its turn, and the answer is returned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.api.picture import seconds_left, span
from orchestrator.api.ready import Say, pictures, quiet
from orchestrator.errors import PersonNeeded, TimedOut, WorkerFailed
from orchestrator.store import inbox
from orchestrator.store.paths import FleetPaths

if TYPE_CHECKING:
    from orchestrator.api.picture import Picture
    from orchestrator.api.track import Track
    from orchestrator.fleet.events import Event
    from orchestrator.hermes.feed import Feed

IDLE = 5.0
"""Seconds for which a worker must have been ready before a turn of its own is no longer expected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker answered, and how it came about."""

    text: str
    worker: str
    message: str
    """Id of the message that was sent."""
    turn: str
    """The turn that gave the answer; of several, the last."""
    session: str = ""
    seconds: float = 0.0
    """From sending to the end of the turn."""
    tokens_in: int = 0
    tokens_out: int = 0
    tools: tuple[str, ...] = ()
    """Tools called, in order, those of children left out."""
    delegations: int = 0
    truncated: bool = False
    """The answer was longer than what is kept (4 MiB)."""
    receipt: dict[str, Any] | None = None
    produced: tuple[str, ...] = ()
    """Files that were asked for and are there."""


CHOICES_WITHIN = 1.5
"""Seconds: the event of a dialog comes a moment before the screen that shows its choices is read."""


SHOWN_WITHIN = 1.0
"""Seconds for which an answer waits for `state.json` to show its turn's end, so that `ls` after `ask` knows of it."""


class Follow:
    """One message that was just sent to a worker; make it before sending."""

    def __init__(self, paths: FleetPaths, name: str) -> None:
        from orchestrator.hermes.feed import Feed

        self.paths, self.name = paths, name
        self.worker = paths.worker(name)
        self.begun = time.time()
        self.feed: Feed = Feed(self.worker.events)
        self.feed.read()
        self.early: list[Event] = []
        self.track: Track | None = None
        self.receipt: dict[str, Any] = {}

    def answer(
        self,
        message_id: str,
        *,
        timeout: float | None = None,
        say: Say = quiet,
        revive: Callable[[], object] | None = None,
    ) -> Answer:
        """Wait for the answer to a message.

        Raises WorkerFailed (its turn failed or was interrupted; it is held, stopped or gone), PersonNeeded
        with the dialog's text, TimedOut after `timeout` seconds. The message and its turn go on regardless.
        """
        told, ended = "", 0.0
        try:
            for picture in pictures(self.paths, timeout=timeout, revive=revive):
                self._deliver(message_id)
                worker = picture.workers.get(self.name)
                if self._finished(worker):
                    ended = ended or time.monotonic()
                    if self._shown(worker) or time.monotonic() - ended > SHOWN_WITHIN:
                        return self._answer(message_id)
                    continue
                self._trouble(picture, message_id)
                if (why := _waits(worker)) != told:
                    told = why
                    if why:
                        say(self.name, why)
        finally:
            self.feed.close()
        raise TimedOut(
            f"no answer from {self.name} within {timeout:g} s; message {message_id} {self._whereabouts(message_id)}",
            hint=f"hermux why {self.name}",
        )

    def _deliver(self, message_id: str) -> None:
        """See whether the message was taken, and read on in the feed."""
        events = self.feed.read()
        if self.track is not None:
            for event in events:
                self.track.add(event)
            return
        self.early += events
        found = inbox.look(self.worker, message_id)
        if found is None or found.place in ("new", "cur"):
            return
        if found.place == "failed":
            error = found.data.get("error", "it failed")
            raise WorkerFailed(
                f"message {message_id} was not delivered: {error}", hint=f"hermux why {self.name}"
            )
        self.receipt = found.data.get("receipt") or {}
        self.track = self._tracked()

    def _tracked(self) -> Track | None:
        from orchestrator.api.track import Track

        turn = str(self.receipt.get("turn") or "") or _turn_of(self.early, str(self.receipt.get("sha256")))
        if not turn:
            return None
        track = Track(turn)
        for event in self.early:
            track.add(event)
        return track

    def _finished(self, worker: dict[str, Any] | None) -> bool:
        track = self.track
        if track is None:
            return False
        last = (worker or {}).get("last_turn") or {}
        if last.get("turn") in track.turns[-1:] and last.get("outcome") in ("failed", "interrupted"):
            self._raise_failed(str(last.get("outcome")), str(last.get("error") or track.error))
        if track.interrupted or track.failed:
            self._raise_failed("interrupted" if track.interrupted else "failed", track.error)
        return track.done or (track.settling and _idle(worker))

    def _shown(self, worker: dict[str, Any] | None) -> bool:
        """Whether the picture knows that the turn is over; a worker that was removed has none."""
        last = (worker or {}).get("last_turn") or {}
        return worker is None or self.track is None or last.get("turn") in self.track.turns[-1:]

    def _raise_failed(self, outcome: str, error: str) -> None:
        what = "was interrupted" if outcome == "interrupted" else f"failed: {error or 'no reason was given'}"
        raise WorkerFailed(f"the turn of {self.name} {what}", hint=f"hermux why {self.name}")

    def _trouble(self, picture: Picture, message_id: str) -> None:
        worker = picture.workers.get(self.name)
        left = f"message {message_id} {self._whereabouts(message_id)}"
        if worker is None:
            raise WorkerFailed(f"{self.name} was removed")
        finishes = worker.get("draining") and self.track is not None
        if worker.get("want") != "run" and not finishes:
            raise WorkerFailed(
                f"{self.name} is to be {worker.get('want')}; {left}", hint=f"hermux start {self.name}"
            )
        if worker.get("phase") == "held" or (worker.get("word") == "held" and _for(worker, IDLE)):
            raise WorkerFailed(
                f"{self.name} is held: {worker.get('why')}; {left}", hint=f"hermux why {self.name}"
            )
        waiting = worker.get("waiting")
        if waiting and _readable(waiting):
            raise PersonNeeded(dialog_text(self.name, waiting), hint=dialog_hint(self.name, waiting))
        if self.receipt and _idle(worker, IDLE):
            self._unfollowed(worker)

    def _unfollowed(self, worker: dict[str, Any]) -> None:
        """Raise WorkerFailed for an idle worker whose turn has no end in the feed."""
        hint = f"hermux peek {self.name}"
        if self.track is None:
            raise WorkerFailed(f"{self.name} took the message, but its plugin does not report", hint=hint)
        if not self.track.ended and int(worker.get("attempt") or 0) > self.track.attempt > 0:
            raise WorkerFailed(f"{self.name} crashed in this turn and did not go on with it", hint=hint)

    def _whereabouts(self, message_id: str) -> str:
        found = inbox.look(self.worker, message_id)
        place = found.place if found else ""
        return {"new": "is still queued", "cur": "is being delivered", "done": "was delivered"}.get(
            place, "is gone"
        )

    def _answer(self, message_id: str) -> Answer:
        from orchestrator.hermes.feed import read_turn

        track = self.track
        if track is None:
            raise AssertionError("finished without a turn")
        content = read_turn(self.worker.dir, track.turn)
        if content is None or not content.get("done", True):
            raise WorkerFailed(
                f"the turn of {self.name} ended, but its answer was not recorded",
                hint=f"hermux peek {self.name}",
            )
        return Answer(
            text=str(content.get("answer") or ""),
            worker=self.name,
            message=message_id,
            turn=track.turn,
            session=str(content.get("session") or ""),
            seconds=round(time.time() - self.begun, 3),
            tokens_in=track.tokens_in,
            tokens_out=track.tokens_out,
            tools=tuple(track.tools),
            delegations=track.delegated,
            truncated=bool(content.get("truncated")),
            receipt=self.receipt,
        )


@dataclass(frozen=True, slots=True)
class Product:
    """A file that a turn is to write, and what was there before."""

    path: Path
    before: tuple[int, int, int]

    @classmethod
    def of(cls, path: str, cwd: str) -> Product:
        """Note a file as it is now; a relative path is below the worker's working directory."""
        full = Path(cwd) / Path(path).expanduser()
        return cls(full, _fingerprint(full))

    @property
    def made(self) -> bool:
        """Whether the file is there and was written since."""
        now = _fingerprint(self.path)
        return now != (0, 0, 0) and now != self.before


def check_products(answer: Answer, products: Sequence[Product]) -> Answer:
    """Return the answer with its files; raises WorkerFailed when one was not written."""
    from orchestrator.api.track import WRITERS

    missing = [product for product in products if not product.made]
    if missing:
        what = "is not there" if not missing[0].path.exists() else "was not written in this turn"
        wrote = any(tool in WRITERS for tool in answer.tools)
        why = "" if wrote else "; no tool that writes was called"
        raise WorkerFailed(f"{missing[0].path} {what}{why}", hint=f"hermux peek {answer.worker}")
    return replace(answer, produced=tuple(str(product.path) for product in products))


def check_takes(name: str, worker: dict[str, Any]) -> None:
    """Raise WorkerFailed for a worker that would leave a message in its inbox: nothing was sent then."""
    if worker.get("want") != "run":
        word = "draining" if worker.get("draining") else worker.get("word")
        raise WorkerFailed(f"{name} is {word}; nothing was sent", hint=f"hermux start {name}")
    if worker.get("word") == "held":
        raise WorkerFailed(
            f"{name} is held: {worker.get('why')}; nothing was sent", hint=f"hermux why {name}"
        )


def dialog_text(name: str, waiting: dict[str, Any]) -> str:
    """Return what a worker asks a person, as one text."""
    kind = str(waiting.get("kind", "")).replace("_", " ")
    left, ident = seconds_left(waiting), waiting.get("id")
    told = ", ".join(filter(None, [kind, str(ident or ""), f"{span(left)} left" if left is not None else ""]))
    choices = [f"  {number}. {choice}" for number, choice in enumerate(waiting.get("choices") or (), start=1)]
    return "\n".join([f"{name} waits for a person ({told}): {waiting.get('text', '')}".rstrip(), *choices])


def dialog_hint(name: str, waiting: dict[str, Any]) -> str:
    """Return what to type to answer a dialog."""
    return answers(name, waiting)[0]


def answers(name: str, waiting: dict[str, Any]) -> list[str]:
    """Return the commands that answer a dialog, the most useful first."""
    ident, kind = waiting.get("id"), waiting.get("kind")
    there = f"hermux attach {name}"
    if not ident or kind in ("sudo", "secret"):
        return [there]
    if kind in ("approval", "confirm"):
        return [f"hermux approve {ident}, or hermux deny {ident}", there]
    pick = f"hermux answer {ident} --choice N, or " if waiting.get("choices") else ""
    return [f"{pick}hermux answer {ident} TEXT", there]


def _idle(worker: dict[str, Any] | None, seconds: float = IDLE) -> bool:
    if not worker or worker.get("word") not in ("ready", "failed") or worker.get("background"):
        return False
    return _for(worker, seconds)


def _readable(waiting: dict[str, Any]) -> bool:
    """Whether the dialog's choices were read off the screen, or there was time enough for it."""
    since = float(waiting.get("since") or 0)
    return bool(waiting.get("choices")) or time.time() - since > CHOICES_WITHIN


def _for(worker: dict[str, Any], seconds: float) -> bool:
    """Whether the worker has shown its state for so long."""
    return time.time() - float(worker.get("since") or 0) > seconds


def _waits(worker: dict[str, Any] | None) -> str:
    """Return why a message is not delivered yet, "" when only its turn has to come."""
    if not worker:
        return ""
    if worker.get("operation"):
        return ""
    if worker.get("intake") == "paused":
        return f"takes no messages: {worker.get('intake_why')}"
    if worker.get("phase") in ("starting", "backoff", "pending"):
        return f"is {worker.get('phase')}" + (f": {worker['why']}" if worker.get("why") else "")
    return ""


def _turn_of(events: Sequence[Event], digest: str) -> str:
    from orchestrator.fleet.events import EventName

    starts = (each for each in events if each.name is EventName.TURN_START and each.main)
    return next((each.turn for each in starts if each.data.get("sha256") == digest), "")


def _fingerprint(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
