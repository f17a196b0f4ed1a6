"""The modelled world with dialogs: Hermes asks, people answer in the pane or from outside, time runs out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from orchestrator.fleet import action as act
from orchestrator.fleet.dialog import Dialog
from orchestrator.fleet.events import EventName
from orchestrator.fleet.memory import dump, load
from orchestrator.fleet.message import MessageKind, Method, digest
from orchestrator.fleet.observation import Acted, Glanced, Observation, Taken
from orchestrator.fleet.worker import Glance, PromptKind
from tests.unit.world import NAME, World

LABELS = ("Allow once", "Allow for this session", "Add to permanent allowlist", "Deny")
MEANT = ("once", "session", "always", "deny")


class Killed(Exception):
    """The supervisor was killed."""


@dataclass
class Ask:
    """A dialog of Hermes: `opened` when it is the one in the pane."""

    text: str
    kind: PromptKind = PromptKind.APPROVAL
    choices: tuple[str, ...] = LABELS
    timeout: float = 60.0
    told: bool = True
    opened: float = 0.0
    typed: str = ""
    answer: str = ""


@dataclass
class Room(World):
    """`open` are Hermes' dialogs in their order; `over` those that ended, with their answers."""

    open: list[Ask] = field(default_factory=list)
    over: list[Ask] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    at_key: Callable[[], None] | None = None
    """Happens once, between the brain's look and the key."""
    pressing: str = ""

    def work(self) -> None:
        """Come up, and begin a turn that ends when its dialogs have."""
        self.want()
        self.run(3)
        self.send("m-0", "work")
        while not (self.hermes and self.hermes.told):
            self.tick()
            self.now += 0.05
        self.hermes.turn_ends = float("inf")
        self.run(1)

    def ask(self, text: str = "rm -rf precious", **fields: object) -> Ask:
        """Have Hermes ask; behind others that are open."""
        made = Ask(text, **fields)  # type: ignore[arg-type]
        self.open.append(made)
        if made.told and made.kind is PromptKind.APPROVAL:
            self._emit(EventName.APPROVAL, surface="cli", command=text, call_id=str(id(made)))
        elif made.told:
            self._emit(
                EventName.TOOL_START,
                tool="clarify",
                question=text,
                call_id=str(id(made)),
                choices=list(made.choices[:-1]),
            )
        return made

    def answer(self, ident: str, dialog: int, choice: str, text: str = "") -> None:
        """Put a person's answer into the inbox."""
        self.order(ident, MessageKind.ANSWER)
        self.answers[ident], self.texts[ident] = (dialog, choice), text

    def end(self, ask: Ask, answer: str) -> None:
        """End a dialog, as whoever pressed a key there does."""
        self.open.remove(ask)
        ask.answer = answer
        self.over.append(ask)
        if ask.told and ask.kind is PromptKind.APPROVAL:
            self._emit(
                EventName.APPROVAL_END, surface="cli", command=ask.text, choice=answer, call_id=str(id(ask))
            )
        elif ask.told:
            self._emit(EventName.TOOL_END, tool="clarify", call_id=str(id(ask)))

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """Return what the brain takes for open."""
        return self.worker.dialogs

    def kill(self, number: int = 9) -> None:
        """Kill Hermes; its dialogs go with it."""
        self.open = []
        super().kill(number)

    def _live(self) -> None:
        super()._live()
        if not self.open:
            return
        first = self.open[0]
        first.opened = first.opened or self.now
        if self.now >= first.opened + first.timeout:
            self.end(first, "deny")

    def _glance(self) -> Glance:
        if not self.open or self.hermes is None:
            return super()._glance()
        first = self.open[0]
        first.opened = first.opened or self.now
        left = int(first.opened + first.timeout - self.now - 0.001)
        return Glance(
            first.kind,
            self.now,
            typed=first.typed,
            own=first.typed,
            dialog=f"Title\n\n{first.text}",
            choices=first.choices if first.kind is not PromptKind.OPEN_QUESTION else (),
            left=left,
        )

    def _do(self, action: act.Action) -> list[Observation]:
        match action:
            case act.Take() if action.message in self.answers:
                self.inbox[action.message] = "cur"
                (dialog, choice), text = self.answers[action.message], self.texts[action.message]
                return [
                    Taken(
                        NAME, action.token, action.message, MessageKind.ANSWER, Method.KEY, text, digest(text),
                        dialog=dialog, choice=choice,
                    )
                ]  # fmt: skip
            case act.Press() if action.guard is not None:
                return self._guarded(action)
            case act.Paste() if self.open:
                self.open[0].typed += action.line
                return []
            case act.Look():
                return [Glanced(NAME, self.worker.attempt, self._glance())]
            case _:
                return super()._do(action)

    def kill_supervisor_at_key(self, *, pressed: bool) -> None:
        """Run until a key is to be pressed, and kill the supervisor just before or just after that."""

        def die() -> None:
            if pressed:
                self.key(self.pressing)
            raise Killed

        self.at_key = die
        with suppress(Killed):
            self.run(20)
        self.at_key = None
        recorded = load(dump(self.worker))
        self.fleet = {NAME: replace(recorded, glance=None, steady_since=0.0)}

    def _guarded(self, action: act.Press) -> list[Observation]:
        self.pressing = action.keys[0]
        if self.at_key is not None:
            happens, self.at_key = self.at_key, None
            happens()
        now = self._glance()
        assert action.guard is not None
        if not now.same(action.guard) or now.left > action.guard.left or self.seen:
            return [Acted(NAME, action.token, ok=False, detail="the screen changed")]
        if self.open:
            self.key(action.keys[0])
        else:  # the Enter of a delivery
            super()._do(action)
        return [Acted(NAME, action.token)]

    def key(self, key: str) -> None:
        """Press a key in the pane, as Hermes takes it."""
        first = self.open[0]
        if key == "C-u":
            first.typed = ""
        elif first.kind is PromptKind.OPEN_QUESTION and key == "Enter":
            self.end(first, first.typed)
        elif first.kind is PromptKind.QUESTION and key == str(len(first.choices)):
            first.kind = PromptKind.OPEN_QUESTION
        elif key.isdigit():
            meant = MEANT if first.choices == LABELS else first.choices
            self.end(first, meant[int(key) - 1])
