"""`hermux selftest`: faults dealt to a private fleet, and what came of each."""

from __future__ import annotations

import os
import random
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.options import Json, Quiet
from orchestrator.cli.show import out_json, out_line, talk
from orchestrator.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from orchestrator.selftest.suite import Result

TITLES = ("fault", "noticed", "recovered", "lost", "doubled", "left", "foreign", "verdict")
WIDTHS = (16, 8, 9, 4, 7, 4, 7, 0)


def selftest(
    faults: Annotated[
        str, typer.Option("--faults", metavar="A,B", help="only these (all)", show_default=False)
    ] = "",
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="so many times", min=1, max=50)] = 1,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="S", help="fixes what is left to chance", show_default=False),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="size of the fleet", min=1, max=16)
    ] = 2,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Deal faults to a private fleet with the rehearsal model, and show what came of each.

    Real kills and real terminals, the real Hermes, in a folder of its own: your fleets, tmux and files are only
    read. Exit code 0: every fault was survived or cannot be provoked here; 1: one was not survived, and its folder
    is kept.
    """
    from orchestrator.selftest.suite import chosen, every, play

    picked = chosen([name for name in faults.split(",") if name])
    chance = random.randrange(10_000) if seed is None else seed
    if not quiet:
        talk(f"{len(picked) * rounds} faults on a fleet of {workers}, seed {chance}")
    results: list[Result] = []
    say = talk if not quiet else (lambda text: None)
    played = play(every(picked, rounds), os.environ, workers=workers, seed=chance, say=say)
    if not json:
        out_line(_line(TITLES))
    with ended_by_signals(), closing(played):
        for result in played:
            results.append(result)
            if not json:
                out_line(_row(result))
    failed = [each for each in results if each.verdict == "failed"]
    if json:
        out_json(_document(results, seed=chance, workers=workers))
    elif not quiet:
        talk(_summary(results))
    return 1 if failed else 0


def _document(results: list[Result], *, seed: int, workers: int) -> dict[str, Any]:
    ok = all(each.verdict != "failed" for each in results)
    return {
        "schema": 1,
        "ok": ok,
        "seed": seed,
        "workers": workers,
        "faults": [each.plain() for each in results],
    }


def _line(cells: tuple[str, ...]) -> str:
    return "  ".join(
        f"{cell:<{width}}" if at in (0, 7) else f"{cell:>{width}}"
        for at, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ).rstrip()


def _row(result: Result) -> str:
    counts = [len(each) for each in (result.lost, result.doubled, result.left, result.foreign)]
    played = result.verdict != "not provoked"
    cells = [str(count) if played else "-" for count in counts]
    said = result.verdict + (f": {result.why}" if result.why else "")
    return _line((result.fault, _seconds(result.noticed), _seconds(result.recovered), *cells, said))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _summary(results: list[Result]) -> str:
    count = {word: sum(r.verdict == word for r in results) for word in ("survived", "failed", "not provoked")}
    lost, doubled = sum(len(r.lost) for r in results), sum(len(r.doubled) for r in results)
    told = ", ".join(f"{number} {word}" for word, number in count.items() if number)
    return f"{told}; {lost} messages lost, {doubled} doubled"
