"""The shape of `role.yaml`. Imported only when a role is read: pydantic takes 0.1 s to import.

`docs/role.schema.json` is made from this (`scripts/gen-role-schema`), so each field has its words for editors.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import JsonSchemaValue

NEVER = ("no", "never", "off", False)
"""What `restart:` may say for `temporary`: a worker that died is not started again."""
LONGEST_NUDGE = 10_000
BOOLEANS = ("yes", "no", "on", "off", "never")
"""Words that are meant for true or false, and no text."""
_OPERATORS = re.compile(r"\n|&&|\|\||[;&|<>`]|\$\(")
"""Hermes compares no command that holds one of these with its allow list (0.19.0)."""


def _inside(path: str) -> str:
    """Return a path that stays below the repository; raises ValueError."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError("a path below the repository is wanted: not absolute, and without ..")
    return path


def _single(pattern: str) -> str:
    if _OPERATORS.search(pattern):
        raise ValueError("Hermes allows single commands only: leave out ; & | < > ` $( and line breaks")
    return pattern


Seconds = Annotated[float, Field(gt=0, le=31 * 86_400.0, allow_inf_nan=False)]
Model = Annotated[str, Field(max_length=200, pattern=r"^[^\s\x00-\x1f]*$")]
Address = Annotated[str, Field(max_length=500, pattern=r"^[^\s\x00-\x1f]*$")]
Variable = Annotated[str, Field(max_length=200, pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")]
Glob = Annotated[str, Field(min_length=1, max_length=1000)]
Allowed = Annotated[Glob, AfterValidator(_single)]
Below = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_inside)]
Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\r\n]+$")]
Toolset = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Approvals(_Strict):
    """Which commands Hermes asks about, and how long its dialogs wait."""

    mode: Literal["manual", "smart", "off"] = "manual"
    """manual: a person is asked; smart: a model judges first; off: nobody is asked."""
    timeout: Seconds = 86_400.0
    """Seconds an approval or a question waits for a person; then it is denied."""
    allow: list[Allowed] = []
    """Commands that run unasked: exact, or with * ? [ ]; single commands only."""
    deny: list[Glob] = []
    """Commands that never run, whatever the mode: globs of the whole command line."""


class Checkpoints(_Strict):
    """Snapshots of the working directory that Hermes takes before it changes files."""

    enabled: bool = False
    """Take them; /rollback in the worker restores."""
    max_snapshots: Annotated[int, Field(ge=1, le=1000)] = 20
    """How many are kept for each working directory."""


class Skills(_Strict):
    """Which skills the worker sees, by name."""

    allow: list[Word] | None = None
    """Only these of the skills that are there when the worker is made; left out = all."""
    deny: list[Word] = []
    """Never these."""


class Fallback(_Strict):
    """A model that Hermes switches to when the endpoint gives no answer; a bare word is a model's name."""

    model: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f]+$")]
    """The model's name, as its server calls it."""
    endpoint: Address = ""
    """A URL, the name of a saved endpoint, or `rehearsal`; left out = the worker's own."""
    key_env: Variable = ""
    """The variable that holds that endpoint's key."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> JsonSchemaValue:
        return _or(handler, core, {"type": "string", "minLength": 1})


class WorktreeFiles(_Strict):
    """What a new worktree needs beside what git checks out; paths and globs below the repository."""

    copy_: Annotated[list[Below], Field(alias="copy")] = []
    """Files that are copied in, such as `.env`."""
    link: list[Below] = []
    """Files and folders that all worktrees share, such as caches: linked."""
    setup: Annotated[str, Field(max_length=10_000)] = ""
    """A shell command that runs once, in the worktree, before the worker's first start."""


class RepositoryFile(_Strict):
    """`.hermux.yaml`, whole: what a repository says for its own worktrees; see `store/repofile.py`."""

    worktree: WorktreeFiles = WorktreeFiles()


