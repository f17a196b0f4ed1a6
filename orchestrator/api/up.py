"""`up` and `down`: the fleet becomes what a `fleet.yaml` declares; twice does no harm.

First everything is looked at and compared, and an error there has changed nothing. Then, with the fleet's up
lock held, workers are made, changed, started and, with `prune`, stopped. A worker that runs and whose process has
to be started anew is replaced when it is idle, as `endpoint set --roll` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.api import spawn
from orchestrator.api.casting import Casting
from orchestrator.api.declared import orders
from orchestrator.api.order import Order
from orchestrator.api.ready import Say, pictures, quiet
from orchestrator.api.redeclare import Fresh, compare, write
from orchestrator.api.roll import started_from
from orchestrator.errors import UsageError, WorkerFailed
from orchestrator.fleet.sequence import waves
from orchestrator.fleet.worker import Want
from orchestrator.store.desired import Desired, DesiredWorker, Group, edit_desired, load_desired
from orchestrator.store.fleetfile import NAME, FleetFile, read_fleetfile
from orchestrator.store.lock import FileLock

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.hermes.install import HermesInstall

PATIENCE = 1800.0
"""Seconds: another `up` of this fleet may be making worktrees."""
SETTLE = 60.0
"""Seconds that an idle worker gets to come back from a restart; a busy one is not waited for."""


class Act(StrEnum):
    """What `up` does to a worker."""

    CREATE = "create"
    CHANGE = "change"
    START = "start"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: `what` says it in words."""

    name: str
    act: Act
    what: tuple[str, ...]
    restart: bool = False
    """Its process is started anew, when it is idle."""


@dataclass(slots=True)
class Plan:
    """What a file comes to."""

    file: FleetFile
    steps: list[Step] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)
    """What a person should hear of workers that are left as they are."""
    held: list[str] = field(default_factory=list)
    ready: dict[str, spawn.Ready] = field(default_factory=dict)
    fresh: dict[str, Fresh] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    regroup: bool = False
    seen: int = 0
    """When `desired.json` was last changed before this was made, in ns."""


def up(
    fleet: Fleet,
    path: str,
    *,
    dry_run: bool = False,
    prune: bool = False,
    wait: bool = True,
    say: Say = quiet,
) -> Plan:
    """Make the fleet what a file declares, and return what was done (with `dry_run`: what would be).

    Raises UsageError for the file, NotReady (tmux, Hermes, endpoint): nothing was changed then. With `wait` also
    WorkerFailed and TimedOut, which undo nothing.
    """
    plan = make_plan(fleet, Path(path or NAME), prune=prune)
    for name, text in plan.said:
        say(name, text)
    if not dry_run and (plan.steps or plan.regroup):
        fleet.paths.make()
        with FileLock(fleet.paths.up_lock, timeout=PATIENCE):
            if _mark(fleet) != plan.seen:
                plan = make_plan(fleet, Path(path or NAME), prune=prune)
            attempts = _apply(fleet, plan, say)
        if wait:
            _wait(fleet, plan, attempts, say)
    if plan.held and not dry_run:
        raise WorkerFailed(f"held, and left so: {', '.join(plan.held)}", hint=f"hermux why {plan.held[0]}")
    return plan


def down_names(fleet: Fleet, path: str) -> list[str]:
    """Return the workers that `down` stops: those of a file, or without one all of the fleet.

    The file itself need not be readable any more. Raises UsageError when no worker is of that file.
    """
    workers = load_desired(fleet.paths).workers
    if not path and not Path(NAME).exists():
        return list(workers)
    source = str(Path(path or NAME).resolve())
    found = [name for name, each in workers.items() if each.source == source]
    if path and not found:
        raise UsageError(
            f"no worker of fleet {fleet.name} was made by {path}", hint="hermux ls shows who is there"
        )
    return found


def make_plan(fleet: Fleet, path: Path, *, prune: bool) -> Plan:
    """Compare a file with the fleet; nothing is written. Raises what `up` raises before it changes anything."""
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint="hermux up -f FILE, or write one: docs/fleet-file.md")
    seen = _mark(fleet)
    file = read_fleetfile(path, fleet.env)
    wanted, desired = orders(file, fleet.env), load_desired(fleet.paths)
    plan, shown = Plan(file, seen=seen), fleet.picture().workers
    _check_owners(plan, desired)
    for name, order in wanted.items():
        try:
            if name in desired.workers:
                _compare(fleet, plan, order, desired.workers[name], shown.get(name, {}))
            else:
                plan.ready[name] = ready = spawn.preflight(fleet.paths, fleet.env, order)
                role = file.workers[name].role.name
                where = (
                    f"in a worktree of {ready.site.repository.top}"
                    if ready.site.repository
                    else f"in {ready.site.cwd}"
                )
                what = [f"{role} {where}", *(["with a first prompt"] if order.prompt else [])]
                what += [f"after {', '.join(order.after)}"] if order.after else []
                plan.steps.append(Step(name, Act.CREATE, tuple(what)))
                plan.said += [("", line) for line in ready.said if ("", line) not in plan.said]
        except UsageError as error:
            file.fault(
                ("workers", file.workers[name].entry), f"{error}" + (f" → {error.hint}" if error.hint else "")
            )
    file.check()
    _compare_groups(plan, desired)
    _undeclared(plan, desired, prune)
    return plan


