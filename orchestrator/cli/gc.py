"""`hermux gc`: what is left on disk that nobody needs; it is only deleted with --delete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.api.picture import span
from orchestrator.cli.options import FleetName, Json, Quiet, open_fleet
from orchestrator.cli.show import Column, one_line, out, out_json, runnable, table, talk, terminal_width

if TYPE_CHECKING:
    from orchestrator.api.gc import Gone, Kept
    from orchestrator.fleet.leftover import Leftover

COLUMNS = (
    Column("WHAT"),
    Column("SIZE", right=True),
    Column("AGE", right=True),
    Column("WHY", least=16),
    Column("PATH", least=24),
)
KEPT = 10
"""Lines about what stays."""


def gc(
    delete: Annotated[bool, typer.Option("--delete", help="delete what is listed")] = False,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="AGE", help="only what is older: 30d, 12h, 0 (at least an hour)"
        ),
    ] = "30d",
    archives: Annotated[
        bool,
        typer.Option("--archives", help="also what removed workers learned: memories, skills, conversations"),
    ] = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Show what is left on disk that no worker needs, each with its size, its age and why it is safe to delete.

    Nothing is deleted without --delete. Never named: what a worker needs, conversations, memories and skills
    of workers that exist, worktrees, and profiles that hermux did not make.
    """
    from orchestrator.api import gc as api

    age = api.parse_age(older_than)
    opened = open_fleet(fleet)
    found = api.find(opened.paths, opened.env, older_than=age, archives=archives)
    gone = list(api.delete(opened.paths, found.items)) if delete else []
    failed = [each for each in gone if not each.deleted and each.why]
    if json:
        out_json(_document(opened.name, age, delete, found.items, found.kept, gone))
    else:
        _print(
            found.items, found.kept, gone, delete=delete, quiet=quiet, fleet=opened.name, archives=archives
        )
    for each in failed:
        talk(f"{each.item.path} stays: {each.why}")
    return 1 if failed else 0


def _print(
    items: Sequence[Leftover],
    kept: Sequence[Kept],
    gone: Sequence[Gone],
    *,
    delete: bool,
    quiet: bool,
    fleet: str,
    archives: bool,
) -> None:
    if items:
        out(table(COLUMNS, [_row(item) for item in items], width=terminal_width()))
    if quiet:
        return
    if delete:
        talk(f"deleted {_amount(each.item.bytes for each in gone if each.deleted)}")
    elif items:
        flags = " --archives" if archives else ""
        talk(f"{_amount(item.bytes for item in items)} → {runnable(f'hermux gc --delete{flags}', fleet)}")
    else:
        talk("nothing is left over")
    if kept:
        talk(f"kept: {_amount(each.bytes for each in kept)}")
        for each in kept[:KEPT]:
            talk(f"  {each.path} ({_size(each.bytes)}): {each.why}")
        if len(kept) > KEPT:
            talk(f"  and {len(kept) - KEPT} more: hermux gc --json has all")


def _document(
    fleet: str,
    age: float,
    delete: bool,
    items: Sequence[Leftover],
    kept: Sequence[Kept],
    gone: Sequence[Gone],
) -> dict[str, Any]:
    done = {each.item.path: each for each in gone}
    return {
        "schema": 1,
        "fleet": fleet,
        "delete": delete,
        "older_than": age,
        "items": [
            {
                "kind": item.kind,
                "path": str(item.path),
                "bytes": item.bytes,
                "age": round(max(0.0, time.time() - item.time), 3),
                "why": item.why,
                "deleted": item.path in done and done[item.path].deleted,
                "error": done[item.path].why if item.path in done else "",
            }
            for item in items
        ],
        "kept": [{"path": str(each.path), "bytes": each.bytes, "why": each.why} for each in kept],
        "bytes": sum(item.bytes for item in items),
    }


def _row(item: Leftover) -> list[str]:
    return [
        item.kind,
        _size(item.bytes),
        span(time.time() - item.time),
        one_line(item.why),
        one_line(item.path),
    ]


def _amount(sizes: Iterable[int]) -> str:
    listed = list(sizes)
    return f"{len(listed)} item{'' if len(listed) == 1 else 's'}, {_size(sum(listed))}"


def _size(number: int) -> str:
    """Return a size in at most seven characters: `950 B`, `12 kB`, `3.4 MB`."""
    if number < 1000:
        return f"{number} B"
    for size, unit in ((1e3, "kB"), (1e6, "MB"), (1e9, "GB")):
        if number < size * 999.5:
            amount = number / size
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
    return f"{number / 1e12:.1f} TB"
