"""Making workers: checked as a whole, then made, then wanted. What fails midway leaves nothing behind."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.api import endpoint as endpoints
from orchestrator.api.order import Order, check_order, check_text, names_and_roles, specs
from orchestrator.api.remove import put_aside
from orchestrator.api.supervisor import Starting
from orchestrator.errors import HermuxError
from orchestrator.fleet.message import Message, MessageKind
from orchestrator.fleet.role import Role
from orchestrator.fleet.spec import Endpoint, EndpointKind, WorkerSpec
from orchestrator.store import inbox
from orchestrator.store.desired import DesiredWorker, edit_desired, load_desired
from orchestrator.store.env import write_env
from orchestrator.store.paths import FleetPaths
from orchestrator.store.redact import KEY_VARIABLE


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything outside hermux that was found to be there, and what the order comes to."""

    order: Order
    cwd: Path
    roles: Mapping[str, Role]
    hermes: Path
    hermes_root: Path
    endpoints: Mapping[str, Endpoint]
    """By role; the rehearsal model has no address yet."""
    key: str
    key_env: str
    said: tuple[str, ...] = ()


@dataclass(slots=True)
class Made:
    """Workers that were made: their specs, and what a person should hear."""

    specs: list[WorkerSpec] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def preflight(paths: FleetPaths, env: Mapping[str, str], order: Order) -> Ready:
    """Check the order, tmux, Hermes, the roles and the endpoint; nothing is made. Raises the first trouble."""
    from orchestrator.hermes.install import find_hermes, hermes_root
    from orchestrator.store.roles import load_role
    from orchestrator.terminal.binary import find_tmux

    cwd = check_order(order)
    chosen = names_and_roles(order, load_desired(paths).workers)
    roles = {name: load_role(name, env) for name in dict.fromkeys(role for _, role in chosen)}
    find_tmux(env)
    hermes = find_hermes(env).path
    found = endpoints.choose(env, order.asked)
    by_role = {name: _endpoint_of(role, found, env, order) for name, role in roles.items()}
    return Ready(
        order, cwd, roles, hermes, hermes_root(env), by_role, found.key, found.endpoint.key_env, found.said
    )


def _endpoint_of(role: Role, found: endpoints.Chosen, env: Mapping[str, str], order: Order) -> Endpoint:
    """Return the endpoint with the role's own model, where it has one and the order names none."""
    if not role.model or order.asked.model or found.endpoint.kind is EndpointKind.REHEARSAL:
        return found.endpoint
    if role.model == found.endpoint.model:
        return found.endpoint
    return endpoints.checked(replace(found.endpoint, model=role.model, context_length=0), env, []).endpoint


def make(paths: FleetPaths, env: Mapping[str, str], ready: Ready) -> Made:
    """Make the workers of an order that passed `preflight`, and see that a supervisor runs.

    Names are given under the fleet's lock. Raises SupervisorDown, OSError and what the parts raise;
    then none of the new workers is left.
    """
    paths.make()
    starting = Starting(paths, env, secrets=[ready.key_env])
    made = Made(said=list(ready.said))
    with _undone_on_error(paths, ready, made):
        with edit_desired(paths) as desired:
            chosen = names_and_roles(ready.order, desired.workers)
            targets = {role: endpoints.addressed(paths, each) for role, each in ready.endpoints.items()}
            planned = specs(
                chosen,
                ready.roles,
                ready.order,
                fleet=paths.fleet,
                cwd=ready.cwd,
                endpoints=targets,
                hermes=ready.hermes,
                hermes_root=ready.hermes_root,
            )
            for spec in planned:
                put_aside(paths, spec, ready.hermes_root)
                made.specs.append(spec)
                _make_one(paths, spec, ready)
                desired.workers[spec.name] = DesiredWorker(spec)
        starting.confirm()
    return made


def _make_one(paths: FleetPaths, spec: WorkerSpec, ready: Ready) -> None:
    from orchestrator.hermes.home import write_home

    worker, role, key = paths.worker(spec.name), ready.roles[spec.role], ready.key
    worker.make()
    write_env(worker, {**ready.order.variables, **({KEY_VARIABLE: key} if key else {})})
    write_home(
        ready.hermes_root, spec, soul=role.soul, approvals_timeout=role.approvals_timeout, key=bool(key)
    )
    if ready.order.prompt:
        text, changed = check_text(ready.order.prompt)
        message = Message(
            inbox.new_id(), spec.name, MessageKind.TEXT, text, time.time(), sender="spawn", changed=changed
        )
        inbox.put(worker, message)


@contextmanager
def _undone_on_error(paths: FleetPaths, ready: Ready, made: Made) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _unmake(paths, ready, made.specs)
        raise


def _unmake(paths: FleetPaths, ready: Ready, made: Sequence[WorkerSpec]) -> None:
    from orchestrator.hermes.home import remove_home

    names = {spec.name for spec in made}
    with suppress(HermuxError, OSError), edit_desired(paths) as desired:
        desired.workers = {name: entry for name, entry in desired.workers.items() if name not in names}
    for spec in made:
        shutil.rmtree(paths.worker(spec.name).dir, ignore_errors=True)
        with suppress(HermuxError, OSError):
            remove_home(ready.hermes_root, spec.hermes_profile)
