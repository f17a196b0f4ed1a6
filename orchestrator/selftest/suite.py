"""Deals faults one after the other, and says of each what came of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from orchestrator.errors import HermuxError, UsageError
from orchestrator.selftest import hands, kills, machine, model
from orchestrator.selftest.fault import Blow, Fault
from orchestrator.selftest.foreign import Foreign, foreign
from orchestrator.selftest.left import left_behind
from orchestrator.selftest.room import room
from orchestrator.selftest.stage import Stage
from orchestrator.selftest.verdict import Verdict

FAULTS: tuple[Fault, ...] = (*kills.FAULTS, *hands.FAULTS, *machine.FAULTS, *model.FAULTS)
NOTICE_LIMIT = 60.0
"""Seconds within which a fault that is to be noticed must be."""
RECOVER_LIMIT = 240.0
"""Seconds within which all workers must be up again: eight boots one by one on busy cores."""
SETTLE_LIMIT = 240.0
"""Seconds within which every message must have its receipt."""
SWEEP_LIMIT = 10.0
"""Seconds within which what was left must be gone."""
MID_TURN = 0.5
"""Seconds after a message was queued within which a fault comes."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one fault. Times are seconds since it was dealt; None = not so, or nothing to notice."""

    fault: str
    worker: str
    verdict: str
    """survived, failed or not provoked."""
    noticed: float | None = None
    recovered: float | None = None
    lost: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()
    left: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    why: str = ""
    """What was not as it should be, or why it could not be provoked."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return asdict(self)


def chosen(names: Sequence[str]) -> list[Fault]:
    """Return the faults of these names, all for none; raises UsageError naming the nearest."""
    from difflib import get_close_matches

    known = {fault.name: fault for fault in FAULTS}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean: {near[0]}" if near else f"there are: {', '.join(known)}"
            raise UsageError(f"no fault {name!r}", hint=hint)
    return [known[name] for name in names] or list(FAULTS)


def every(faults: Sequence[Fault], rounds: int) -> Iterator[Fault]:
    """Yield the faults in their order, `rounds` times."""
    for _ in range(rounds):
        yield from faults


def at_random(faults: Sequence[Fault], count: int, seed: int) -> Iterator[Fault]:
    """Yield `count` faults by chance."""
    dice = random.Random(seed)
    return (dice.choice(faults) for _ in range(count))


def play(
    order: Iterator[Fault],
    env: Mapping[str, str],
    *,
    workers: int,
    seed: int,
    say: Callable[[str], None],
) -> Generator[Result, None, None]:
    """Make the private fleet, deal the faults and yield what came of each.

    Closing the generator, or an interrupt, leaves nothing behind. After a fault that was not survived the
    folder is kept, and `say` is told where. Raises what `spawn` raises.
    """
    failed: list[Result] = []
    with room(env, workers, keep=lambda: bool(failed)) as (fleet, folder):
        try:
            with foreign(folder, fleet.env, env) as servers:
                stage = Stage(fleet, folder, random.Random(seed))
                _begin(stage)
                for fault in order:
                    result = _deal(stage, servers, fault)
                    if result.verdict == "failed":
                        failed.append(result)
                    yield result
        finally:
            if failed:
                say(f"kept to be looked at: {folder}")


def _begin(stage: Stage) -> None:
    """Let every worker have a conversation: one that was never used is not resumed."""
    for name in stage.names:
        stage.send(name)
    stage.until(stage.through, SETTLE_LIMIT)
    stage.sessions = {name: str(stage.entry(name).get("session", "")) for name in stage.names}


def _deal(stage: Stage, servers: Foreign, fault: Fault) -> Result:
    victim, other = stage.dice.choice(stage.names), stage.dice.choice(stage.names)
    before = stage.verdict()
    for name in {victim: 0, other: 0}:
        stage.send(name)
    time.sleep(stage.dice.uniform(0, MID_TURN))
    blow = fault.strike(stage, victim)
    if isinstance(blow, str):
        stage.until(stage.through, SETTLE_LIMIT)
        return Result(fault.name, victim, "not provoked", why=blow)
    noticed = _since(stage, blow, blow.noticed, NOTICE_LIMIT) if blow.noticed else None
    stage.send(victim)
    with suppress(HermuxError, OSError):
        blow.heal()
    recovered = _since(stage, blow, lambda: stage.all_up() and blow.recovered(), RECOVER_LIMIT)
    wrong = ["not noticed"] if blow.noticed and noticed is None else []
    wrong += [] if recovered is not None else [f"not recovered: {_states(stage)}"]
    return _judged(stage, servers, blow, wrong, before, Result(fault.name, victim, "", noticed, recovered))


def _judged(
    stage: Stage, servers: Foreign, blow: Blow, wrong: list[str], before: Verdict, result: Result
) -> Result:
    """Send the last messages, wait for all of them, and look at everything."""
    stage.send(result.worker)
    wrong += [] if stage.supervisor() else ["the supervisor ended"]
    stage.revive()
    if stage.until(stage.through, SETTLE_LIMIT) is None:
        wrong.append(f"without a receipt: {', '.join(stage.waiting()) or _states(stage)}")
    after = stage.verdict()
    stage.until(lambda: not left_behind(stage), SWEEP_LIMIT)
    new = {
        each: tuple(n for n in getattr(after, each) if n not in getattr(before, each))
        for each in ("lost", "doubled", "strayed", "misordered")
    }
    wrong += [f"{each}: {new[each]}" for each in ("strayed", "misordered") if new[each]]
    wrong += [said] if (said := blow.wrong()) else []
    left, touched = tuple(left_behind(stage)), tuple(servers.touched())
    bad = wrong or new["lost"] or new["doubled"] or left or touched
    return Result(
        result.fault,
        result.worker,
        "failed" if bad else "survived",
        result.noticed,
        result.recovered,
        new["lost"],
        new["doubled"],
        left,
        touched,
        "; ".join([*wrong, *left, *touched]),
    )


def _since(stage: Stage, blow: Blow, so: Callable[[], bool], limit: float) -> float | None:
    return None if stage.until(so, limit) is None else time.monotonic() - blow.at


def _states(stage: Stage) -> str:
    words = ((name, stage.entry(name)) for name in stage.names)
    return ", ".join(f"{name} {entry.get('word')} {entry.get('why') or ''}".strip() for name, entry in words)
