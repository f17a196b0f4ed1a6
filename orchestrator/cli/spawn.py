"""`hermux spawn` and `hermux scale`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api import Fleet
from orchestrator.api.branch import branch_of
from orchestrator.cli.listing import notice, state, where
from orchestrator.cli.options import (
    EndpointUrl,
    FleetName,
    Json,
    KeyEnv,
    Model,
    NoWait,
    Quiet,
    Verbose,
    open_fleet,
)
from orchestrator.cli.show import Column, out, out_json, table, talk, talker, terminal_width
from orchestrator.errors import HermuxError, UsageError

if TYPE_CHECKING:
    from orchestrator.api.order import Isolation

Worktree = Annotated[
    bool, typer.Option("--worktree", help="a git worktree for each [default for several in a repository]")
]
Shared = Annotated[bool, typer.Option("--shared", help="all in one directory, also in a repository")]

COLUMNS = (
    Column("NAME"),
    Column("ROLE", least=5),
    Column("STATE", optional=True),
    Column("CWD", least=12),
    Column("BRANCH", least=8, optional=True),
    Column("ENDPOINT", least=16),
)


def _count(text: str) -> int:
    if not (str(text).isascii() and str(text).isdigit()):
        raise UsageError(
            f"{text!r} is no number of workers", hint="hermux spawn 3, or by name: hermux spawn --name NAME"
        )
    return int(text)


def spawn(
    count: Annotated[int, typer.Argument(metavar="N", help="how many", parser=_count)] = 1,
    role: Annotated[
        str, typer.Option("--role", metavar="R,R", help="roles, taken in turn", show_default=False)
    ] = "",
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="its name, or their stem", show_default=False)
    ] = "",
    cwd: Annotated[
        str, typer.Option("--cwd", metavar="DIR", help="where they work [default: here]", show_default=False)
    ] = "",
    repo: Annotated[
        str,
        typer.Option("--repo", metavar="DIR", help="the same, in a git repository", show_default=False),
    ] = "",
    worktree: Worktree = False,
    shared: Shared = False,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="K=V", help="a variable for them; repeatable")
    ] = None,
    env_file: Annotated[
        str, typer.Option("--env-file", metavar="F", help="a file of KEY=VALUE lines", show_default=False)
    ] = "",
    endpoint: EndpointUrl = "",
    model: Model = "",
    key_env: KeyEnv = "",
    prompt: Annotated[
        str, typer.Option("--prompt", metavar="T", help="the first message", show_default=False)
    ] = "",
    prompt_file: Annotated[
        str,
        typer.Option("--prompt-file", metavar="F", help="the first message, from a file", show_default=False),
    ] = "",
    hermes_profile: Annotated[
        str,
        typer.Option(
            "--hermes-profile", metavar="P", help="work on a Hermes profile that you have", show_default=False
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="hermux may put its plugin into that profile")] = False,
    toolsets: Annotated[
        str, typer.Option("--toolsets", metavar="a,b", help="Hermes toolsets", show_default=False)
    ] = "",
    max_turns: Annotated[
        int | None, typer.Option("--max-turns", metavar="N", help="model calls a turn may take", min=1)
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="WxH", help="columns and rows of the screen")
    ] = "120x40",
    replace: Annotated[
        bool, typer.Option("--replace", help="end and archive the worker that has the name")
    ] = False,
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Add N workers, wait until each is ready, and show where they work and with which model.

    Several workers in a git repository get a worktree each, on a branch hermux/FLEET/WORKER that begins at the
    commit that is checked out there; --shared puts them all into the one directory. $PORT is a number that no
    other worker has. Roles are taken in turn: coder, research, qa, creative, orchestrator, general; names are numbered. The
    endpoint is the first that is named by flags, environment, `hermux endpoint set`, or the user's own Hermes
    profile; else the rehearsal model, which gives scripted answers.
    """
    from orchestrator.api.order import Order
    from orchestrator.fleet.resolve import Asked

    columns, rows = _size(size)
    order = Order(
        count=count,
        roles=_words(role, "--role"),
        name=name,
        cwd=cwd,
        repo=repo,
        isolation=_isolation(worktree, shared),
        variables=_variables(env or [], env_file),
        asked=Asked(endpoint, model, key_env),
        prompt=_prompt(prompt, prompt_file),
        toolsets=_words(toolsets, "--toolsets"),
        hermes_profile=hermes_profile,
        yes=yes,
        max_turns=max_turns or 0,
        columns=columns,
        rows=rows,
        replace=replace,
    )
    opened = open_fleet(fleet)
    if yes and not hermes_profile:
        raise UsageError("--yes goes with --hermes-profile")
    made = opened.spawn_order(order, wait=False, say=talker(quiet), ask=_asker())
    names = [spec.name for spec in made.specs]
    _finish(opened, names, wait=not no_wait, json=json, quiet=quiet, verbose=verbose)


