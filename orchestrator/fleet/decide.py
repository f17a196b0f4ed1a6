"""The brain: `decide(fleet, observations, now) -> (fleet, actions)`. Pure.

Observations are folded into the workers' states first; then each worker is planned for on its own, so
nothing about one worker can change another. The caller records the new fleet before it carries out
the actions, and hands what comes of them in as observations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.fleet import (
    answer,
    beside,
    deliver,
    draining,
    handover,
    life,
    looking,
    mass,
    people,
    stall,
    stopping,
    telling,
)
from orchestrator.fleet.action import Action
from orchestrator.fleet.admission import Host, Room, may_roll
from orchestrator.fleet.events import Event, EventName
from orchestrator.fleet.observation import (
    Acted,
    Autopsied,
    DesiredSeen,
    Glanced,
    Gone,
    InboxSeen,
    Launched,
    LaunchFailed,
    Observation,
    PaneSeen,
    Said,
    ServerLost,
    SettingUp,
    Swept,
    Taken,
    Wanted,
    Worked,
)
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.picture import activity, word_of
from orchestrator.fleet.sequence import waits_for
from orchestrator.fleet.talk import FailedKind, TurnOutcome, end_turn, fold
from orchestrator.fleet.worker import (
    Activity,
    OpKind,
    Phase,
    PromptKind,
    Want,
    Worker,
)

Fleet = Mapping[str, Worker]

SILENT_END = 3.0
"""A turn whose prompt has been ready for so long is over, even if no event said so."""
MOVE_AGAIN = 1.0


def decide(
    fleet: Fleet,
    observations: Sequence[Observation],
    now: float,
    host: Host | None = None,
    only: Collection[str] | None = None,
) -> tuple[Fleet, list[Action]]:
    """Return the fleet after these observations, and what is to be done, in order.

    `host` is the machine's memory now; None = not known, then it stops nobody. `only` names the workers that
    are planned for beside those that something was seen of; None = all.
    """
    room = Room(host, fleet.values(), now)
    pens: dict[str, Pen] = {}
    pens |= {name: Pen(worker, now, room, pens) for name, worker in fleet.items()}
    for seen in observations:
        if isinstance(seen, DesiredSeen):
            _desired(pens, seen, now, room)
        elif isinstance(seen, ServerLost):
            for pen in pens.values():
                mass.lost(pen, seen.at)
        elif seen.worker in pens:
            _absorb(pens[seen.worker], seen)
    everyone = only is None or any(isinstance(seen, DesiredSeen | ServerLost) for seen in observations)
    for pen in pens.values() if everyone else _concerned(pens, observations, only or ()):
        _plan_roll(pen)
        _plan_return(pen)
        _plan(pen)
        _name_state(pen)
    kept = {name: pen.worker for name, pen in pens.items() if not life.forgotten(pen.worker)}
    return kept, [action for pen in pens.values() for action in pen.actions]


def _concerned(pens: dict[str, Pen], observations: Sequence[Observation], only: Collection[str]) -> list[Pen]:
    seen_of = {seen.worker for seen in observations if not isinstance(seen, DesiredSeen | ServerLost)}
    return [pen for name, pen in pens.items() if name in only or name in seen_of]


def _desired(pens: dict[str, Pen], seen: DesiredSeen, now: float, room: Room) -> None:
    for name, wanted in seen.workers.items():
        if name in pens:
            _rewanted(pens[name], wanted)
        else:
            worker = Worker(wanted.spec, wanted.want, wanted.generation, wanted.grace, since=now)
            pens[name] = Pen(worker, now, room, pens)
    for name, pen in pens.items():
        if name not in seen.workers and pen.worker.listed:
            pen.set(listed=False, want=Want.STOPPED)


def _rewanted(pen: Pen, wanted: Wanted) -> None:
    anew = wanted.generation != pen.worker.generation
    drained_before = pen.worker.draining
    pen.set(
        spec=wanted.spec,
        want=wanted.want,
        generation=wanted.generation,
        grace=wanted.grace,
        renew=wanted.renew,
        roll=wanted.roll,
        drain=wanted.drain,
        listed=True,
    )
    if pen.worker.draining and not drained_before and pen.worker.life is not None:
        pen.note("draining", "a person asked: it stops after what it is doing", what="transition")
    if wanted.want is Want.STOPPED and not wanted.drain and pen.worker.life is None:
        pen.set(nudge=False)
    if pen.worker.phase is Phase.STOPPED and wanted.want is not Want.RUN:
        pen.set(why=f"{wanted.want} on request")
    if anew and wanted.want is Want.RUN:
        pen.set(crashes=(), hold="", pause="", left="", not_before=0.0, anew=handover.kept(pen.worker))
        if pen.worker.phase in (Phase.HELD, Phase.BACKOFF) and pen.worker.life is None:
            pen.set(phase=Phase.PENDING, why="asked for by a person")


def _absorb(pen: Pen, seen: Observation) -> None:
    match seen:
        case Said():
            for event in seen.events:
                _heard(pen, event)
        case Glanced():
            _glanced(pen, seen)
        case PaneSeen():
            _pane_seen(pen, seen)
        case Worked():
            stall.worked(pen, seen)
        case InboxSeen():
            pen.set(queue=seen.queue)
        case Taken():
            deliver.taken(pen, seen)
        case Acted():
            pen.set(moves=tuple(m for m in pen.worker.moves if m.token != seen.token))
            answer.acted(pen, seen)
            telling.acted(pen, seen)
            beside.acted(pen, seen)
        case Launched():
            life.launched(pen, seen)
        case SettingUp():
            life.setting_up(pen, seen)
        case LaunchFailed():
            life.launch_failed(pen, seen)
        case Gone():
            life.gone(pen, seen)
        case Autopsied():
            life.autopsied(pen, seen)
        case Swept():
            life.swept(pen, seen)
        case DesiredSeen() | ServerLost():
            pass


def _heard(pen: Pen, event: Event) -> None:
    if event.attempt != pen.worker.attempt:
        return
    before = pen.worker.talk
    talk = fold(before, event)
    pen.set(talk=talk)
    stall.progressed(pen)
    if event.name is EventName.REQUEST and event.main and event.session:
        _in_session(pen, event.session)
    people.heard(pen, event)
    deliver.heard(pen, event)
    if talk.last is not before.last:
        _turn_ended(pen)


def _in_session(pen: Pen, session: str) -> None:
    worker = pen.worker
    if worker.resume and session != worker.resume and worker.session == worker.resume:
        pen.note(
            f"the conversation went on as {session}",
            f"attempt was to resume {worker.resume}",
            witness="event",
        )
    pen.set(session=session)


def _turn_ended(pen: Pen) -> None:
    last = pen.worker.talk.last
    if last is None:
        return
    if last.outcome is TurnOutcome.FAILED and last.kind in (FailedKind.AUTH, FailedKind.QUOTA):
        pen.set(pause=f"{last.kind}: {last.error}")
        pen.note("takes no more messages", pen.worker.pause, witness="event")
    elif last.outcome is TurnOutcome.OK and pen.worker.pause:
        pen.set(pause="")
    handover.turn_ended(pen, last)


def _glanced(pen: Pen, seen: Glanced) -> None:
    worker = pen.worker
    if seen.attempt != worker.attempt or worker.life is None:
        return
    same = seen.glance.same(worker.glance) and worker.talk.heard <= worker.steady_since
    stall.glanced(pen, seen.glance)
    pen.set(glance=seen.glance, steady_since=worker.steady_since if same else seen.glance.at)
    people.glanced(pen)


def _pane_seen(pen: Pen, seen: PaneSeen) -> None:
    worker = pen.worker
    if seen.attempt != worker.attempt:
        return
    if seen.bells > worker.bells:
        pen.set(bell_at=pen.now)
    mode_changed = worker.glance is not None and worker.glance.in_mode != seen.in_mode
    if mode_changed and worker.glance is not None:
        pen.set(glance=replace(worker.glance, in_mode=seen.in_mode), steady_since=pen.now)
    pen.set(bells=seen.bells, painted=seen.painted)


def _plan(pen: Pen) -> None:
    _retry_moves(pen)
    worker = pen.worker
    if worker.life is not None and worker.phase is not Phase.STOPPING:
        _plan_live(pen)
    if pen.worker.op is not None:
        _advance(pen)
    elif pen.worker.life is None:
        _plan_dead(pen)
    elif pen.worker.phase is Phase.STOPPING:
        stopping.stop(pen, pen.worker.why)
    looking.plan_look(pen)


def _retry_moves(pen: Pen) -> None:
    """Ask again for moves that were not confirmed: a supervisor was killed, or a disk was full."""
    for move in pen.worker.moves:
        if pen.now - move.asked >= MOVE_AGAIN:
            pen.ask(move, lambda _: "not confirmed yet")


def _plan_live(pen: Pen) -> None:
    worker = pen.worker
    if worker.want is not Want.RUN and not draining.at_work(worker, pen.now):
        if worker.op is not None and draining.untouched(worker.op):
            pen.end()
        stopping.stop(pen, f"wanted: {worker.want}" if worker.listed else "removed from the fleet")
        return
    if worker.want is Want.RUN and worker.attempt <= worker.renew:
        stopping.stop(pen, "a person asked for a restart")
        return
    _plan_boot(pen)
    _plan_turn_end(pen)
    if stall.plan(pen):
        return
    if pen.worker.phase in (Phase.UP, Phase.HELD):
        people.announce(pen)
        beside.make_way(pen)
        if telling.plan(pen):
            return
        head = deliver.next_head(pen.worker, activity(pen.worker)[0], pen.now)
        if head is not None:
            deliver.begin(pen, head)


def _plan_roll(pen: Pen) -> None:
    """End an idle worker whose settings changed, when no other one is on its way to new ones."""
    worker, glance = pen.worker, pen.worker.glance
    if worker.attempt > worker.roll or worker.phase is not Phase.UP or not worker.wanted:
        return
    free = worker.op is None and not worker.flights and not worker.queue and not worker.draft
    idle = free and glance is not None and not glance.in_mode and activity(worker)[0] is Activity.READY
    if idle and worker.steady() and may_roll(worker, pen.fleet().values()):
        stopping.stop(pen, "its settings changed and it is idle")


def _plan_return(pen: Pen) -> None:
    """After the tmux server's death: hold nobody up for ever, and end what outlived it."""
    mass.given_up(pen)
    mass.outlived(pen)


