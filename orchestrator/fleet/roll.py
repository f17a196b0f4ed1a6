"""Which workers follow an endpoint that changes, and what they are started from then. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.fleet.resolve import ENDPOINT, KEY, MODEL, same_server
from orchestrator.fleet.spec import Endpoint, WorkerSpec


@dataclass(frozen=True, slots=True)
class Target:
    """What workers are to have. `endpoint.name` is what it is saved under, `key` the value of its key."""

    endpoint: Endpoint
    key: str = ""
    fallback: tuple[Endpoint, ...] = ()
    is_default: bool = False


def follows(endpoint: Endpoint, target: Target) -> bool:
    """Whether a worker's endpoint is the one that changes: by its name, or because it took the default."""
    named = bool(endpoint.name) and endpoint.name == target.endpoint.name
    return named or (target.is_default and ENDPOINT not in endpoint.given)


def keeps(spec: WorkerSpec, target: Target) -> str | None:
    """Return why a worker keeps its endpoint, "" when it has nothing to do with this one, None when it follows."""
    old = spec.endpoint
    if not follows(old, target):
        return f"{old.model} at {old.base_url} ({old.source})" if target.is_default else ""
    if spec.user_profile:
        return f"its Hermes profile {spec.hermes_profile} is yours, and says itself which model it asks"
    if MODEL in old.given:
        return f"the model {old.model} was chosen for it alone"
    return None


def changed(spec: WorkerSpec, target: Target) -> WorkerSpec:
    """Return the spec on the new endpoint.

    A key of the worker's own goes along on the same server only. Fallback models that its role named stay;
    those of its own server go along to the new one.
    """
    old, new = spec.endpoint, target.endpoint
    own_key = KEY in old.given and same_server(old, new)
    kept = tuple(word for word in old.given if word == ENDPOINT or (word == KEY and own_key))
    endpoint = replace(new, key_env=old.key_env if own_key else new.key_env, given=kept)
    own = tuple(
        replace(each, base_url=endpoint.base_url, key_env=endpoint.key_env) if _beside(each, old) else each
        for each in spec.fallback
        if each.given
    )
    shared = tuple(replace(each, key_env=endpoint.key_env) for each in target.fallback)
    return replace(spec, endpoint=endpoint, fallback=own or shared)


def lost_key(old: WorkerSpec, new: WorkerSpec) -> str:
    """Return what to tell of a worker's own key that does not go along, "" if there is none."""
    if KEY not in old.endpoint.given or KEY in new.endpoint.given or not old.endpoint.key_env:
        return ""
    used = f"${new.endpoint.key_env} is" if new.endpoint.key_env else "no key is"
    return f"its own key ${old.endpoint.key_env} is not sent to another server, {used}"


def facts(endpoint: Endpoint) -> tuple[object, ...]:
    """Return what a server sees of an endpoint, less the key's value."""
    kind = str(endpoint.kind)
    return endpoint.base_url, endpoint.model, endpoint.context_length, kind, endpoint.key_env


def same(one: WorkerSpec, other: WorkerSpec) -> bool:
    """Whether two specs ask the same of the same servers."""
    return [facts(one.endpoint), *map(facts, one.fallback)] == [
        facts(other.endpoint),
        *map(facts, other.fallback),
    ]


def _beside(one: Endpoint, other: Endpoint) -> bool:
    """Whether a fallback is another model of the worker's own endpoint."""
    return ENDPOINT not in one.given and one.base_url == other.base_url
