"""`--roll`: the workers that follow an endpoint get its new form, the idle ones at once, one after the other.

What is wanted is written under the fleet's lock: each key is staged (`store/keys.py`), then the specs
change in one replace, with `roll` set to each worker's attempt. The supervisor replaces those attempts
when they are idle. Killed at any point and run again, this goes on where it was: a worker that was started
from the new spec is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestrator.api import supervisor
from orchestrator.api.endpoint import addressed, network
from orchestrator.api.follow import dialog_text
from orchestrator.api.picture import Picture
from orchestrator.api.ready import Say, pictures, quiet
from orchestrator.errors import PersonNeeded, TimedOut, WorkerFailed
from orchestrator.fleet.resolve import KEY
from orchestrator.fleet.roll import Target, changed, facts, keeps, lost_key, same
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store import keys
from orchestrator.store.desired import DesiredWorker, edit_desired, load_desired, spec_from_dict
from orchestrator.store.env import read_env
from orchestrator.store.files import BadFile, read_json
from orchestrator.store.paths import FleetPaths, WorkerPaths

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet

TAKEN_UP = 5.0
"""Seconds within which a supervisor has read what was written."""


@dataclass(slots=True)
class Roll:
    """What came of it, by worker."""

    rolled: list[str] = field(default_factory=list)
    """On the new endpoint."""
    pending: list[str] = field(default_factory=list)
    """On it as soon as they are idle, or are started."""
    kept: dict[str, str] = field(default_factory=dict)
    """Left as they are, and why."""
    said: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """A worker that has to be started anew: from `spec`, as an attempt after `attempt`."""

    spec: WorkerSpec
    attempt: int


def roll(
    fleet: Fleet,
    target: Target,
    *,
    wait: bool = True,
    say: Say = quiet,
    timeout: float | None = None,
    result: Roll | None = None,
) -> Roll:
    """Give the workers of a fleet that follow this endpoint its new form; see the module.

    With `wait` raises WorkerFailed when one does not come up, PersonNeeded when only workers with an open
    dialog are left, TimedOut (`timeout` in seconds): nothing is undone, and the rest follows when idle.
    `result` is filled as it goes on, so that it tells something then too.
    """
    supervisor.check_version(supervisor.running(fleet.paths))
    result = Roll() if result is None else result
    steps = _write(fleet, target, result)
    for name, text in result.said:
        say(name, text)
    result.pending = list(steps)
    running = {name: step for name, step in steps.items() if _wanted(fleet, name)}
    if running:
        fleet.ensure_supervisor()
        _confirm(fleet, running)
    if wait:
        _wait(fleet, steps, result, say, timeout)
    return result


def started_from(paths: WorkerPaths) -> WorkerSpec | None:
    """Return the spec that the newest attempt was started from, None when none was."""
    try:
        found = read_json(paths.spec)
        return spec_from_dict(found) if found else None
    except (BadFile, KeyError, TypeError, ValueError, AttributeError):
        return None


def _write(fleet: Fleet, target: Target, result: Roll) -> dict[str, Step]:
    """Write what is wanted; return a step for each worker that has to be started anew."""
    steps: dict[str, Step] = {}
    if not fleet.paths.desired.exists():
        return steps
    with edit_desired(fleet.paths) as desired:
        target = _reachable(fleet.paths, target)
        shown = fleet.picture().workers
        for name, entry in desired.workers.items():
            why = keeps(entry.spec, target)
            if why is None:
                step = _change(fleet, entry, target, shown.get(name, {}), result)
                steps |= {name: step} if step else {}
            else:
                entry.roll = 0  # an old one would let it hold up the others
                result.kept |= {name: why} if why else {}
                result.said += [(name, f"keeps its endpoint: {why}")] if why else []
    return steps


def _reachable(paths: FleetPaths, target: Target) -> Target:
    """Return the target with the address of the fleet's rehearsal model, if that is what is meant."""
    found = addressed(paths, target.endpoint)
    return Target(found, target.key, target.fallback, target.is_default)


def _change(
    fleet: Fleet, entry: DesiredWorker, target: Target, shown: Mapping[str, Any], result: Roll
) -> Step | None:
    """Change one entry, its key first; return None when its worker runs on just this already."""
    old, fresh, paths = entry.spec, changed(entry.spec, target), fleet.paths.worker(entry.spec.name)
    key = keys.key_of(paths, old.endpoint) if KEY in fresh.endpoint.given else target.key
    if told := lost_key(old, fresh):
        result.said.append((old.name, told))
    began = started_from(paths)
    if began is not None and same(began, fresh) and same(old, fresh) and keys.has_key(paths, key):
        entry.spec = fresh
        result.rolled.append(old.name)
        result.said.append((old.name, f"is on {fresh.endpoint.model} already"))
        return None
    keys.stage_key(paths, fresh.endpoint, key, now=old.endpoint)
    keys.change_env(paths, network(read_env(paths), {}, (fresh.endpoint, *fresh.fallback)))
    entry.spec = fresh
    entry.roll = int(shown.get("attempt") or 0)
    if shown.get("word") == "held" and shown.get("phase") == "up":
        # It takes no messages (a refused key, a used-up quota), so it would never count as idle.
        entry.renew, entry.generation = max(entry.renew, entry.roll), entry.generation + 1
    return Step(fresh, entry.roll)


