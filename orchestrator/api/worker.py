"""One worker, as scripts and commands see it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.api.follow import Answer, Follow, Product, check_products, check_takes
from orchestrator.api.picture import read_picture
from orchestrator.api.ready import Say, quiet
from orchestrator.errors import NotReady, UnknownWorker, UsageError
from orchestrator.store import inbox

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.fleet.message import Message, MessageKind

CHARACTERS_A_TOKEN = 4
"""A usual ratio for English text; only for warnings."""


class Worker:
    """A worker of a fleet; `name` is all that is kept, everything else is read when asked for."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.fleet = fleet
        self.name = name
        self.paths = fleet.paths.worker(name)

    def __repr__(self) -> str:
        return f"<Worker {self.name} of fleet {self.fleet.name}>"

    def state(self) -> dict[str, Any]:
        """Return the worker's entry of the picture; raises UnknownWorker when it is gone."""
        found = read_picture(self.fleet.paths).workers.get(self.name)
        if found is None:
            raise UnknownWorker(f"no worker {self.name!r} in fleet {self.fleet.name}")
        return found

    def send(self, text: str, *, slash: bool = False, sender: str = "api") -> str:
        """Queue a text and return its message id; it is on disk then, and delivered when the worker is ready.

        With `slash` it is a Hermes command and starts with "/". Raises UsageError for a text that is empty
        or no UTF-8.
        """
        from orchestrator.api.order import check_text
        from orchestrator.fleet.message import MessageKind

        bare, changed = check_text(text)
        if slash and (not bare.startswith("/") or "\n" in bare):
            raise UsageError(
                "a command for Hermes is one line that starts with '/'", hint="without --slash it is a text"
            )
        kind = MessageKind.SLASH if slash else MessageKind.TEXT
        return self._put(kind, text=bare, changed=changed, sender=sender)

    def warnings(self, text: str) -> list[str]:
        """Return what a person should know before sending a text: over half the context, or a worker on hold."""
        worker = self.state()
        context = int((worker.get("endpoint") or {}).get("context_length") or 0)
        told = []
        if context and len(text) / CHARACTERS_A_TOKEN > context / 2:
            told.append(
                f"{self.name}: about {len(text) / CHARACTERS_A_TOKEN:,.0f} tokens, more than half of its context of {context:,}"
            )
        if worker.get("want") != "run":
            told.append(
                f"{self.name} is to be {worker.get('want')}: the message waits → hermux start {self.name}"
            )
        elif worker.get("word") == "held":
            told.append(
                f"{self.name} is held ({worker.get('why')}): the message waits → hermux why {self.name}"
            )
        return told

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages that are queued or being delivered, oldest first."""
        waiting = [("cur", each) for each in inbox.current(self.paths)] + [
            ("new", each) for each in inbox.list_new(self.paths)
        ]
        return [
            {
                "id": each.id,
                "place": place,
                "kind": str(each.kind),
                "created": each.created,
                "sender": each.sender,
                "bytes": len(each.text.encode()),
                "preview": " ".join((each.text or " ".join(each.keys)).split())[:60],
            }
            for place, each in waiting
        ]

    def interrupt(self, *, sender: str = "api") -> str:
        """Ask for the running turn to be stopped; returns the message id."""
        from orchestrator.fleet.message import MessageKind

        return self._put(MessageKind.INTERRUPT, sender=sender)

    def keys(self, keys: Sequence[str], *, sender: str = "api") -> str:
        """Have keys typed by their tmux names (`Enter`, `C-c`, `Escape`, `x`); returns the message id."""
        from orchestrator.fleet.keys import check_keys
        from orchestrator.fleet.message import MessageKind

        check_keys(keys)
        return self._put(MessageKind.KEYS, keys=tuple(keys), sender=sender)

    def answer_dialog(self, number: int, choice: str, *, text: str = "", sender: str = "api") -> str:
        """Queue an answer to one dialog; returns the message id. `api.people` checks it first.

        `choice` is once, session, always, deny, `choice` (`text` is its number) or `text`.
        """
        from orchestrator.fleet.message import MessageKind

        return self._put(MessageKind.ANSWER, text=text, sender=sender, dialog=number, choice=choice)

    def ask(
        self,
        text: str,
        *,
        timeout: float | None = None,
        produces: Sequence[str] = (),
        say: Say = quiet,
        sender: str = "api",
        sent: list[str] | None = None,
    ) -> Answer:
        """Send a text and return the answer, of delegated children too.

        `produces` are files that must have been written by then, relative to the worker's working directory.
        The message's id is appended to `sent` as soon as it is queued.
        Raises WorkerFailed, PersonNeeded, TimedOut (`timeout` in seconds); the message stays as it is then.
        """
        self.fleet.ensure_supervisor()
        worker = self.state()
        check_takes(self.name, worker)
        products = [Product.of(path, str(worker.get("cwd", ""))) for path in produces]
        follow = Follow(self.fleet.paths, self.name)
        message_id = self.send(text, sender=sender)
        if sent is not None:
            sent.append(message_id)
        revive = self.fleet.ensure_supervisor
        answer = follow.answer(message_id, timeout=timeout, say=say, revive=revive)
        return check_products(answer, products)

    def wait(self, *, state: str = "", timeout: float | None = None) -> dict[str, Any]:
        """Wait until the worker has nothing left to do, or until its state word is `state`; see Fleet.wait."""
        return self.fleet.wait([self.name], state=state, timeout=timeout)[self.name]

    def peek(self, lines: int = 30, *, history: bool = False, ansi: bool = False) -> str:
        """Return the last `lines` rows of the screen; raises TerminalError when the worker has none."""
        from orchestrator.store.redact import keys_of, redact

        where = str(self.state().get("pane") or self.name)
        screen = str(self.fleet.server().capture(where, lines, history=history, ansi=ansi))
        return redact(screen, keys_of(self.fleet.paths, [self.name]))

    def transcript(self, last: int = 0) -> list[dict[str, Any]]:
        """Return the recorded turns, or the `last` ones, oldest first.

        Each has the fields of `turns[]` in `transcript --json`: `turn`, `began`, `state`, `user`, `answer`,
        `steps`, … All words are in memory then; `read_transcript` hands them out one by one.
        """
        from orchestrator.api.transcript import read_transcript

        return list(read_transcript(self.fleet, self.name, last=last).documents())

    def events(
        self, *, since: float = 0.0, tail: int | None = None, follow: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the lines that the plugin wrote, oldest first; `since` is seconds since the epoch.

        With `tail` only the last so many of those on disk; with `follow` those that come too, for ever.
        """
        from orchestrator.api.lines import lines

        return lines(
            self.paths.events,
            clock="t",
            keep=lambda line: line.get("event") != "feed",
            since=since,
            tail=tail,
            follow=follow,
        )

    def log(
        self, *, since: float = 0.0, tail: int | None = None, follow: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the journal's lines about this worker, oldest first; `since`, `tail`, `follow` as in events."""
        from orchestrator.api.lines import lines

        return lines(
            self.fleet.paths.journal,
            clock="time",
            keep=lambda line: line.get("worker") == self.name,
            since=since,
            tail=tail,
            follow=follow,
        )

    def start(self, *, wait: bool = True, say: Say = quiet) -> None:
        """Start it, or lift a hold; its conversation goes on."""
        self.fleet.start([self.name], wait=wait, say=say)

    def restart(self, *, wait: bool = True, say: Say = quiet) -> None:
        """End its process and start it again, in the same conversation."""
        self.fleet.restart([self.name], wait=wait, say=say)

    def stop(self, *, grace: float = 10.0, wait: bool = True, say: Say = quiet) -> None:
        """End its process; everything it learned stays."""
        self.fleet.stop([self.name], grace=grace, wait=wait, say=say)

    def drain(self, *, wait: bool = True, timeout: float | None = None, say: Say = quiet) -> None:
        """Have it finish what it is doing and then stop. See Fleet.drain."""
        self.fleet.drain([self.name], wait=wait, timeout=timeout, say=say)

    def pause(self, *, wait: bool = True, say: Say = quiet) -> int:
        """End its process and keep everything, a cut turn too; returns the bytes freed. See Fleet.pause."""
        return self.fleet.pause([self.name], wait=wait, say=say)

    def remove(self, *, purge: bool = False) -> None:
        """Forget it; it must be stopped. See Fleet.remove."""
        self.fleet.remove([self.name], purge=purge)

    def _put(self, kind: MessageKind, *, sender: str, **fields: Any) -> str:
        from orchestrator.fleet.message import Message
        from orchestrator.store.wake import poke

        if not self.paths.inbox_new.is_dir():
            raise NotReady(
                f"{self.name} has no inbox: {self.paths.inbox_new}", hint=f"hermux why {self.name}"
            )
        message: Message = Message(
            id=inbox.new_id(),
            worker=self.name,
            kind=kind,
            text=fields.pop("text", ""),
            created=time.time(),
            sender=sender,
            **fields,
        )
        inbox.put(self.paths, message)
        poke(self.fleet.paths.wake)
        return message.id
