"""The documents that `--json` prints, field by field: docs/json.md is made from this, and tests compare.

A path names a field: `workers[].name` is `name` in each object of the list `workers`. `object` fields whose
inner fields are not listed are Hermes' or a server's own and may grow.
"""

from __future__ import annotations

from typing import Any

from orchestrator.cli.schemas.shape import Schema
from orchestrator.cli.schemas.surroundings import SURROUNDINGS
from orchestrator.cli.schemas.workers import WORKERS
from orchestrator.cli.schemas.workplace import WORKPLACE

SCHEMAS = (*WORKERS, *WORKPLACE, *SURROUNDINGS)


def schema_of(verb: str) -> Schema:
    """Return the schema of a verb; raises KeyError."""
    for schema in SCHEMAS:
        if verb in schema.verbs:
            return schema
    raise KeyError(verb)


def undocumented(verb: str, document: Any) -> list[str]:
    """Return the paths in a document that the verb's schema does not name."""
    known = {field.path for field in schema_of(verb).fields}
    return sorted(path for path in set(_paths(document, "")) if not _covered(path, known))


def _covered(path: str, known: set[str]) -> bool:
    if path in known or any(each.startswith((f"{path}.", f"{path}[")) for each in known):
        return True
    parent = path.rpartition(".")[0]
    return parent in known and not any(each.startswith(f"{parent}.") for each in known)


def _paths(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        inner = [_paths(each, f"{path}.{key}" if path else key) for key, each in value.items()]
        return [*([path] if path else []), *(found for each in inner for found in each)]
    if isinstance(value, list):
        return [found for each in value for found in _paths(each, f"{path}[]")] or [f"{path}[]"]
    return [path]
