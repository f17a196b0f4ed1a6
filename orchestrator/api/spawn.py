"""Making workers: checked as a whole, then made, then wanted. What fails midway leaves nothing behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.api import endpoint as endpoints
from orchestrator.api.casting import Cast, Casting
from orchestrator.api.isolate import (
    Site,
    check_replaceable,
    check_room,
    choose_site,
    names_in_use,
    settle,
    unsettle,
)
from orchestrator.api.order import Order, check_order, check_text, names_and_roles, specs
from orchestrator.api.profiles import cast_own, check_free
from orchestrator.api.remove import put_aside
from orchestrator.api.supervisor import Starting
from orchestrator.errors import HermuxError
from orchestrator.fleet.message import Message, MessageKind
from orchestrator.fleet.role import Role
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store import inbox
from orchestrator.store.desired import DesiredWorker, edit_desired, load_desired
from orchestrator.store.env import write_env
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths
from orchestrator.store.ports import free_port, port_lock, taken_ports
from orchestrator.store.worktrees import Record
from orchestrator.store.worktrees import made as in_use

PATIENCE = 1800.0
"""Seconds: another spawn of this fleet may be checking out a large repository."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything outside hermux that was found to be there, and what the order comes to."""

    order: Order
    site: Site
    roles: Mapping[str, Role]
    hermes: Path
    hermes_root: Path
    casts: Mapping[str, Cast]
    """By role."""
    said: tuple[str, ...] = ()


@dataclass(slots=True)
class Made:
    """Workers that were made: their specs, and what a person should hear."""

    specs: list[WorkerSpec] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    """Their worktrees."""


def preflight(paths: FleetPaths, env: Mapping[str, str], order: Order) -> Ready:
    """Check the order, tmux, Hermes, the roles and the endpoint; nothing is made. Raises the first trouble."""
    from orchestrator.hermes.install import find_hermes, hermes_root
    from orchestrator.store.roles import load_role
    from orchestrator.terminal.binary import find_tmux

    site = choose_site(order, check_order(order), env)
    chosen = _chosen(paths, env, order, site)
    roles = {name: load_role(name, env) for name in dict.fromkeys(role for _, role in chosen)}
    find_tmux(env)
    hermes, root = find_hermes(env), hermes_root(env)
    if order.hermes_profile:
        casts = {name: cast_own(paths, root, role, order) for name, role in roles.items()}
    else:
        casting = Casting(env, order, hermes, root)
        casts = {name: casting.cast(role) for name, role in roles.items()}
    for name, _ in chosen:
        if order.replace and name in load_desired(paths).workers:
            check_replaceable(site, name, paths, env)
        elif _exact(order):  # numbers are given later, under the lock, and pass over what is in use then
            check_room(site, name, paths.fleet, env)
    said = dict.fromkeys((*site.said, *(line for cast in casts.values() for line in cast.said)))
    return Ready(order, site, roles, hermes.path, root, casts, tuple(said))


def _chosen(paths: FleetPaths, env: Mapping[str, str], order: Order, site: Site) -> list[tuple[str, str]]:
    """Return names and roles; numbered names pass over those whose work is still in a worktree or branch."""
    taken = set(load_desired(paths).workers)
    return names_and_roles(order, taken if _exact(order) else taken | names_in_use(site, paths.fleet, env))


def _exact(order: Order) -> bool:
    """Whether the order is for one worker of that very name."""
    return bool(order.name) and order.count == 1


def make(paths: FleetPaths, env: Mapping[str, str], ready: Ready) -> Made:
    """Make the workers of an order that passed `preflight`, and see that a supervisor runs.

    Names are given under the fleet's spawn lock, which is held for the whole of it: worktrees of a large
    repository take minutes, and meanwhile every other command edits `desired.json` as ever. Raises
    SupervisorDown, TimedOut, OSError and what the parts raise; then none of the new workers is left.
    """
    paths.make()
    made = Made(said=list(ready.said))
    with FileLock(paths.spawn_lock, timeout=PATIENCE), _undone_on_error(paths, env, ready, made):
        planned = _planned(paths, env, ready)
        if ready.site.repository is not None:
            planned = [_settled(paths, env, ready, made, spec) for spec in planned]
        starting = Starting(paths, env, secrets=[cast.endpoint.key_env for cast in ready.casts.values()])
        for spec in planned:
            put_aside(paths, spec, ready.hermes_root)
            made.specs.append(spec)
            _make_one(paths, spec, ready, env)
        _want(paths, made, ready.order.source)
        starting.confirm()
        for record in made.records:
            in_use(record)
    return made


