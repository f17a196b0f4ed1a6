"""`hermux worktree` and `hermux diff`: the git worktrees of workers, living and gone."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api import Fleet
from orchestrator.cli.options import FleetName, Json, Quiet, WorkerName, WorkerNames, open_fleet
from orchestrator.cli.show import Column, out, out_json, table, talk, terminal_width

if TYPE_CHECKING:
    from orchestrator.api.worktree import Listed

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)
Repo = Annotated[
    str, typer.Option("--repo", metavar="DIR", help="a directory in the repository", show_default=False)
]
COLUMNS = (
    Column("WORKER"),
    Column("BRANCH", least=12),
    Column("AHEAD", right=True),
    Column("DIRTY", least=5),
    Column("UNMERGED", right=True),
    Column("SIZE", right=True),
    Column("NOTE", least=8, optional=True),
    Column("PATH", least=12),
)


@app.command("ls")
def ls(
    recovery: Annotated[bool, typer.Option("--recovery", help="the recovery refs instead")] = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the fleet's worktrees: commits ahead, what is not committed, what is not merged, and the size.

    Those of workers that are gone are among them, and those that a killed spawn left.
    """
    from orchestrator.api import worktree

    opened = open_fleet(fleet)
    if recovery:
        _recoveries(worktree.recoveries(opened.paths, opened.env, repo=Path.cwd()), json)
        return
    found = worktree.listed(opened.paths, opened.env)
    if json:
        out_json({"schema": 1, "fleet": opened.name, "worktrees": [_document(each) for each in found]})
    elif found:
        out(table(COLUMNS, [_row(each) for each in found], width=terminal_width()))
    elif not quiet:
        talk(f"no worktrees in fleet {opened.name} → hermux spawn 2 --worktree")


def _recoveries(found: list[tuple[str, str]], json: bool) -> None:
    if json:
        out_json({"schema": 1, "recoveries": [{"repo": repo, "ref": ref} for repo, ref in found]})
    elif found:
        out(table((Column("REF"), Column("REPOSITORY")), [[ref, repo] for repo, ref in found]))
        repo, ref = found[-1]
        talk(f"→ hermux worktree restore {ref} --repo {shlex.quote(repo)}")


@app.command("path")
def path(worker: WorkerName, fleet: FleetName = "", json: Json = False) -> None:
    """Print the folder of a worker's worktree: cd "$(hermux worktree path W)"."""
    from orchestrator.api.worktree import record_of

    opened = open_fleet(fleet)
    (name,) = _one(opened, worker)
    tree = record_of(opened.paths, opened.env, name).worktree
    if json:
        out_json({"schema": 1, "name": name, "path": tree.path, "branch": tree.branch})
    else:
        out(tree.path)


