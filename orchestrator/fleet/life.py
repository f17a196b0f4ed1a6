"""Birth, death and return of a worker's process: launch, stop, and recovery after a crash."""

from __future__ import annotations

import signal
from dataclasses import replace
from zlib import crc32

from orchestrator.fleet import deliver, draining, handover, mass, orders, people, stopping
from orchestrator.fleet.action import (
    Autopsy,
    CloseSession,
    Launch,
    Sweep,
)
from orchestrator.fleet.observation import Autopsied, Gone, Launched, LaunchFailed, SettingUp, Swept
from orchestrator.fleet.outcome import Then, consequence, told_apart
from orchestrator.fleet.pen import Pen
from orchestrator.fleet.spec import RestartPolicy
from orchestrator.fleet.talk import Talk, TurnOutcome
from orchestrator.fleet.worker import (
    Operation,
    OpKind,
    Outcome,
    OutcomeKind,
    Phase,
    Want,
    Worker,
)

LAUNCH_WITHIN = 30.0
SETTLE_WITHIN = 15.0
AUTOPSY_AGAIN = 1.0
AUTOPSY_TRIES = 5
OUT_OF_MEMORY_WAIT = 10.0
"""Seconds before a worker that the kernel ended for want of memory is started again, so that there is some."""
CUT_OFF = 5.0
"""Seconds between the interrupted end of a turn and the death that is taken for its cause."""
HOPELESS = ("no such directory", "the setup command failed")
"""Beginnings of reasons that another start would only repeat."""
WAITS = "waits for memory"
MEMORY_AGAIN = 1.0
"""Seconds between two looks at whether there is memory now."""
TURN_AGAIN = 0.1
"""Seconds between two looks at whether it is this worker's turn."""
SWEEP_AGAIN = 0.5
SWEEP_TRIES = 12


def launch(pen: Pen, reason: str) -> None:
    """Begin the next attempt, in the worker's own conversation where there is one."""
    worker = pen.worker
    pen.room.take(worker.name)
    session = handover.launched_into(pen)
    pen.set(attempt=worker.attempt + 1, resume=session, phase=Phase.STARTING, why=reason)
    pen.begin(OpKind.RECOVER, "launch", LAUNCH_WITHIN)
    token = pen.act(Launch, reason, resume=session)
    pen.change(token=token)
    into = f"session {session}" if session else "a new conversation"
    pen.note(f"starting attempt {pen.worker.attempt} in {into}", reason, what="transition")


def come_back(pen: Pen, reason: str) -> None:
    """Start a worker whose last attempt is dead: first see what it left behind."""
    if pen.worker.attempt == 0:
        launch(pen, reason)
        return
    pen.begin(OpKind.RECOVER, "sweep", SETTLE_WITHIN)
    _sweep(pen, signal.SIGTERM, 0)


def _autopsy(pen: Pen) -> None:
    worker = pen.worker
    token = pen.act(
        Autopsy, "the attempt is dead: its database decides", session=worker.session, flights=worker.flights
    )
    tries = worker.op.tries if worker.op is not None else 0
    pen.step("settle", SETTLE_WITHIN, token=token, tries=tries)


def launched(pen: Pen, seen: Launched) -> None:
    """Take the new process for ours."""
    if seen.attempt != pen.worker.attempt:
        return
    talk = pen.worker.talk
    fresh = Talk(
        heard=talk.heard,
        offset=talk.offset,
        turns=talk.turns,
        tokens_in=talk.tokens_in,
        tokens_out=talk.tokens_out,
    )
    pen.set(
        life=seen.life,
        pane=seen.life.pane,
        talk=fresh,
        glance=None,
        phase=Phase.STARTING,
        setting_up=False,
        set_up_at=0.0,
        bells=0,
        bell_at=0.0,
    )
    if seen.anew:
        handover.lost(pen, seen.anew)
    if pen.worker.op is not None and pen.worker.op.kind is OpKind.RECOVER:
        pen.end()