def _plan_boot(pen: Pen) -> None:
    worker, glance = pen.worker, pen.worker.glance
    if worker.phase not in (Phase.STARTING, Phase.HELD) or glance is None or worker.life is None:
        return
    if worker.setting_up:  # what stands on the screen is the setup command's
        return
    shown = glance.kind not in (PromptKind.UNKNOWN, PromptKind.GONE) and not glance.first_run
    if shown and (worker.talk.plugin or worker.steady()):
        if glance.lost and worker.resume:
            handover.begin(pen, f"session {worker.resume} is not in its database any more")
            return
        life.became_ready(pen)
    elif glance.first_run and worker.phase is Phase.STARTING:
        pen.set(phase=Phase.HELD, why=f"a first-run question fills the pane: {glance.dialog[:120]}")
        pen.note("held", pen.worker.why, witness="screen", what="transition")


def _plan_turn_end(pen: Pen) -> None:
    """End a turn that ended without an event: failed turns have none (Hermes 0.19 to 0.22)."""
    worker, glance = pen.worker, pen.worker.glance
    talk = worker.talk
    if not talk.busy or glance is None or glance.kind is not PromptKind.READY or glance.at <= talk.heard:
        return
    if talk.error is not None and (worker.steady() or worker.bell_at > talk.error.time):
        pen.set(talk=end_turn(talk, pen.now, TurnOutcome.FAILED))
        witness = "bell" if talk.error and worker.bell_at > talk.error.time else "screen"
        pen.note("turn failed", pen.worker.talk.last.error if pen.worker.talk.last else "", witness=witness)
        _turn_ended(pen)
    elif talk.error is None and glance.at - max(talk.heard, worker.steady_since) >= SILENT_END:
        pen.set(talk=end_turn(talk, pen.now, TurnOutcome.INTERRUPTED))
        pen.note("turn over", "the prompt is ready and no event came", witness="screen")