@app.command("rm")
def rm(
    workers: WorkerNames,
    force: Annotated[bool, typer.Option("--force", help="also one that is dirty or not merged")] = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove the worktrees of stopped or removed workers; what is dirty or not merged stays, but with --force.

    A recovery ref has everything in each case, compared file by file before anything is deleted.
    """
    from orchestrator.api import worktree

    opened = open_fleet(fleet)
    names = _names(opened, workers)
    records = [worktree.record_of(opened.paths, opened.env, name) for name in names]
    worktree.check_owner_stopped(opened.paths, names)
    done = [worktree.part_with_any(opened.paths, record, opened.env, force=force) for record in records]
    if json:
        pairs = zip(names, done, strict=True)
        shown = [{"name": name, "worktree": each.document()} for name, each in pairs]
        out_json({"schema": 1, "removed": shown})
    for name, each in zip(names, done, strict=True) if not json else ():
        if not each.parted.kept:
            out(name)
        for line in each.lines() if not quiet or each.parted.kept else ():
            talk(f"{name}: {line}")
        if each.parted.kept and not force:
            talk(f"  → hermux worktree rm {name} --force")
    if any(each.parted.kept for each in done):
        raise typer.Exit(1)


@app.command("restore")
def restore(
    ref: Annotated[str, typer.Argument(metavar="REF", help="a recovery ref")],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="where [default: its old place]")] = "",
    repo: Repo = "",
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Bring a removed worktree back from its recovery ref, byte for byte."""
    from orchestrator.api import worktree

    opened = open_fleet(fleet)
    where = Path(repo).expanduser().absolute() if repo else Path.cwd()
    done, name = worktree.restore(opened.paths, opened.env, ref, folder, repo=where)
    if json:
        facts = {"path": str(done.path), "branch": done.branch, "head": done.head, "notes": list(done.notes)}
        out_json({"schema": 1, "ref": name, **facts})
        return
    out(str(done.path))
    if not quiet:
        talk(f"on {done.branch or 'no branch'} at {done.head[:8]}")
        for note in done.notes:
            talk(note)


def diff(
    worker: WorkerName,
    stat: Annotated[bool, typer.Option("--stat", help="only how much of which file")] = False,
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Show what a worker changed since its worktree began: commits, uncommitted and untracked files."""
    from orchestrator.api import worktree

    opened = open_fleet(fleet)
    (name,) = _one(opened, worker)
    if json:
        out_json({"schema": 1, "name": name, **worktree.changes(opened.paths, opened.env, name)})
        return
    sys.stdout.flush()
    color = sys.stdout.isatty()
    sys.stdout.buffer.write(worktree.patch(opened.paths, opened.env, name, stat=stat, color=color))


def _one(fleet: Fleet, pattern: str) -> list[str]:
    from orchestrator.api.select import select_one

    return [select_one(pattern, _known(fleet), fleet=fleet.name, groups=fleet.groups())]


def _names(fleet: Fleet, patterns: list[str]) -> list[str]:
    from orchestrator.api.select import select

    return select(patterns, _known(fleet), fleet=fleet.name, groups=fleet.groups())


def _known(fleet: Fleet) -> list[str]:
    """Return the workers that are there and those that left a worktree."""
    from orchestrator.api.worktree import workers

    return workers(fleet.paths, fleet.env)


def _document(each: Listed) -> dict[str, Any]:
    record, status = each.record, each.status
    tree = record.worktree
    known = ("ahead", "unmerged", "staged", "changed", "untracked", "conflicts", "size")
    return {
        "worker": record.worker,
        "owned": each.owned,
        "state": record.state,
        "there": each.there,
        "path": tree.path,
        "repo": tree.repo,
        "branch": tree.branch,
        "base": tree.base,
        "head": status.head if status else None,
        "detached": not status.branch if status else None,
        **{name: getattr(status, name) if status else None for name in known},
        "under_way": list(status.under_way) if status else [],
        "stashes": [text for _, text in status.stashes] if status else [],
        "nested": list(status.nested) if status else [],
        "problem": each.problem,
    }


def _row(each: Listed) -> list[str]:
    record, status = each.record, each.status
    if status is None:
        cells = ["?", "?", "?", ""]
    else:
        cells = [str(status.ahead), _dirty(each), str(status.unmerged), _size(status.size)]
    return [record.worker, record.worktree.branch, *cells, _note(each), record.worktree.path]


def _dirty(each: Listed) -> str:
    status = each.status
    assert status is not None
    counts = (
        (status.conflicts, "conflicts"),
        (status.staged, "staged"),
        (status.changed, "changed"),
        (status.untracked, "untracked"),
    )
    return ", ".join(f"{number} {what}" for number, what in counts if number) or "no"


def _note(each: Listed) -> str:
    """Return what else a person should know, the worst first."""
    status = each.status
    notes = [each.problem] if each.problem else []
    if not each.owned:
        left = each.record.state == "making"
        notes.append("left by a spawn that was killed" if left else "its worker is gone")
    if status is not None:
        notes += [f"{what} under way" for what in status.under_way]
        notes += (
            [] if status.branch == each.record.worktree.branch else [f"on {status.branch or 'no branch'}"]
        )
        notes += [f"a repository in {path}" for path in status.nested[:2]]
        notes += [f"{len(status.stashes)} stashed"] if status.stashes else []
        notes += ["git is at work in it"] if status.busy else []
    return "; ".join(notes)


def _size(size: int) -> str:
    for unit, power in (("G", 30), ("M", 20), ("k", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):.1f}{unit}"
    return f"{size}"
