"""What `hermux endpoint` shows, saves and tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.api.endpoint import choose, find
from orchestrator.fleet.resolve import REHEARSAL, Asked, rehearsal
from orchestrator.fleet.spec import Endpoint, EndpointKind


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """An endpoint, where it is saved, and what was said about it."""

    endpoint: Endpoint
    engine: str = ""
    saved: str = ""
    notes: tuple[str, ...] = ()


def current(env: Mapping[str, str] | None = None) -> EndpointReport:
    """Return the endpoint that a new worker would get; no server is asked."""
    env = os.environ if env is None else env
    found, said = find(env, Asked())
    return EndpointReport(found, saved=_saved(env), notes=tuple(said))


def save(url: str, model: str, key_env: str, env: Mapping[str, str] | None = None) -> EndpointReport:
    """Ask the server, and save the endpoint under `$XDG_CONFIG_HOME/hermux/`; raises NotReady, UsageError."""
    from orchestrator.store.endpoints import save_endpoint

    env = os.environ if env is None else env
    if url.strip().lower() == REHEARSAL:
        endpoint = rehearsal("asked for by hermux endpoint set")
        return EndpointReport(endpoint, saved=str(save_endpoint(endpoint, env)))
    report = test(url, model, key_env, env)
    return replace(report, saved=str(save_endpoint(report.endpoint, env)))


def test(
    url: str = "", model: str = "", key_env: str = "", env: Mapping[str, str] | None = None
) -> EndpointReport:
    """Ask the endpoint that is given, or that a new worker would get; raises NotReady, UsageError."""
    env = os.environ if env is None else env
    chosen = choose(env, Asked(url, model, key_env))
    engine = "rehearsal model" if chosen.endpoint.kind is EndpointKind.REHEARSAL else chosen.engine
    return EndpointReport(chosen.endpoint, engine=engine, notes=chosen.said)


def _saved(env: Mapping[str, str]) -> str:
    from orchestrator.store.endpoints import load_endpoint, saved_path

    return str(saved_path(env)) if load_endpoint(env) is not None else ""
