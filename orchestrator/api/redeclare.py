"""A worker that exists and what its file declares now: the difference, and writing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from orchestrator.api import endpoint as endpoints
from orchestrator.api.casting import Cast, fallback_addressed
from orchestrator.api.order import Isolation, Order, check_cwd, specs
from orchestrator.errors import UsageError
from orchestrator.fleet.roll import facts, same
from orchestrator.fleet.spec import Endpoint, RestartPolicy, WorkerSpec
from orchestrator.hermes import home
from orchestrator.store import keys
from orchestrator.store.env import read_env, write_env
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths

AT_ONCE = {"restart", "nudge", "nudge_text", "after"}
"""Fields that the supervisor alone reads: they hold without a restart of the worker."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a worker is to be started from."""

    cast: Cast
    spec: WorkerSpec
    variables: Mapping[str, str] = field(repr=False)
    changes: tuple[str, ...]
    """In words, without values of variables; empty = it is so already."""
    restart: bool
    """Whether its process has to be started anew for them."""


def compare(paths: FleetPaths, order: Order, cast: Cast, old: WorkerSpec) -> Fresh:
    """Return what a worker is to have, and how that differs from what it has. Writes nothing.

    Raises UsageError for what cannot be changed in a worker that exists: its worktree.
    """
    spec = _spec(paths, order, cast, old)
    worker, root = paths.worker(old.name), Path(old.hermes_root)
    changed = [
        each.name for each in fields(WorkerSpec) if getattr(old, each.name) != getattr(spec, each.name)
    ]
    had = read_env(worker)
    variables = {
        **order.variables,
        **endpoints.network(order.variables, had, (spec.endpoint, *spec.fallback)),
        **cast.variables(spec),
    }
    beside = _differs(had, variables)
    if keys.key_of(worker, spec.endpoint) != cast.key:
        beside.append("the endpoint's key")
    files = home.outdated(
        root,
        old,
        soul=cast.role.soul,
        key=bool(keys.key_of(worker, old.endpoint)),
        approvals_timeout=cast.role.approvals_timeout,
        overrides=cast.config(),
    )
    beside += [f"the role's {name}" for name in files]
    told = [f"{name} {_told(getattr(old, name))} → {_told(getattr(spec, name))}" for name in changed]
    restart = bool(beside) or not AT_ONCE.issuperset(changed)
    return Fresh(cast, spec, variables, (*told, *beside), restart)


def write(paths: FleetPaths, fresh: Fresh, old: WorkerSpec) -> WorkerSpec:
    """Write a worker's variables and profile, and return the spec for `desired.json`.

    Call it with the fleet's lock held. The key goes with the start at its endpoint. Raises OSError, NotReady.
    """
    spec = replace(
        fresh.spec,
        endpoint=endpoints.addressed(paths, fresh.spec.endpoint),
        fallback=tuple(fallback_addressed(paths, each) for each in fresh.spec.fallback),
    )
    if not fresh.restart:
        return spec
    worker, key = paths.worker(old.name), fresh.cast.key
    if facts(spec.endpoint) != facts(old.endpoint) or keys.key_of(worker, spec.endpoint) != key:
        keys.stage_key(worker, spec.endpoint, key, now=old.endpoint)
    with FileLock(worker.keys_lock):
        present = read_env(worker).get(keys.KEY_VARIABLE)
        others = {name: value for name, value in fresh.variables.items() if name != keys.KEY_VARIABLE}
        write_env(worker, others | ({keys.KEY_VARIABLE: present} if present else {}))
    home.write_home(
        Path(old.hermes_root),
        spec,
        soul=fresh.cast.role.soul,
        approvals_timeout=fresh.cast.role.approvals_timeout,
        key=bool(key),
        overrides=fresh.cast.config(),
        state=paths.root,
    )
    return spec


def _spec(paths: FleetPaths, order: Order, cast: Cast, old: WorkerSpec) -> WorkerSpec:
    role = cast.role
    target = endpoints.addressed(paths, cast.endpoint, choose_port=False)
    (planned,) = specs(
        [(old.name, role.name)],
        {role.name: role},
        order,
        fleet=paths.fleet,
        cwd=_cwd(order, old),
        endpoints={role.name: target},
        hermes=Path(old.hermes),
        hermes_root=Path(old.hermes_root),
    )
    spec = replace(
        cast.spec(paths, planned, choose_port=False), port=old.port, worktree=old.worktree, setup=old.setup
    )
    if same(spec, old):  # who named the endpoint changes nothing for the worker
        spec = replace(spec, endpoint=old.endpoint, fallback=old.fallback)
    return spec


def _cwd(order: Order, old: WorkerSpec) -> Path:
    wanted, tree = check_cwd(order.repo or order.cwd), old.worktree
    anew = (
        f"hermux stop {old.name} && hermux rm {old.name}, then up makes it anew; rm keeps what is not merged"
    )
    if tree is None:
        if order.isolation is Isolation.WORKTREE:
            raise UsageError(f"{old.name} has no worktree, and a worker gets none later", hint=anew)
        return wanted
    top = Path(tree.repo)
    if order.isolation is Isolation.SHARED or not wanted.resolve().is_relative_to(top.resolve()):
        raise UsageError(f"{old.name} has a worktree of {top}, and a worker cannot leave it", hint=anew)
    inside = Path(tree.path) / wanted.resolve().relative_to(top.resolve())
    return inside if inside.is_dir() else Path(old.cwd)


def _differs(had: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """Return which variables differ, by name, less the endpoint's key."""
    names = [name for name in {**had, **wanted} if name != keys.KEY_VARIABLE]
    added = [f"env +{name}" for name in names if name not in had]
    gone = [f"env -{name}" for name in names if name not in wanted]
    return [*added, *gone, *(f"env {n}" for n in names if n in had and n in wanted and had[n] != wanted[n])]


def _told(value: object) -> str:
    if isinstance(value, Endpoint):
        return f"{value.model or value.kind} at {value.base_url or 'an address of its own'}"
    if isinstance(value, tuple):
        return f"[{', '.join(_told(each) for each in value)}]"
    if isinstance(value, RestartPolicy):
        return ", ".join(f"{name} {number}" for name, number in asdict(value).items())
    return str(value)
