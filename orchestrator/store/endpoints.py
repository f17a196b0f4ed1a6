"""The saved endpoints: `$XDG_CONFIG_HOME/hermux/endpoint.json`, 0600, with names of keys and no key.

Schema 2: `{"default": NAME, "endpoints": {NAME: {kind, base_url, model, context_length, key_env,
fallback: [{model, context_length}]}}}`. A file of schema 1 held one endpoint; it is read as `default`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.resolve import check_endpoint_name
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.store.files import write_json
from orchestrator.store.lock import FileLock
from orchestrator.store.roles import user_roles

SCHEMA = 2
UNNAMED = "default"
"""The name of an endpoint that is saved without one; it becomes the default."""


@dataclass(slots=True)
class SavedEndpoints:
    """All that is saved. `fallback` are models of the same server, asked when the first gives no answer."""

    default: str = ""
    """The endpoint that workers get when nothing else is named; "" = none."""
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    fallback: dict[str, tuple[Endpoint, ...]] = field(default_factory=dict)


class Damaged(UsageError):
    """The file cannot be understood; `endpoint set` puts it aside and begins anew."""


def saved_path(env: Mapping[str, str]) -> Path:
    """Return where endpoints are saved."""
    return user_roles(env).parent / "endpoint.json"


def load_endpoints(env: Mapping[str, str]) -> SavedEndpoints:
    """Return all saved endpoints. Raises Damaged for a file that is none of ours, UsageError if unreadable."""
    path = saved_path(env)
    try:
        content: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return SavedEndpoints()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "not JSON") from error
    if not isinstance(content, dict):
        raise _damaged(path, "not an object")
    if content.get("schema") == 1:
        return _read(path, {"default": UNNAMED, "endpoints": {UNNAMED: content}})
    if content.get("schema") != SCHEMA:
        raise UsageError(
            f"{path}: schema {content.get('schema')!r}, this version reads 1 and {SCHEMA}",
            hint=f"update hermux, or move the file away: mv {path} {path}.old",
        )
    return _read(path, content)


def load_endpoint(env: Mapping[str, str], name: str = "") -> Endpoint | None:
    """Return a saved endpoint, by default the default one; None when there is no default.

    Raises UsageError for an unknown name, with the nearest, and for a damaged file.
    """
    saved = load_endpoints(env)
    name = name or saved.default
    return saved.endpoints[_known(saved, name)] if name else None


def load_fallback(env: Mapping[str, str], endpoint: Endpoint) -> tuple[Endpoint, ...]:
    """Return the models that are asked when a saved endpoint's own gives no answer, with its key's name."""
    if not endpoint.name:
        return ()
    found = load_endpoints(env).fallback.get(endpoint.name, ())
    return tuple(
        replace(each, base_url=endpoint.base_url, key_env=endpoint.key_env, source=endpoint.source)
        for each in found
        if each.model != endpoint.model
    )


@contextmanager
def edit_endpoints(env: Mapping[str, str], *, anew: bool = False) -> Iterator[SavedEndpoints]:
    """Hold the lock, hand out what is saved to be changed, and write it whole, mode 0600.

    An exception inside leaves the file as it was. With `anew` a damaged file is put aside first.
    Raises TimedOut when another command keeps the lock, NotReady when the disk refuses.
    """
    path = saved_path(env)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.with_name("endpoint.lock")):
            saved = _load_or_put_aside(env, path) if anew else load_endpoints(env)
            yield saved
            write_json(path, _content(saved))
    except OSError as error:
        raise NotReady(f"{path}: cannot be written: {error.strerror or error}") from error


def save_endpoint(
    endpoint: Endpoint, env: Mapping[str, str], *, name: str = "", fallback: tuple[Endpoint, ...] = ()
) -> Path:
    """Save an endpoint under a name; without one as `default`, which then is the default.

    The first that is saved is the default too. Raises BadName, NotReady, TimedOut.
    """
    key = check_endpoint_name(name or UNNAMED)
    with edit_endpoints(env, anew=True) as saved:
        saved.endpoints[key] = replace(endpoint, name=key)
        saved.fallback[key] = fallback
        if not name or not saved.default:
            saved.default = key
    return saved_path(env)


def use_endpoint(name: str, env: Mapping[str, str]) -> None:
    """Make a saved endpoint the default; raises UsageError for an unknown name."""
    with edit_endpoints(env) as saved:
        saved.default = _known(saved, name)


def forget_endpoint(env: Mapping[str, str], name: str = "") -> bool:
    """Remove a saved endpoint, by default the default one; return whether there was one.

    Raises UsageError for an unknown name.
    """
    if not name and not load_endpoints(env).default:
        return False
    with edit_endpoints(env) as saved:
        key = _known(saved, name) if name else saved.default
        there = saved.endpoints.pop(key, None)
        saved.fallback.pop(key, None)
        if saved.default == key:
            saved.default = ""
    return there is not None


def _known(saved: SavedEndpoints, name: str) -> str:
    if name in saved.endpoints:
        return name
    near = get_close_matches(name, saved.endpoints, n=1)
    known = f"there are: {', '.join(saved.endpoints)}" if saved.endpoints else "none is saved"
    hint = f"did you mean {near[0]}? ({known})" if near else f"{known}; a URL begins with http:// or https://"
    raise UsageError(f"no endpoint {name[:60]!r} is saved", hint=hint)


def _load_or_put_aside(env: Mapping[str, str], path: Path) -> SavedEndpoints:
    try:
        return load_endpoints(env)
    except Damaged:
        path.replace(path.with_name("endpoint.json.damaged"))
        return SavedEndpoints()


def _content(saved: SavedEndpoints) -> dict[str, Any]:
    endpoints = {
        name: {
            "kind": each.kind.value,
            "base_url": each.base_url,
            "model": each.model,
            "context_length": each.context_length,
            "key_env": each.key_env,
            "fallback": [
                {"model": other.model, "context_length": other.context_length}
                for other in saved.fallback.get(name, ())
            ],
        }
        for name, each in saved.endpoints.items()
    }
    return {"schema": SCHEMA, "default": saved.default, "endpoints": endpoints}


def _read(path: Path, content: Mapping[str, Any]) -> SavedEndpoints:
    entries, default = content.get("endpoints"), content.get("default")
    if not isinstance(entries, dict) or not isinstance(default, str):
        raise _damaged(path, "a field is missing or of the wrong kind")
    saved = SavedEndpoints(default if default in entries else "")
    for name, entry in entries.items():
        try:
            saved.endpoints[name] = found = _endpoint(path, name, entry)
            saved.fallback[name] = tuple(_fallback(found, each) for each in entry.get("fallback") or ())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path, f"{name}: a field is missing or of the wrong kind") from error
    return saved


def _endpoint(path: Path, name: str, entry: Mapping[str, Any]) -> Endpoint:
    return Endpoint(
        _text(entry, "base_url"),
        _text(entry, "model"),
        int(entry["context_length"]),
        kind=EndpointKind(entry["kind"]),
        key_env=_text(entry, "key_env"),
        source=f"saved as {name} ({path})",
        name=name,
    )


def _fallback(endpoint: Endpoint, entry: Mapping[str, Any]) -> Endpoint:
    return replace(endpoint, model=_text(entry, "model"), context_length=int(entry["context_length"]))


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(
        f"{path}: {what}",
        hint=f"repair it, or begin anew (it is kept as {path.name}.damaged): hermux endpoint set URL -m MODEL",
    )