def _mark(fleet: Fleet) -> int:
    try:
        return fleet.paths.desired.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _check_owners(plan: Plan, desired: Desired) -> None:
    """Note each name, of a worker or a group, that is not this file's. A file that was moved keeps its own."""
    file, source = plan.file, str(plan.file.path)
    for name in file.workers.keys() & desired.workers.keys():
        owner = desired.workers[name].source
        if owner != source and (not owner or Path(owner).exists()):
            made = f"was made by {owner}" if owner else "was made by hand"
            file.fault(
                ("workers", file.workers[name].entry),
                f"a worker {name} exists already and {made}: choose another name, or hermux stop {name} && hermux rm {name}",
            )
    for name in file.groups.keys() & desired.groups.keys():
        owner = desired.groups[name].source
        if owner != source and Path(owner).exists():
            file.fault(
                ("groups", name), f"a group @{name} is declared by {owner} already: choose another name"
            )
    file.check()


def _compare(fleet: Fleet, plan: Plan, order: Order, entry: DesiredWorker, shown: Mapping[str, Any]) -> None:
    spec, name = entry.spec, entry.spec.name
    install = _install(fleet, spec.hermes)
    cast = Casting(fleet.env, order, install, Path(spec.hermes_root)).cast(plan.file.workers[name].role)
    fresh = compare(fleet.paths, order, cast, spec)
    stopped = shown.get("want") != "run"  # also one that a person ended in its pane
    if fresh.changes or entry.source != order.source:
        plan.fresh[name] = fresh
    if shown.get("phase") == "held" and not stopped and not fresh.changes:
        plan.held.append(name)
        plan.said.append((name, f"is held, and left so: {shown.get('why')} → hermux start {name}"))
    elif stopped:
        plan.steps.append(Step(name, Act.START, fresh.changes))
    elif fresh.changes:
        plan.steps.append(Step(name, Act.CHANGE, fresh.changes, fresh.restart))
    elif entry.source != order.source:
        plan.steps.append(Step(name, Act.CHANGE, (f"is of this file now, not of {entry.source}",)))


def _install(fleet: Fleet, hermes: str) -> HermesInstall:
    from orchestrator.hermes.install import find_hermes

    own = {"HERMUX_HERMES": hermes} if hermes and Path(hermes).exists() else {}
    return find_hermes({**fleet.env, **own})


def _compare_groups(plan: Plan, desired: Desired) -> None:
    source = str(plan.file.path)
    others = {
        name: group
        for name, group in desired.groups.items()
        if group.source != source and (name not in plan.file.groups)
    }
    plan.groups = {**others, **{name: Group(each, source) for name, each in plan.file.groups.items()}}
    plan.regroup = plan.groups != desired.groups


def _undeclared(plan: Plan, desired: Desired, prune: bool) -> None:
    """Stop, or only name, the workers that an earlier `up` of this file made and that it declares no more."""
    for name, entry in desired.workers.items():
        if entry.source != str(plan.file.path) or name in plan.file.workers or entry.want is Want.STOPPED:
            continue
        if prune:
            plan.steps.append(Step(name, Act.STOP, ("no longer declared; all of it is kept",)))
        else:
            plan.said.append((name, "is no longer declared, and goes on: --prune stops it"))


def _apply(fleet: Fleet, plan: Plan, say: Say) -> dict[str, int]:
    """Carry a plan out; return the attempt that each worker with a restart due has now."""
    for step in plan.steps:
        if step.act is Act.CREATE:
            spawn.make(fleet.paths, fleet.env, plan.ready[step.name])
    shown = fleet.picture().workers
    attempts: dict[str, int] = {}
    with edit_desired(fleet.paths) as desired:
        desired.groups = plan.groups
        for name, fresh in plan.fresh.items():
            entry = desired.workers.get(name)
            if entry is not None:
                entry.spec, entry.source = write(fleet.paths, fresh, entry.spec), str(plan.file.path)
        for step in plan.steps:
            entry = desired.workers.get(step.name)
            if entry is None or step.act in (Act.CREATE, Act.STOP):
                continue
            seen = shown.get(step.name, {})
            lift = step.act is Act.START or seen.get("phase") == "held"
            entry.want, entry.generation = Want.RUN, entry.generation + int(lift)
            if step.restart:
                entry.roll = attempts[step.name] = int(seen.get("attempt") or 0)
    fleet.ensure_supervisor()
    stop = [step.name for step in plan.steps if step.act is Act.STOP]
    if stop:
        fleet.stop(stop, say=say)
    return attempts


def _wait(fleet: Fleet, plan: Plan, attempts: Mapping[str, int], say: Say) -> None:
    begun = [step.name for step in plan.steps if step.act in (Act.CREATE, Act.START)]
    after = {name: plan.file.workers[name].after for name in begun}
    for wave in waves(after):
        fleet.wait_ready(wave, say=say)
    left = dict(attempts)
    for picture in pictures(fleet.paths, timeout=SETTLE, revive=fleet.ensure_supervisor) if left else ():
        for name, attempt in list(left.items()):
            entry = picture.workers.get(name, {})
            newer = int(entry.get("attempt") or 0) > attempt
            if newer and entry.get("phase") == "up" and started_from(fleet.paths.worker(name)) is not None:
                del left[name]
                say(name, "was restarted, and is ready")
            elif entry.get("phase") == "held":
                raise WorkerFailed(f"{name} is held: {entry.get('why')}", hint=f"hermux why {name}")
            elif not newer and entry.get("word") in ("busy", "background", "waiting", "draft"):
                del left[name]
                say(name, f"is {entry.get('word')}: it is restarted when it is idle")
        if not left:
            return
    for name in left:
        say(name, "is not idle yet: it is restarted when it is")