def scale(
    wanted: Annotated[
        list[str], typer.Argument(metavar="N | R=N...", help="how many in all, or of each role")
    ],
    cwd: Annotated[
        str,
        typer.Option("--cwd", metavar="DIR", help="where new ones work [default: here]", show_default=False),
    ] = "",
    repo: Annotated[
        str,
        typer.Option("--repo", metavar="DIR", help="the same, in a git repository", show_default=False),
    ] = "",
    worktree: Worktree = False,
    shared: Shared = False,
    endpoint: EndpointUrl = "",
    model: Model = "",
    key_env: KeyEnv = "",
    no_wait: NoWait = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Make the fleet exactly N workers, or each named role; twice does no harm.

    Stopped workers come back before new ones are made. Surplus ones are stopped and keep everything.
    """
    from orchestrator.api.order import Order
    from orchestrator.api.scale import parse_wanted
    from orchestrator.fleet.resolve import Asked

    opened = open_fleet(fleet)
    asked, isolation = Asked(endpoint, model, key_env), _isolation(worktree, shared)
    order = Order(cwd=cwd, repo=repo, isolation=isolation, asked=asked)
    names = opened.scale(parse_wanted(wanted), order, wait=False, say=talker(quiet))
    if not no_wait:
        opened.stop([name for name in opened.names() if name not in names], say=talker(quiet))
    if not names and not quiet and not json:
        talk(f"no worker of fleet {opened.name} runs any more; they keep everything: hermux start '*'")
    _finish(opened, names, wait=not no_wait, json=json, quiet=quiet, verbose=verbose)


def _finish(
    fleet: Fleet, names: Sequence[str], *, wait: bool, json: bool, quiet: bool, verbose: bool
) -> None:
    """Wait for workers that were made, and show them whatever came of it."""
    trouble: HermuxError | None = None
    if wait and names:
        try:
            fleet.wait_ready(names, say=talker(quiet))
        except HermuxError as error:
            trouble = error
    _show(fleet, names, json=json, verbose=verbose)
    if trouble:
        raise trouble


def _show(fleet: Fleet, names: Sequence[str], *, json: bool, verbose: bool) -> None:
    picture = fleet.picture()
    workers = {name: picture.workers[name] for name in names if name in picture.workers}
    if json:
        out_json(
            {
                "schema": 1,
                "fleet": fleet.name,
                "workers": [_entry(name, each) for name, each in workers.items()],
            }
        )
        return
    if not workers:
        return
    out(table(COLUMNS, [_row(name, each, verbose) for name, each in workers.items()], width=terminal_width()))
    if picture.rehearsal:
        out(notice(picture))


def _entry(name: str, worker: dict[str, Any]) -> dict[str, Any]:
    kept = ("role", "cwd", "hermes_profile", "endpoint", "phase", "word", "why")
    return {
        "name": name,
        **{key: worker.get(key) for key in kept},
        "branch": branch_of(str(worker.get("cwd", ""))),
    }


def _row(name: str, worker: dict[str, Any], verbose: bool) -> list[str]:
    endpoint = worker.get("endpoint") or {}
    at = where(endpoint)
    told = str(endpoint.get("source") or "").removeprefix("rehearsal model ").strip("()")
    source = f" ({told})" if verbose and told else ""
    cwd = str(worker.get("cwd", ""))
    return [name, str(worker.get("role", "")), state(worker), cwd, branch_of(cwd), at + source]


def _asker() -> Callable[[str], bool] | None:
    """Return what asks the person at the terminal, None when there is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return lambda question: typer.confirm(question, default=False, err=True)


def _isolation(worktree: bool, shared: bool) -> Isolation:
    from orchestrator.api.order import Isolation

    if worktree and shared:
        raise UsageError("--worktree and --shared exclude each other")
    if worktree:
        return Isolation.WORKTREE
    return Isolation.SHARED if shared else Isolation.AUTO


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    if not found:
        raise UsageError(f"--size {text!r} is no size", hint="write columns x rows: --size 120x40")
    return int(found[1]), int(found[2])


def _words(text: str, flag: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",")) if text else ()
    if any(not word or " " in word for word in words):
        raise UsageError(f"{flag} {text!r} is no list", hint=f"separate by commas: {flag} a,b")
    return words


def _variables(pairs: Sequence[str], file: str) -> dict[str, str]:
    from orchestrator.api.order import read_variables

    return read_variables(pairs, Path(file) if file else None)


def _prompt(text: str, file: str) -> str:
    if text and file:
        raise UsageError("--prompt and --prompt-file exclude each other")
    if not file:
        return text
    from orchestrator.api.order import read_text

    return read_text(file)
