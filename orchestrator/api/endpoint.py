"""The endpoint of new workers: found, asked once, and explained where it will not do."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from orchestrator.fleet.resolve import Asked, resolve, saved_name
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.store.files import read_json, write_json
from orchestrator.store.paths import FleetPaths

REHEARSAL_MODEL = "hermux-rehearsal"
REHEARSAL_CONTEXT = 131072
REHEARSAL_NOTICE = "rehearsal model: scripted answers, no language model"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An endpoint that answered, the key's value, and what a person should hear about it."""

    endpoint: Endpoint
    key: str = ""
    said: tuple[str, ...] = ()
    engine: str = ""
    fallback: tuple[Endpoint, ...] = ()
    """Saved with the endpoint: models of the same server that are asked when it gives no answer."""


def find(env: Mapping[str, str], asked: Asked) -> tuple[Endpoint, list[str]]:
    """Return the first endpoint that is named anywhere, unasked, and why others were passed over."""
    from orchestrator.health.endpoint import read_hermes_model
    from orchestrator.hermes.install import hermes_root
    from orchestrator.store.endpoints import load_endpoint

    name = saved_name(asked, env)
    saved = None if name is None else load_endpoint(env, name)
    needed = name is not None and saved is None
    hermes, reason = read_hermes_model(hermes_root(env)) if needed else (None, "")
    found = resolve(asked, env, saved=saved, hermes=hermes)
    if found.kind is EndpointKind.REHEARSAL:
        return found, [reason] if reason and not reason.endswith("not there") else []
    if hermes is not None and found.source == hermes.source:
        return found, [f"endpoint copied from {found.source}"]
    return found, []


def choose(env: Mapping[str, str], asked: Asked) -> Chosen:
    """Return an endpoint that answers; raises NotReady, one line with the next step, when it does not.

    The rehearsal model is returned with base_url "": `addressed` fills it in for a fleet.
    """
    found, said = find(env, asked)
    if found.kind is EndpointKind.REHEARSAL:
        return Chosen(found, said=(*said, *_offers()))
    return checked(found, env, said)


def checked(found: Endpoint, env: Mapping[str, str], said: list[str]) -> Chosen:
    """Ask the endpoint once, and return it with what it says filled in; raises NotReady or UsageError."""
    from orchestrator.health.endpoint import check, key_value
    from orchestrator.store.endpoints import load_fallback

    endpoint, answer = check(found, env)
    key, told = key_value(endpoint, env), (*said, *answer.notes)
    return Chosen(endpoint, key, told, str(answer.engine), load_fallback(env, endpoint))


def network(
    given: Mapping[str, str], caller: Mapping[str, str], endpoints: Iterable[Endpoint]
) -> dict[str, str]:
    """Return a worker's proxy variables and certificates: those `given` to it, else its caller's.

    Hosts of its endpoints that are asked past the proxy are named in its NO_PROXY: Hermes 0.19 knows there
    neither networks nor this machine under another name.
    """
    from orchestrator.fleet.proxy import worker_network
    from orchestrator.health.http import proxy_for

    found = worker_network(given, caller)
    seen = {**given, **found}
    urls = [each.base_url for each in endpoints if each.base_url]
    past = [urlsplit(url).hostname or "" for url in urls if not proxy_for(url, seen)]
    return worker_network(given, caller, past) if past else found


def addressed(paths: FleetPaths, endpoint: Endpoint, *, choose_port: bool = True) -> Endpoint:
    """Return the endpoint; the rehearsal model gets the fleet's own address, whose port is chosen once.

    Call it with the fleet's lock held, or without `choose_port`: then nothing is written, and a fleet that has
    no rehearsal model yet leaves the address "".
    """
    if endpoint.kind is not EndpointKind.REHEARSAL:
        return endpoint
    port = int((read_json(paths.rehearsal) or {}).get("port") or 0)
    if not port and not choose_port:
        return endpoint
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        write_json(paths.rehearsal, {"schema": 1, "port": port})
    url = f"http://127.0.0.1:{port}/v1"
    return replace(
        endpoint, base_url=url, model=REHEARSAL_MODEL, context_length=REHEARSAL_CONTEXT, key_env=""
    )


def _offers() -> tuple[str, ...]:
    """Return a line for each model server found on this machine: offered by name, not used unasked."""
    from orchestrator.health.endpoint import offer_local

    return tuple(
        f"{answer.engine} answers at {answer.url}; to use it: hermux endpoint set {answer.url} -m {next(iter(answer.models), 'MODEL')}"
        for answer in offer_local()
    )