def _advance(pen: Pen) -> None:
    op = pen.worker.op
    assert op is not None
    if op.kind in (OpKind.STOP, OpKind.RECOVER):
        life.advance(pen)
    elif op.kind is OpKind.ANSWER:
        answer.advance(pen)
    else:
        deliver.advance(pen)


def _plan_dead(pen: Pen) -> None:
    worker = pen.worker
    if worker.wanted and worker.phase is not Phase.HELD:
        if pen.now < worker.not_before or _comes_later(pen):
            return
        if life.waits_for_turn(pen) or life.waits_for_memory(pen):
            return
        if worker.phase is Phase.BACKOFF:
            life.start_when_due(pen)
        else:
            pen.set(crashes=() if worker.phase is Phase.STOPPED else worker.crashes, why="wanted")
            life.come_back(pen, "wanted")
    elif not worker.wanted and worker.phase is not Phase.STOPPED:
        pen.set(phase=Phase.STOPPING)
        pen.begin(OpKind.STOP, "swept", 0)


def _comes_later(pen: Pen) -> bool:
    """Whether another worker has to be ready first; then this one is `pending`, and its `why` names the other."""
    why = waits_for(pen.worker, pen.fleet()) if pen.worker.spec.after else ""
    if not why:
        return False
    if not pen.worker.why.startswith(why.partition(",")[0]):
        pen.note("not started", why, what="transition")
    pen.set(phase=Phase.PENDING, why=why)
    return True


def _name_state(pen: Pen) -> None:
    word, witness = word_of(pen.worker)
    if word != pen.worker.word:
        pen.set(word=word, since=pen.now)
    pen.set(witness=witness)