def _nudge(value: Any) -> Any:
    """Return true, false or a text as it is: all faults are named here, since a union names each of its own."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().lower() in BOOLEANS:
        right = "; write true" if value in ("yes", "on") else "; write false" if value in BOOLEANS else ""
        raise ValueError(f"must be true, false or a text, not {value!r:.60}{right}")
    if not 0 < len(value.strip()) <= LONGEST_NUDGE:
        raise ValueError(f"a text of 1 to {LONGEST_NUDGE} characters is wanted")
    return value.strip()


Policy = Literal["permanent", "transient", "temporary"]


class Restart(_Strict):
    """After which ends a worker is started again, and how often until it is held; or the policy's word alone."""

    policy: Policy = "transient"
    """permanent: after any end; transient: not when a person ended it in its pane; temporary: after none."""
    max_restarts: Annotated[int, Field(ge=0, le=1000)] = 5
    """Restarts within `period`; the next death holds the worker."""
    period: Seconds = 300.0
    """Seconds in which they are counted."""
    backoff: Seconds = 1.0
    """Seconds before the second restart (the first comes at once); doubled each time."""
    backoff_cap: Seconds = 60.0
    """The longest such wait, in seconds."""
    healthy: Seconds = 120.0
    """Seconds up after which earlier deaths are forgotten."""

    @model_validator(mode="before")
    @classmethod
    def _by_word(cls, value: Any) -> Any:
        if isinstance(value, str | bool):
            word = value.lower() if isinstance(value, str) else value
            if word in NEVER:
                return {"policy": "temporary"}
            if word in get_args(Policy):
                return {"policy": word}
            raise ValueError(
                f"{value!r} is no policy; write permanent, transient (the default), temporary, "
                "or the fields, such as `{policy: transient, max_restarts: 5}`"
            )
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> JsonSchemaValue:
        return _or(handler, core, {"enum": [*get_args(Policy), *NEVER]})


class Stall(_Strict):
    """When a running turn is called stalled: no event, no line of output, no work of a tool's processes."""

    turn: Seconds = 450.0
    """Seconds without progress while the model is awaited."""
    tool: Seconds = 1200.0
    """Seconds without progress while a tool runs."""
    then: Literal["report", "interrupt", "restart"] = "report"
    """report: say so; interrupt: then end the turn; restart: then end the process, and go on in its conversation."""


class RoleFile(_Strict):
    """A role of hermux: the template that workers are made from."""

    description: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\r\n]+$")]
    """One line for lists."""
    toolsets: list[Toolset] = []
    """Hermes toolsets; none = Hermes' own default."""
    model: Model = ""
    """Model asked of the endpoint; left out = the endpoint's own."""
    endpoint: Address = ""
    """A URL, the name of a saved endpoint, or `rehearsal`; left out = as for every worker."""
    key_env: Variable = ""
    """The name of the variable that holds the endpoint's key; never the key."""
    fallback: list[Fallback] = []
    """Models that Hermes switches to, in turn, when the endpoint gives no answer."""
    max_tokens: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    """Tokens a single answer may have; 0 = Hermes' own default."""
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    """Sampling temperature; left out = the server's own default."""
    max_turns: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Model calls a turn may take; 0 = Hermes' own default."""
    checkpoints: Checkpoints = Checkpoints()
    skills: Skills = Skills()
    inherit: list[Literal["skills", "mcp", "memories"]] = []
    """What is copied from your own Hermes profile when the worker is made."""
    approvals: Approvals = Approvals()
    worktree: WorktreeFiles = WorktreeFiles()
    restart: Restart = Restart()
    stall: Stall = Stall()
    nudge: Annotated[bool | str, BeforeValidator(_nudge)] = True
    """Tell a worker that was interrupted by a crash to go on; a text = in these words."""


def _or(handler: Any, core: Any, other: JsonSchemaValue) -> JsonSchemaValue:
    """Return the schema of the fields, or of the short form."""
    fields = handler.resolve_ref_schema(handler(core))
    return {"anyOf": [dict(fields), other], "description": fields.get("description", "")}


def json_schema() -> dict[str, Any]:
    """Return the schema of `role.yaml` for editors (JSON Schema 2020-12)."""
    made = RoleFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "role.yaml of hermux"}


def schema_text() -> str:
    """Return it as docs/role.schema.json holds it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
