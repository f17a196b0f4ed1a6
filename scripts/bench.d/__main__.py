"""`python scripts/bench.d`: run rows, print them, write the report. HERMUX_HERMES names the Hermes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import again
import calls
import crowd
import idling
import killing
import listing
import report
import spawning
from home import Home, fresh_home, rehearsal
from row import Row

from orchestrator.hermes.install import find_hermes

NAMES = ("spawn", "kill", "again", "ls", "idle", "calls", "idle100", "linear", "busy20")
ON_A_FLEET = {"ls": listing.measure, "idle": idling.measure, "calls": calls.measure}
DOCS = Path(__file__).resolve().parents[2] / "docs" / "bench.md"


def main() -> int:
    """Return 1 when a promise was missed."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Promises of hermux, measured beside peers."
    )
    parser.add_argument(
        "only", nargs="*", metavar="ROW", help=f"one of {', '.join(NAMES)}; docs are left alone"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds; docs are left alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value there")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in NAMES]:
        parser.error(f"no row is called {unknown[0]!r}; there are {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    os.environ["HERMUX_HERMES"] = str(find_hermes(os.environ).path)
    about, rows = report.machine(), []
    for row in _rows(options.only or NAMES, quick=options.quick):
        print("\n".join(report.lines(row)), flush=True)
        rows.append(row)
    if options.json:
        report.write_json(options.json, rows, about)
    if not options.only and not options.quick:
        DOCS.write_text(report.markdown(rows, about))
    return 0 if all(row.kept for row in rows) else 1


def _rows(names: list[str] | tuple[str, ...], *, quick: bool) -> Iterator[Row]:
    if "spawn" in names:
        yield spawning.measure(quick=quick)
    if "kill" in names:
        yield killing.measure(quick=quick)
    if "again" in names:
        yield again.measure(quick=quick)
    shared = [name for name in NAMES if name in names and name in ON_A_FLEET]
    if shared:
        with ExitStack() as stack:
            home = _fleet(stack)
            for name in shared:
                yield ON_A_FLEET[name](home, quick=quick)
    yield from crowd.measure(list(names), quick=quick)


def _fleet(stack: ExitStack) -> Home:
    """Bring up the fleet of eight that some rows look at."""
    url = stack.enter_context(rehearsal())
    home = stack.enter_context(fresh_home())
    spawning.spawn(home, url)
    return home


if __name__ == "__main__":
    sys.exit(main())