def setting_up(pen: Pen, seen: SettingUp) -> None:
    """Note that the setup command runs, so that nobody calls the start late, or that it has ended."""
    worker = pen.worker
    if seen.attempt != worker.attempt or worker.life is None or seen.running is worker.setting_up:
        return
    first = worker.spec.setup.strip().splitlines()[0][:80] if worker.spec.setup.strip() else ""
    why = f"the setup command runs: {first}" if seen.running else "the setup command has ended"
    pen.set(setting_up=seen.running, set_up_at=0.0 if seen.running else pen.now, why=why)
    pen.note(why, "it has to succeed before Hermes starts", what="transition")


def launch_failed(pen: Pen, seen: LaunchFailed) -> None:
    """Hold the worker, or count it as a crash."""
    if seen.attempt != pen.worker.attempt:
        return
    pen.end()
    if seen.hold:
        _hold(pen, seen.why)
    else:
        _count_crash(pen, Outcome(OutcomeKind.FAILED_TO_START, why=seen.why), "")


def gone(pen: Pen, seen: Gone) -> None:
    """The process is confirmed dead: note how, and settle what it left."""
    if seen.attempt != pen.worker.attempt or pen.worker.life is None:
        return
    orders.drop_orders(pen)
    people.died(pen)
    worker = pen.worker
    stopping = worker.op is not None and worker.op.kind is OpKind.STOP
    cut_off = _cut_off(worker, pen.now) or (worker.nudge and worker.cut_off)
    busy = worker.talk.busy or cut_off
    untold = worker.nudge  # of an earlier end, and this attempt ended before it could be told
    started = worker.phase is not Phase.STARTING
    pen.shelve()
    talk = replace(worker.talk, busy=False, children=(), owed=False, error=None, doing="", tools=())
    pen.set(life=None, talk=talk, glance=None, nudge=False, setting_up=False)
    outcome = told_apart(seen.outcome, worker)
    pen.set(ended_by=str(outcome))
    pen.note(f"attempt {worker.attempt} ended: {outcome}", "its process is gone", what="transition")
    if stopping or worker.want is not Want.RUN:
        if draining.keeps_turn(worker):
            pen.set(nudge=untold or (busy and worker.spec.nudge), cut_off=cut_off)
        pen.set(phase=Phase.STOPPING)
        pen.begin(OpKind.STOP, "sweep", SETTLE_WITHIN)
    else:
        pen.set(nudge=untold or (busy and worker.spec.nudge), cut_off=cut_off)
        if mass.under(worker):
            pen.set(phase=Phase.PENDING, why=mass.WHY, not_before=0.0)
        else:
            pen.set(lost_at=0.0)
            ready_once = started or outcome.kind is OutcomeKind.LEFT
            _ended(pen, outcome if ready_once else _never_ready(seen), seen)
        pen.begin(OpKind.STOP if pen.worker.left else OpKind.RECOVER, "sweep", SETTLE_WITHIN)
    _sweep(pen, signal.SIGTERM, 0)


def _ended(pen: Pen, outcome: Outcome, seen: Gone) -> None:
    """Decide what follows from an end that nobody asked for."""
    then, why = consequence(pen.worker.spec.restart, outcome)
    match then:
        case Then.STOP:
            pen.set(phase=Phase.STOPPING, left=why, why=why, nudge=False)
        case Then.HOLD:
            pen.set(phase=Phase.BACKOFF, hold=_with_words(why, seen.last_words), why=why)
        case Then.RESTART:
            _count_crash(pen, outcome, seen.last_words)


def _with_words(why: str, last_words: str) -> str:
    return f"{why}; last words: {last_words}" if last_words else why


def _cut_off(worker: Worker, now: float) -> bool:
    """Whether the turn that just ended was ended by the death itself: TERM and HUP interrupt it first."""
    last = worker.talk.last
    if worker.talk.cut:
        return True
    if last is None or last.outcome is not TurnOutcome.INTERRUPTED:
        return False
    return now - last.time <= CUT_OFF and now - worker.interrupted > 2 * CUT_OFF