def _wanted(fleet: Fleet, name: str) -> bool:
    entry = load_desired(fleet.paths).workers.get(name)
    return entry is not None and entry.want == "run"


def _confirm(fleet: Fleet, steps: Mapping[str, Step]) -> None:
    """Wait until the supervisor has the new specs; what it started meanwhile from an old one goes again."""
    left = dict(steps)
    for picture in pictures(fleet.paths, timeout=TAKEN_UP, revive=fleet.ensure_supervisor):
        seen = [name for name, step in left.items() if _taken_up(picture.workers.get(name), step)]
        late = {name: _late(fleet, name, left.pop(name), picture) for name in seen}
        if any(late.values()):
            with edit_desired(fleet.paths) as desired:
                for name, attempt in late.items():
                    if attempt and name in desired.workers:
                        desired.workers[name].roll = attempt
        if not left:
            return


def _taken_up(entry: Mapping[str, Any] | None, step: Step) -> bool:
    if entry is None:
        return True
    shown = entry.get("endpoint") or {}
    names = ("base_url", "model", "context_length", "kind", "key_env")
    return tuple(shown.get(name) for name in names) == facts(step.spec.endpoint)


def _late(fleet: Fleet, name: str, step: Step, picture: Picture) -> int:
    """Return the attempt that was started from an old spec after the new one was written, 0 if none was."""
    attempt = int((picture.workers.get(name) or {}).get("attempt") or 0)
    began = started_from(fleet.paths.worker(name))
    return attempt if attempt > step.attempt and (began is None or not same(began, step.spec)) else 0


def _wait(fleet: Fleet, steps: Mapping[str, Step], result: Roll, say: Say, timeout: float | None) -> None:
    left, told, begun = dict(steps), dict[str, str](), time.monotonic()
    failed: dict[str, str] = {}
    for picture in pictures(fleet.paths, timeout=timeout, revive=fleet.ensure_supervisor) if left else ():
        for name, step in list(left.items()):
            end, text = _progress(fleet, name, step, picture)
            if text and told.get(name) != text:
                told[name] = text
                say(name, text + (f" after {time.monotonic() - begun:.1f} s" if end == ROLLED else ""))
            if end:
                del left[name]
                failed |= {name: text} if end == FAILED else {}
            if end == ROLLED:
                result.rolled.append(name)
                result.pending.remove(name)
        if not left:
            break
        _check_people(left, picture)
    if failed:
        name = next(iter(failed))
        raise WorkerFailed(f"{name} {failed[name]}", hint=f"hermux why {name}")
    if left:
        raise TimedOut(
            f"after {timeout:g} s not idle yet, and rolled when they are: {', '.join(left)}",
            hint=f"hermux why {next(iter(left))}",
        )


ROLLED, FAILED, ASIDE = "rolled", "failed", "aside"


def _progress(fleet: Fleet, name: str, step: Step, picture: Picture) -> tuple[str, str]:
    """Return how it ended ("" = it has not yet), and what to tell."""
    entry = picture.workers.get(name)
    if entry is None:
        return ASIDE, "was removed"
    if entry.get("want") != "run":
        return ASIDE, "is stopped: it starts on the new endpoint"
    phase, newer = entry.get("phase"), int(entry.get("attempt") or 0) > step.attempt
    if phase == "held":
        why = f"is held: {entry.get('why') or 'no reason was noted'}"
        return (FAILED, why) if newer else (ASIDE, f"{why}; on the new endpoint with: hermux start {name}")
    if newer and phase == "up":
        began = started_from(fleet.paths.worker(name))
        if began is not None and same(began, step.spec):
            return ROLLED, f"is on {step.spec.endpoint.model} at {step.spec.endpoint.base_url}"
    return "", _waits(name, entry)


def _waits(name: str, entry: Mapping[str, Any]) -> str:
    if entry.get("waiting"):
        return f"has a question open, and is rolled after that: {entry['waiting'].get('text', '')[:80]}"
    word = str(entry.get("word"))
    if word in ("busy", "background", "draft"):
        return f"{'has a draft in its prompt' if word == 'draft' else 'is busy'}: rolled when it is idle"
    return f"is pending: {entry['why']}" if word == "pending" and entry.get("why") else ""


def _check_people(left: Mapping[str, Step], picture: Picture) -> None:
    """Raise PersonNeeded when all that are left wait for one."""
    asked = [(name, (picture.workers.get(name) or {}).get("waiting")) for name in left]
    if all(dialog for _, dialog in asked):
        name, dialog = asked[0]
        raise PersonNeeded(
            f"{dialog_text(name, dialog or {})}\n{name} is rolled after that",
            hint=f"answer it there: hermux attach {name}",
        )
