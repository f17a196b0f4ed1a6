"""The saved endpoint: `$XDG_CONFIG_HOME/hermux/endpoint.json`, 0600, with the key's name and no key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.store.files import write_json
from orchestrator.store.roles import user_roles

SCHEMA = 1


def saved_path(env: Mapping[str, str]) -> Path:
    """Return where the endpoint is saved."""
    return user_roles(env).parent / "endpoint.json"


def load_endpoint(env: Mapping[str, str]) -> Endpoint | None:
    """Return the saved endpoint, None when there is none. Raises UsageError for a damaged file."""
    path = saved_path(env)
    try:
        content: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise _damaged(path, "not JSON") from error
    return _endpoint(path, content)


def save_endpoint(endpoint: Endpoint, env: Mapping[str, str]) -> Path:
    """Save the endpoint atomically and return the file. Raises NotReady when the disk refuses."""
    path = saved_path(env)
    content = {
        "schema": SCHEMA,
        "kind": endpoint.kind.value,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "context_length": endpoint.context_length,
        "key_env": endpoint.key_env,
    }
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(path, content)
    except OSError as error:
        raise NotReady(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def forget_endpoint(env: Mapping[str, str]) -> bool:
    """Remove the saved endpoint; return whether there was one."""
    path = saved_path(env)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NotReady(f"{path}: cannot be removed: {error.strerror or error}") from error
    return True


def _endpoint(path: Path, content: Any) -> Endpoint:
    if not isinstance(content, dict):
        raise _damaged(path, "not an object")
    if content.get("schema") != SCHEMA:
        raise _damaged(path, f"schema {content.get('schema')!r}, this version reads {SCHEMA}")
    texts = [content.get(name) for name in ("base_url", "model", "key_env")]
    context = content.get("context_length")
    if not all(isinstance(text, str) for text in texts) or not isinstance(context, int):
        raise _damaged(path, "a field is missing or of the wrong kind")
    if content.get("kind") not in [kind.value for kind in EndpointKind]:
        raise _damaged(path, f"kind {content.get('kind')!r} is not known")
    return Endpoint(
        content["base_url"],
        content["model"],
        context,
        kind=EndpointKind(content["kind"]),
        key_env=content["key_env"],
        source=f"saved ({path})",
    )


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(f"{path}: {what}", hint="save it again: hermux endpoint set URL -m MODEL")