def _never_ready(seen: Gone) -> Outcome:
    """A process that died before its prompt stood failed to start, whatever its exit code."""
    if seen.outcome.kind is OutcomeKind.FAILED_TO_START:
        return seen.outcome
    return Outcome(OutcomeKind.FAILED_TO_START, seen.outcome.number, str(seen.outcome))


def _count_crash(pen: Pen, outcome: Outcome, last_words: str) -> None:
    worker, policy = pen.worker, pen.worker.spec.restart
    up_for = pen.now - worker.since if worker.phase is Phase.UP else 0.0
    recent = () if up_for >= policy.healthy else worker.crashes
    crashes = (*(t for t in recent if pen.now - t <= policy.period), pen.now)
    wait = backoff(policy, len(crashes), f"{worker.name}/{worker.attempt}")
    if outcome.kind is OutcomeKind.OUT_OF_MEMORY:
        wait = max(wait, min(OUT_OF_MEMORY_WAIT, policy.backoff_cap))
    pen.set(crashes=crashes, not_before=pen.now + wait, phase=Phase.BACKOFF, why=f"{outcome}")
    if len(crashes) > policy.max_restarts:
        why = f"crash loop: {len(crashes)} deaths in {policy.period:.0f} s, the last {outcome}"
        pen.set(hold=_with_words(why, last_words))
    elif outcome.kind is OutcomeKind.FAILED_TO_START and outcome.why.startswith(HOPELESS):
        pen.set(hold=outcome.why)


def backoff(policy: RestartPolicy, deaths: int, salt: str) -> float:
    """Return the seconds to wait before the next start: 0, then `backoff` doubling to its cap, jittered.

    The jitter in [0.8, 1.2] comes from the salt, so that the same history gives the same wait.
    """
    if deaths <= 1:
        return 0.0
    jitter = 0.8 + 0.4 * crc32(salt.encode()) / 0xFFFFFFFF
    return min(policy.backoff * 2.0 ** (deaths - 2), policy.backoff_cap) * jitter


def _hold(pen: Pen, why: str) -> None:
    pen.set(phase=Phase.HELD, hold=why, why=why, lost_at=0.0)
    pen.note("held", why, what="transition")


def autopsied(pen: Pen, seen: Autopsied) -> None:
    """Settle the flights, choose the session to resume, and go on to the end of the stop or recovery."""
    op = pen.worker.op
    if op is None or op.step != "settle" or op.token != seen.token:
        return
    if seen.problem and pen.worker.flights and op.tries < AUTOPSY_TRIES:
        pen.step("settle", AUTOPSY_AGAIN, tries=op.tries + 1)
        return
    held = deliver.settle(pen, dict(seen.stored), seen.problem)
    stored_in = next(iter(seen.stored.values()), "")
    session = seen.session or stored_in
    if pen.worker.session and session != pen.worker.session:
        pen.note(
            f"conversation {pen.worker.session} goes on as {session or 'a new one'}",
            seen.problem or "that is what the database holds",
        )
    nudge = (seen.unfinished or pen.worker.cut_off) and (pen.worker.nudge or (held and pen.worker.spec.nudge))
    pen.set(session=session, nudge=nudge and (op.kind is OpKind.RECOVER or draining.keeps_turn(pen.worker)))
    _settled(pen, op)


def _settled(pen: Pen, op: Operation) -> None:
    pen.end()
    if op.kind is OpKind.STOP:
        pen.act(CloseSession, "the worker is stopped")
        left, word = pen.worker.left, Want.PAUSED if pen.worker.want is Want.PAUSED else Want.STOPPED
        why = f"{left}: hermux start {pen.worker.name}" if left else f"{word} on request"
        pen.set(phase=Phase.STOPPED, why=why, hold="", pause="")
        pen.note(str(word), left or "nothing of it runs any more", what="transition")
    else:
        start_when_due(pen)


def _sweep(pen: Pen, number: int, tries: int) -> None:
    token = pen.act(Sweep, "what outlived its attempt is ended", number=number)
    pen.step("sweep", SETTLE_WITHIN, token=token, tries=tries)


