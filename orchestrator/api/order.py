"""What `spawn` was asked for, and everything about it that can be checked before anything is made."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.fleet.expand import expand
from orchestrator.fleet.message import normalise
from orchestrator.fleet.resolve import Asked
from orchestrator.fleet.role import Role
from orchestrator.fleet.spec import ROLE_ORDER, Endpoint, RestartPolicy, WorkerSpec, hermes_profile_name
from orchestrator.store.env import check_variable, parse_env_file
from orchestrator.store.paths import RESERVED

NARROWEST = 64
"""Columns: below this Hermes' prompt line loses its marks (0.19.0)."""
LARGEST = 1000


class Isolation(StrEnum):
    """Whether each worker gets a git worktree of its own. `auto`: where several would share a repository."""

    AUTO = "auto"
    WORKTREE = "worktree"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Order:
    """What `spawn` was asked for. Empty values mean: as the role says, or as Hermes does by itself."""

    count: int = 1
    roles: tuple[str, ...] = ()
    """Taken in turn; empty = the built-in order."""
    name: str = ""
    cwd: str = ""
    """Empty = the caller's."""
    repo: str = ""
    """A directory in a git repository, in place of `cwd`."""
    isolation: Isolation = Isolation.AUTO
    beside: int = 0
    """Workers that run beside those of this order, by the same wish: a crowd shares no checkout unasked."""
    variables: Mapping[str, str] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)
    prompt: str = ""
    """First message to each of the workers."""
    toolsets: tuple[str, ...] = ()
    hermes_profile: str = ""
    """A Hermes profile that the user had before, in place of a new one."""
    yes: bool = False
    """The plugin may be put into that profile."""
    max_turns: int = 0
    columns: int = 120
    rows: int = 40
    replace: bool = False
    restart: RestartPolicy | None = None
    """In place of the role's."""
    after: tuple[str, ...] = ()
    """Workers that have to be ready first."""
    source: str = ""
    """The fleet file that declares them."""

    @property
    def in_turn(self) -> tuple[str, ...]:
        return self.roles or (("general",) if self.hermes_profile else ROLE_ORDER)


def check_order(order: Order) -> Path:
    """Return the working directory; raises UsageError for whatever cannot be done."""
    if not NARROWEST <= order.columns <= LARGEST or not 10 <= order.rows <= LARGEST:
        raise UsageError(
            f"a screen of {order.columns}x{order.rows} cannot be used",
            hint=f"{NARROWEST} to {LARGEST} columns and 10 to {LARGEST} rows: --size 120x40",
        )
    if order.max_turns < 0:
        raise UsageError(f"--max-turns {order.max_turns} is not possible", hint="use 1 or more")
    if order.hermes_profile:
        check_own(order)
    if order.replace and (not order.name or order.count != 1):
        raise UsageError("--replace needs the --name of one worker")
    if order.cwd and order.repo:
        raise UsageError(
            "--cwd and --repo exclude each other", hint="--repo DIR is --cwd DIR in a git repository"
        )
    for name, value in order.variables.items():
        check_variable(name, value, where="--env")
    if order.prompt:
        check_text(order.prompt)
    return check_cwd(order.repo or order.cwd)


def check_own(order: Order) -> None:
    """Raise UsageError for what an order cannot have beside a Hermes profile of the user's."""
    if order.count != 1:
        raise UsageError(
            "--hermes-profile takes one worker: two Hermes on one profile write over each other",
            hint=f"hermux spawn 1 --hermes-profile {order.hermes_profile}",
        )
    taken = {
        "--endpoint": order.asked.url,
        "--key-env": order.asked.key_env,
        "--max-turns": order.max_turns,
    }
    for flag, value in taken.items():
        if value:
            raise UsageError(
                f"{flag} and --hermes-profile exclude each other: the profile keeps its own settings",
                hint=f"change them in Hermes: hermes -p {order.hermes_profile} config; -m MODEL is possible",
            )


def check_cwd(text: str) -> Path:
    """Return the directory as an absolute path; raises UsageError when a worker cannot work there."""
    path = Path(text or ".").expanduser()
    try:
        path = Path.cwd() / path
    except OSError as error:
        raise UsageError(
            f"the current directory is gone: {error.strerror}", hint="cd to another one"
        ) from error
    path = Path(os.path.normpath(path))
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise UsageError(f"{path} {what}", hint=f"make it first: mkdir -p {path}")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"{path} cannot be entered: permission denied")
    if any(ord(mark) < 32 for mark in str(path)):
        raise UsageError(f"{str(path)!r} holds control characters: a worker cannot work there")
    return path


def check_text(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a message's text as it will be delivered and what that changed; raises UsageError."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("the text is not valid UTF-8", hint="send it from a file saved as UTF-8") from error
    if "\0" in text:
        raise UsageError("the text holds a NUL character")
    bare, changed = normalise(text)
    if not bare:
        raise UsageError("the text is empty", hint="write it as the last argument, or use --file FILE")
    return bare, changed


def names_and_roles(order: Order, taken: Collection[str]) -> list[tuple[str, str]]:
    """Return the (name, role) of each new worker; raises UsageError and BadName."""
    kept = [name for name in taken if not (order.replace and name == order.name)]
    return expand(order.count, roles=order.in_turn, taken=kept, name=order.name or None, reserved=RESERVED)


def specs(
    chosen: Sequence[tuple[str, str]],
    roles: Mapping[str, Role],
    order: Order,
    *,
    fleet: str,
    cwd: Path,
    endpoints: Mapping[str, Endpoint],
    hermes: Path,
    hermes_root: Path,
) -> list[WorkerSpec]:
    """Return what each worker is started from: the order wins over its role. `endpoints` go by role."""
    made = []
    for name, role_name in chosen:
        role = roles[role_name]
        made.append(
            WorkerSpec(
                name=name,
                role=role_name,
                cwd=str(cwd),
                hermes_profile=order.hermes_profile or hermes_profile_name(fleet, name),
                user_profile=bool(order.hermes_profile),
                endpoint=endpoints[role_name],
                toolsets=order.toolsets or role.toolsets,
                max_turns=order.max_turns or role.max_turns,
                columns=order.columns,
                rows=order.rows,
                hermes=str(hermes),
                hermes_root=str(hermes_root),
                nudge=bool(role.nudge),
                nudge_text=role.nudge if isinstance(role.nudge, str) else "",
                restart=order.restart or role.restart,
                stall=role.stall,
                after=order.after,
            )
        )
    return made


def read_text(file: str) -> str:
    """Return the content of a message file; raises UsageError naming the file, and the line that is no UTF-8."""
    path = Path(file).expanduser()
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{file}:{line}: not UTF-8", hint="save the file as UTF-8") from error


def read_variables(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return the variables of `--env-file` and, over them, `--env`; raises UsageError, never with a value."""
    found = parse_env_file(file.expanduser()) if file else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError("--env takes K=V", hint="for example: --env LANG=C.UTF-8")
        check_variable(name, value, where="--env")
        found[name] = value
    return found
