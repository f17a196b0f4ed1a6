"""The shape of `fleet.yaml`. Imported only when such a file is read: pydantic takes 0.1 s to import.

`docs/fleet.schema.json` is made from this (`scripts/gen-fleet-schema`), so each field has its words for editors.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.fleet.expand import MOST
from orchestrator.store.role_schema import Address, Model, Restart, Toolset, Variable

SCHEMA: Literal[1] = 1

Path = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00\r\n]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Settings(_Strict):
    """What may stand in `defaults`, for all workers, and in each worker, which wins."""

    role: str = ""
    """The role; left out = the one that is called like the worker."""
    cwd: Path = ""
    """Where it works, seen from this file; left out = this file's folder."""
    repo: Path = ""
    """The same, in a git repository."""
    worktree: bool | None = None
    """true: a git worktree of its own; false: none; left out = where several would share a repository."""
    env: dict[str, str] = {}
    """Variables; ${NAME} in a value is the variable NAME of whoever runs `hermux up`. Beside those of `defaults`."""
    env_file: Path = ""
    """A file of KEY=VALUE lines, seen from this file; `env` wins."""
    endpoint: Address = ""
    """A URL, the name of a saved endpoint, or `rehearsal`; left out = as the role says, then as for every worker."""
    model: Model = ""
    """The model asked of the endpoint; left out = the endpoint's own."""
    key_env: Variable = ""
    """The name of the variable that holds the endpoint's key; never the key."""
    toolsets: list[Toolset] = []
    """Hermes toolsets; left out = the role's."""
    max_turns: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Model calls a turn may take; left out or 0 = the role's."""
    restart: Restart | None = None
    """When it is started again after a death; a field that is left out is the role's."""


class Worker(Settings):
    """One worker, or with `count` several that are called NAME-1, NAME-2, …"""

    count: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """How many; left out = one that is called exactly like this."""
    prompt: Annotated[str, Field(min_length=1)] = ""
    """Its first message, sent once: when the worker is made."""
    prompt_file: Path = ""
    """The same, from a file, seen from this one."""
    after: list[str] = []
    """Workers of this file that are ready before this one is started."""


class FleetFile(_Strict):
    """A fleet of hermux, whole: `hermux up` makes it so."""

    schema_: Annotated[Literal[1], Field(alias="schema")] = SCHEMA
    """The version of this file's form."""
    defaults: Settings = Settings()
    workers: Annotated[dict[str, Worker | None], Field(min_length=1)]
    """By name."""
    groups: dict[str, Annotated[list[str], Field(min_length=1)]] = {}
    """Workers of this file, or globs of them, by the name that commands take as @NAME."""


def json_schema() -> dict[str, Any]:
    """Return the schema of `fleet.yaml` for editors (JSON Schema 2020-12)."""
    made = FleetFile.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "fleet.yaml of hermux",
    }


def schema_text() -> str:
    """Return it as docs/fleet.schema.json holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