def swept(pen: Pen, seen: Swept) -> None:
    """Go on when nothing of the attempt is left.

    Only now does its database tell the end: a Hermes that outlived its launch script may take in a
    message until it is dead.
    """
    op = pen.worker.op
    if op is None or op.step not in ("sweep", "swept") or op.token != seen.token:
        return
    if seen.left and op.tries < SWEEP_TRIES:
        pen.step("swept", SWEEP_AGAIN)
        return
    if seen.left:
        pen.note(f"{seen.left} processes could not be ended", "they ignore KILL or are not ours to kill")
    worker = pen.worker
    if worker.flights or worker.nudge or not (worker.session or worker.talk.plugin):
        pen.change(tries=0)
        _autopsy(pen)
    else:  # the events leave no question, and the answer would cost milliseconds
        _settled(pen, op)


def waits_for_memory(pen: Pen) -> bool:
    """Whether a start has to wait: the worker is `pending`, and its `why` has the arithmetic."""
    refused = pen.room.refuses(pen.worker.name)
    if not refused:
        return False
    if not pen.worker.why.startswith(WAITS):
        pen.note("not started", refused, witness="memory", what="transition")
    pen.set(phase=Phase.PENDING, why=refused, not_before=pen.now + MEMORY_AGAIN)
    return True


def waits_for_turn(pen: Pen) -> bool:
    """Whether a start has to wait until another worker is back; see `mass`."""
    refused = mass.refuses(pen.worker, pen.fleet()) if pen.worker.lost_at else ""
    if not refused:
        return False
    pen.set(phase=Phase.PENDING, why=refused, not_before=pen.now + TURN_AGAIN)
    return True


def start_when_due(pen: Pen) -> None:
    """Start a dead, settled worker now, later, or not at all."""
    worker = pen.worker
    if worker.hold:
        _hold(pen, worker.hold)
    elif waits_for_turn(pen) or (pen.now >= worker.not_before and waits_for_memory(pen)):
        return
    elif pen.now >= worker.not_before:
        pen.set(restarts=worker.restarts + (1 if worker.crashes else 0))
        launch(pen, f"restart after {worker.why}" if worker.crashes else worker.why or "wanted")
    else:
        wait = worker.not_before - pen.now
        pen.set(phase=Phase.BACKOFF)
        pen.note(f"next start in {wait:.1f} s", f"death {len(worker.crashes)} after {worker.why}")


def advance(pen: Pen) -> None:
    """Do what the running step of a stop or recovery calls for."""
    op = pen.worker.op
    assert op is not None
    late = pen.now >= op.deadline
    match op.step:
        case "exit":
            stopping.exit_typed(pen, op)
        case "term" if late:
            stopping.kill(pen, f"TERM did not end it within {stopping.TERM_GRACE:.0f} s")
        case "kill" if late:
            stopping.kill(pen, "still alive")
        case "swept" if late:
            _sweep(pen, signal.SIGTERM if op.tries == 0 else signal.SIGKILL, op.tries + 1)
        case "settle" if late:
            _autopsy(pen)
        case "sweep" if late:
            _sweep(pen, signal.SIGKILL, op.tries + 1)
        case "launch" if late:
            launch_failed(
                pen, LaunchFailed(pen.worker.name, pen.worker.attempt, "tmux gave no answer within 30 s")
            )
        case _:
            pass


def became_ready(pen: Pen) -> None:
    """The prompt stands: the attempt is up."""
    worker = pen.worker
    took = pen.now - worker.life.launched if worker.life else 0.0
    pen.set(phase=Phase.UP, why="", hold="", lost_at=0.0)
    witness = "plugin and prompt line" if worker.talk.plugin else "prompt line alone: the plugin is silent"
    pen.note(f"up after {took:.1f} s", witness, witness="screen", what="transition")


def forgotten(worker: Worker) -> bool:
    """Whether a worker that is no longer wanted can be dropped from the picture."""
    return not worker.listed and worker.life is None and worker.op is None and not worker.moves