def _planned(paths: FleetPaths, env: Mapping[str, str], ready: Ready) -> list[WorkerSpec]:
    with FileLock(paths.lock):
        targets = {role: endpoints.addressed(paths, cast.endpoint) for role, cast in ready.casts.items()}
    planned = specs(
        _chosen(paths, env, ready.order, ready.site),
        ready.roles,
        ready.order,
        fleet=paths.fleet,
        cwd=ready.site.cwd,
        endpoints=targets,
        hermes=ready.hermes,
        hermes_root=ready.hermes_root,
    )
    with FileLock(paths.lock):
        return [ready.casts[spec.role].spec(paths, spec) for spec in planned]


def _settled(
    paths: FleetPaths, env: Mapping[str, str], ready: Ready, made: Made, spec: WorkerSpec
) -> WorkerSpec:
    """Return the spec of a worker in its new worktree."""
    role = ready.roles[spec.role]
    settled, said = settle(ready.site, spec, role, fleet=paths.fleet, env=env, begun=made.records.append)
    made.said += [line for line in said if line not in made.said]
    return settled


def _want(paths: FleetPaths, made: Made, source: str) -> None:
    """Give each worker its port, and write it into `desired.json`: from then on it is supervised."""
    from orchestrator.hermes.home import profile_dir

    with port_lock(paths), edit_desired(paths) as desired:
        taken = taken_ports(paths)
        for place, spec in enumerate(made.specs):
            if spec.user_profile:  # under the lock of all fleets: two at once do not both get it
                home = profile_dir(Path(spec.hermes_root), spec.hermes_profile)
                check_free(paths, home, spec.hermes_profile, but=spec.name)
            port = free_port(paths, spec.name, taken)
            taken.add(port)
            made.specs[place] = replace(spec, port=port)
            desired.workers[spec.name] = DesiredWorker(made.specs[place], source=source)


def _make_one(paths: FleetPaths, spec: WorkerSpec, ready: Ready, env: Mapping[str, str]) -> None:
    from orchestrator.hermes.home import write_home
    from orchestrator.hermes.inherit import bequeath

    worker, role, cast = paths.worker(spec.name), ready.roles[spec.role], ready.casts[spec.role]
    worker.make()
    given = ready.order.variables
    way = endpoints.network(given, env, (spec.endpoint, *spec.fallback))
    write_env(worker, {**given, **way, **cast.variables(spec)})
    if not spec.user_profile:
        home = write_home(
            ready.hermes_root,
            spec,
            soul=role.soul,
            approvals_timeout=role.approvals_timeout,
            key=bool(cast.key),
            overrides=cast.config(),
            state=paths.root,
        )
        bequeath(cast.inherited, home)
    if ready.order.prompt:
        text, changed = check_text(ready.order.prompt)
        message = Message(
            inbox.new_id(), spec.name, MessageKind.TEXT, text, time.time(), sender="spawn", changed=changed
        )
        inbox.put(worker, message)


@contextmanager
def _undone_on_error(paths: FleetPaths, env: Mapping[str, str], ready: Ready, made: Made) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _unmake(paths, ready, made.specs)
        for record in made.records:
            unsettle(record, env)
        raise


def _unmake(paths: FleetPaths, ready: Ready, made: Sequence[WorkerSpec]) -> None:
    from orchestrator.hermes.home import remove_home

    names = {spec.name for spec in made}
    with suppress(HermuxError, OSError), edit_desired(paths) as desired:
        desired.workers = {name: entry for name, entry in desired.workers.items() if name not in names}
    for spec in made:
        shutil.rmtree(paths.worker(spec.name).dir, ignore_errors=True)
        with suppress(HermuxError, OSError):  # a profile of the user's bears no mark of ours, so it stays
            remove_home(ready.hermes_root, spec.hermes_profile)
