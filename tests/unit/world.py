"""A model of everything outside the brain: tmux, Hermes, its database, the inbox, the clock.

It carries out the brain's actions as the real ones do, with the same freedom to be late, to lose a
process, and to have a person at the keyboard. Nothing of the brain is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.fleet import action as act
from orchestrator.fleet.decide import decide
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.memory import dump, load
from orchestrator.fleet.message import MessageKind, Method, digest
from orchestrator.fleet.observation import (
    Acted,
    Autopsied,
    DesiredSeen,
    Glanced,
    Gone,
    InboxSeen,
    Launched,
    Observation,
    PaneSeen,
    Said,
    Swept,
    Taken,
    Wanted,
)
from orchestrator.fleet.spec import Endpoint, RestartPolicy, StallPolicy, WorkerSpec
from orchestrator.fleet.worker import (
    Glance,
    Head,
    Life,
    Outcome,
    OutcomeKind,
    PromptKind,
    Want,
    Worker,
)

NAME = "coder-1"
BOOT = 1.5
THINK = 0.6


def spec(name: str = NAME) -> WorkerSpec:
    """Return a plain spec."""
    return WorkerSpec(
        name=name,
        role="coder",
        cwd="/tmp",
        hermes_profile=f"hx-default-{name}",
        endpoint=Endpoint("http://127.0.0.1:1/v1", "m", 131072),
    )


@dataclass
class Hermes:
    """One process of Hermes: what its screen shows and what it has been asked."""

    pid: int
    born: float
    session: str
    resumed: bool
    prompt: str = ""
    turn_ends: float = 0.0
    asked: str = ""
    stored: bool = False
    told: bool = False
    loaded: bool = False
    answered: int = 0


@dataclass
class World:
    """One worker's world. `log` keeps every action; `db` the user messages by session."""

    now: float = 1000.0
    fleet: Mapping[str, Worker] = field(default_factory=dict)
    hermes: Hermes | None = None
    db: list[tuple[str, str]] = field(default_factory=list)
    inbox: dict[str, str] = field(default_factory=dict)
    """new, cur, done or failed, by message id."""
    texts: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, MessageKind] = field(default_factory=dict)
    seen: list[Observation] = field(default_factory=list)
    log: list[act.Action] = field(default_factory=list)
    offset: int = 0
    pids: int = 100
    turns: int = 0
    lag: float = 0.0
    """Seconds after which Hermes shows what was pasted."""
    late: list[tuple[float, str]] = field(default_factory=list)
    deaf: int = 0
    """So many Enters are swallowed."""
    plugin: bool = True
    unfinished: bool = False
    """The last life ended in the middle of a turn that its database knows of."""
    gone: set[str] = field(default_factory=set)
    """Sessions that cannot be resumed: the next launch finds that out."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    stall: StallPolicy = field(default_factory=StallPolicy)
    hung: bool = False
    """Turns do not end, and an interrupt is not heard."""
    output: int = 1
    """Digest of the lines above the prompt."""

    def want(
        self, want: Want = Want.RUN, generation: int = 1, renew: int = 0, *, drain: bool = False
    ) -> None:
        """Edit what is desired."""
        wanted = replace(spec(), restart=self.restart, stall=self.stall)
        self.seen.append(DesiredSeen({NAME: Wanted(wanted, want, generation, 10.0, renew, drain=drain)}))

    @property
    def worker(self) -> Worker:
        """Return the brain's picture of the worker."""
        return self.fleet[NAME]

    def send(self, ident: str, text: str) -> None:
        """Put a message into the inbox."""
        self.inbox[ident], self.texts[ident] = "new", text

    def order(self, ident: str, kind: MessageKind) -> None:
        """Put an interrupt into the inbox."""
        self.inbox[ident], self.texts[ident], self.kinds[ident] = "new", "", kind

    def heads(self) -> tuple[Head, ...]:
        """Return what waits."""
        new = sorted(i for i in self.inbox if self.inbox[i] == "new")
        return tuple(Head(i, self.kinds.get(i, MessageKind.TEXT)) for i in new)

    def run(self, seconds: float, *, step: float = 0.1) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self.now < end:
            self.tick()
            self.now += step

    def tick(self) -> None:
        """One turn of the loop."""
        self._live()
        seen: list[Observation] = [*self.seen, InboxSeen(NAME, self.heads())]
        self.seen = []
        if self.hermes is not None:
            seen.append(PaneSeen(NAME, self.worker.attempt, 0, int(self.now), False))
        for _ in range(24):
            self.fleet, actions = decide(self.fleet, seen, self.now)
            self.log += actions
            seen = [answer for action in actions for answer in self._do(action)]
            if not seen:
                return

    def kill(self, number: int = 9) -> None:
        """Kill Hermes."""
        if self.hermes is None:
            return
        self.unfinished = bool(self.hermes.asked and self.hermes.stored)
        self.hermes = None
        self.seen.append(
            Gone(NAME, self.worker.attempt, Outcome(OutcomeKind.SIGNALLED, number), "last words")
        )

    def leave(self) -> None:
        """Let a person end Hermes in its pane."""
        self._emit(EventName.SESSION_FINALIZE, by="person")
        self.hermes = None
        self.seen.append(Gone(NAME, self.worker.attempt, Outcome(OutcomeKind.EXITED)))

    def overflow(self) -> None:
        """Let the running turn fail, since the conversation is too long."""
        assert self.hermes is not None and self.hermes.asked
        self._emit(EventName.REQUEST_ERROR, status=400, reason="context_overflow", error="too long")
        self.hermes.asked = ""

    def kill_supervisor(self, after: int) -> None:
        """Kill the supervisor when `after` actions of the next turn were carried out, and start another."""
        self._live()
        self.fleet, actions = decide(self.fleet, [*self.seen, InboxSeen(NAME, self.heads())], self.now)
        self.seen = []
        recorded = {name: load(dump(worker)) for name, worker in self.fleet.items()}
        launched = False
        for action in actions[:after]:
            launched = launched or isinstance(action, act.Launch)
            self._do(action)
        worker = recorded[NAME]
        if worker.op is not None and worker.op.step in ("settle", "sweep", "take"):
            worker = replace(worker, op=replace(worker.op, deadline=0.0))
        if worker.op is not None and worker.op.step == "launch" and self.hermes is not None and launched:
            worker = replace(worker, op=None, life=self._life())
        elif worker.op is not None and worker.op.step == "launch":
            from orchestrator.fleet.worker import Phase

            worker = replace(worker, op=None, phase=Phase.PENDING)
        self.fleet = {NAME: replace(worker, glance=None, steady_since=0.0)}
        if worker.life is not None and self.hermes is None:
            self.seen.append(Gone(NAME, worker.attempt, Outcome(OutcomeKind.UNKNOWN)))

    def _life(self) -> Life:
        assert self.hermes is not None
        return Life("%1", self.hermes.pid, float(self.hermes.pid), self.now)

    def _emit(self, name: EventName, **data: object) -> None:
        if not self.plugin or self.hermes is None:
            return
        self.offset += 100
        session = "" if name is EventName.PLUGIN_LOADED else self.hermes.session
        event = Event(
            name, self.now, self.hermes.pid, self.worker.attempt, session, "cli", f"t{self.turns}",
            dict(data), self.offset,
        )  # fmt: skip
        self.seen.append(Said(NAME, (event,)))

    def _store(self) -> None:
        assert self.hermes is not None
        self.db.append((self.hermes.session, self.hermes.asked))
        self.hermes.stored = True

    def _live(self) -> None:
        """Let Hermes do what is due."""
        hermes = self.hermes
        if hermes is None:
            return
        for due, text in list(self.late):
            if self.now >= due:
                hermes.prompt += text
                self.late.remove((due, text))
        if not hermes.loaded and self.now - hermes.born > BOOT / 3:
            hermes.loaded = True
            self._emit(EventName.PLUGIN_LOADED)
        if hermes.asked and not hermes.stored and self.now >= hermes.turn_ends - THINK * 0.9:
            self._store()
        if hermes.asked and not hermes.told and self.now >= hermes.turn_ends - THINK * 0.4:
            hermes.told = True
            self._emit(EventName.REQUEST, sha256=digest(hermes.asked))
        if hermes.asked and self.now >= hermes.turn_ends and not self.hung:
            hermes.asked, hermes.answered = "", hermes.answered + 1
            self._emit(EventName.TURN_END, completed=True)

    def _glance(self) -> Glance:
        hermes = self.hermes
        if hermes is None or self.now - hermes.born < BOOT:
            return Glance(PromptKind.UNKNOWN, self.now)
        if hermes.asked:
            return Glance(PromptKind.BUSY, self.now, body=self.output)
        return Glance(PromptKind.READY, self.now, typed=hermes.prompt, own=hermes.prompt)

    def _do(self, action: act.Action) -> list[Observation]:
        assert action.reason
        match action:
            case act.Launch():
                assert self.hermes is None, "two lives"
                self.pids += 1
                lost = f"session {action.resume} is gone" if action.resume in self.gone else ""
                session = f"s{self.pids}" if lost or not action.resume else action.resume
                self.hermes = Hermes(self.pids, self.now, session, bool(action.resume))
                self.late = []
                return [Launched(NAME, action.attempt, self._life(), lost)]
            case act.Look():
                return [Glanced(NAME, self.worker.attempt, self._glance())]
            case act.Take():
                self.inbox[action.message] = "cur"
                text, kind = self.texts[action.message], self.kinds.get(action.message, MessageKind.TEXT)
                return [Taken(NAME, action.token, action.message, kind, Method.PASTE, text, digest(text))]
            case act.Paste():
                if self.hermes is not None and self.now - self.hermes.born >= BOOT:
                    self.late.append((self.now + self.lag, action.line))
            case act.Press():
                self._press(action.keys)
            case act.MoveMessage():
                move = action.move
                where = "new" if move.back else "failed" if move.error else "done"
                if self.inbox[move.message] == "cur":
                    self.inbox[move.message] = where
                return [Acted(NAME, action.token)]
            case act.Signal():
                self.kill(action.number)
            case act.Sweep():
                return [Swept(NAME, action.token, 0)]
            case act.HandOver():
                self.send(action.message, f"hand-over {action.attempt}")
                return [Acted(NAME, action.token, detail=action.message)]
            case act.Nudge():
                self.send(action.message, f"nudge {action.attempt}")
                return [Acted(NAME, action.token, detail=action.message)]
            case act.Autopsy():
                return [self._autopsy(action)]
            case _:
                pass
        return []

    def _press(self, keys: tuple[str, ...]) -> None:
        hermes = self.hermes
        if hermes is not None and keys == ("Space", "C-c"):
            assert hermes.asked, "C-c at an idle prompt ends Hermes"
            hermes.turn_ends = self.now
        if hermes is not None and set(keys) == {"C-u"}:
            self.late, hermes.prompt = [], ""
        if hermes is None or keys != ("Enter",):
            return
        if self.deaf:
            self.deaf -= 1
        elif hermes.prompt == "/exit":
            self.hermes, self.unfinished = None, False
            self.seen.append(Gone(NAME, self.worker.attempt, Outcome(OutcomeKind.EXITED)))
        elif hermes.prompt and not hermes.asked:
            self.turns += 1
            hermes.asked, hermes.prompt = hermes.prompt, ""
            hermes.stored = hermes.told = False
            hermes.turn_ends = self.now + THINK
            self._emit(EventName.TURN_START, sha256=digest(hermes.asked))

    def _autopsy(self, action: act.Autopsy) -> Observation:
        stored = {f.message: s for f in action.flights for s, t in self.db if t == self.texts[f.message]}
        session = action.session or next(iter(stored.values()), "")
        return Autopsied(NAME, action.token, stored, session=session, unfinished=self.unfinished)
