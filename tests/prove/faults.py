"""The proof that a fleet survives random faults in a row, and the page that says so."""

from __future__ import annotations

import os
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path

from orchestrator.selftest.suite import FAULTS, Result, at_random, chosen, play
from tests.prove.page import machine

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
TEXT = """\
# Reliability: random faults in a row

`scripts/prove faults` deals random faults of [`hermux selftest`](selftest.md) to one fleet of real Hermes workers
with the rehearsal model, while numbered messages flow. After each fault every worker has to be up in its own
conversation, every message in exactly one user message at the model and in the order of sending, no process, pane,
socket, lock or worktree may be left beside what should be there, and a foreign tmux server has to be as it was
(a checksum over sessions, windows, panes, sizes, screens, options, hooks and processes).

Run by `scripts/prove faults --faults {count} --workers {workers} --seed {seed}` on {date}:
{machine}.

Seconds are the median and the longest, from the moment of the fault. "-" under *noticed*: there is nothing to notice.

| fault | what it is | dealt | noticed in | recovered in | lost | doubled | left behind | foreign touched | not survived |
|---|---|---|---|---|---|---|---|---|---|
{rows}

{survived} of {dealt} survived, {skipped} could not be provoked, in {seconds:.0f} s.{problems}
"""


def prove(*, count: int, workers: int, seed: int) -> tuple[list[Result], float]:
    """Deal `count` random faults; return what came of each, and the seconds in all."""
    begun, results = time.monotonic(), list[Result]()

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    order = at_random(chosen([]), count, seed)
    with closing(play(order, os.environ, workers=workers, seed=seed, say=say)) as played:
        for result in played:
            results.append(result)
            print(
                f"{len(results):4} {result.fault:<16} {result.worker:<5} {result.verdict} {result.why}",
                flush=True,
            )
    return results, time.monotonic() - begun


def page(results: list[Result], hermes: Path, *, workers: int, seed: int, seconds: float) -> str:
    """Return the page; no path of the machine stands in it."""
    failed = [each for each in results if each.verdict == "failed"]
    skipped = sum(each.verdict == "not provoked" for each in results)
    named = "".join(f"\n- {each.fault}, {each.worker}: {each.why}" for each in failed)
    return TEXT.format(
        count=len(results),
        workers=workers,
        seed=seed,
        date=time.strftime("%Y-%m-%d"),
        machine=machine(hermes),
        rows="\n".join(_row(fault.name, fault.does, results) for fault in FAULTS),
        survived=len(results) - len(failed) - skipped,
        dealt=len(results) - skipped,
        skipped=skipped,
        seconds=seconds,
        problems=f"\n\nNot survived:\n{named}" if failed else "",
    )


def _row(name: str, does: str, results: list[Result]) -> str:
    own = [each for each in results if each.fault == name and each.verdict != "not provoked"]
    if not own:
        why = next((each.why for each in results if each.fault == name), "not drawn")
        return f"| {name} | {does} | 0: {why} | | | | | | | |"
    counts = (
        sum(len(getattr(each, what)) for each in own) for what in ("lost", "doubled", "left", "foreign")
    )
    cells = [
        name,
        does,
        str(len(own)),
        _times([each.noticed for each in own]),
        _times([each.recovered for each in own]),
        *map(str, counts),
        str(sum(each.verdict == "failed" for each in own)),
    ]
    return f"| {' | '.join(cells)} |"


def _times(found: list[float | None]) -> str:
    known = [each for each in found if each is not None]
    return f"{statistics.median(known):.2f} / {max(known):.2f} s" if known else "-"
