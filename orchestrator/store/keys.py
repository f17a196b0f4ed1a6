"""A worker's key belongs to one endpoint: this keeps a new one apart until the worker starts there.

A command that gives a worker another endpoint stages the key under that endpoint's mark, in
`workers/<name>/keys.json` (0600), and only then changes the spec. The supervisor takes it up at the
start that has the new spec. So a crash between the two never sends one server's key to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from orchestrator.fleet.spec import Endpoint
from orchestrator.store.env import read_env, write_env
from orchestrator.store.files import BadFile, read_json, write_json
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import WorkerPaths

KEY_VARIABLE = "OPENAI_API_KEY"
"""The name under which Hermes gets the key: one that it strips from its tools' environment."""
_LOCK = 2.0
"""Seconds; it is held for the time of two small writes."""


def key_of(paths: WorkerPaths, endpoint: Endpoint) -> str:
    """Return the key that a start at this endpoint would have, "" for none."""
    staged = _staged(paths)
    mark = _mark(endpoint)
    return staged[mark] if mark in staged else read_env(paths).get(KEY_VARIABLE, "")


def stage_key(paths: WorkerPaths, endpoint: Endpoint, key: str, *, now: Endpoint) -> None:
    """Keep a key ("" = none) for the endpoint that the worker is to get; `now` is the one that it has.

    Raises OSError, TimedOut. Keys of other endpoints are dropped.
    """
    with FileLock(paths.keys_lock, timeout=_LOCK):
        kept = {mark: each for mark, each in _staged(paths).items() if mark == _mark(now)}
        write_json(paths.keys, {"schema": 1, "keys": kept | {_mark(endpoint): key}})


def take_up_key(paths: WorkerPaths, endpoint: Endpoint) -> str:
    """Make a key that was staged for this endpoint the worker's, and return the key that it has then.

    Raises OSError, TimedOut; nothing is lost then.
    """
    if not paths.keys.exists():
        return read_env(paths).get(KEY_VARIABLE, "")
    with FileLock(paths.keys_lock, timeout=_LOCK):
        staged, mark = _staged(paths), _mark(endpoint)
        if mark in staged:
            others = {name: value for name, value in read_env(paths).items() if name != KEY_VARIABLE}
            key = staged.pop(mark)
            write_env(paths, others | ({KEY_VARIABLE: key} if key else {}))
            if staged:
                write_json(paths.keys, {"schema": 1, "keys": staged})
            else:
                paths.keys.unlink(missing_ok=True)
    return read_env(paths).get(KEY_VARIABLE, "")


def has_key(paths: WorkerPaths, key: str) -> bool:
    """Whether the worker's key is this one, and none waits to replace it."""
    return not paths.keys.exists() and read_env(paths).get(KEY_VARIABLE, "") == key


def change_env(paths: WorkerPaths, variables: Mapping[str, str]) -> None:
    """Set some of a worker's variables; nothing is written where all are right."""
    if all(read_env(paths).get(name) == value for name, value in variables.items()):
        return
    with FileLock(paths.keys_lock, timeout=_LOCK):
        write_env(paths, read_env(paths) | dict(variables))


def staged_keys(paths: WorkerPaths) -> Iterable[str]:
    """Return the values that wait, for redaction."""
    return _staged(paths).values()


def _staged(paths: WorkerPaths) -> dict[str, str]:
    try:
        found = (read_json(paths.keys) or {}).get("keys")
    except BadFile:
        return {}
    entries = found if isinstance(found, dict) else {}
    return {str(mark): key for mark, key in entries.items() if isinstance(key, str)}


def _mark(endpoint: Endpoint) -> str:
    return sha256(f"{endpoint.base_url}\n{endpoint.key_env}".encode()).hexdigest()[:16]
