"""`python -m orchestrator.supervise --fleet NAME`: what commands start in the background."""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys

from orchestrator.store.lock import FileLock
from orchestrator.store.paths import fleet_paths
from orchestrator.supervise.loop import LINGER, Supervisor
from orchestrator.supervise.sdnotify import Manager
from orchestrator.supervise.takeover import take_over


def main(argv: list[str] | None = None) -> int:
    """Supervise one fleet; 1 when another supervisor does already, and does not hand over."""
    parser = argparse.ArgumentParser(prog="orchestrator.supervise")
    parser.add_argument("--fleet", default="default")
    parser.add_argument("--linger", type=float, default=LINGER, help="seconds to stay with nothing to run")
    parser.add_argument("--replace", action="store_true", help="have the supervisor that runs hand over")
    options = parser.parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    paths = fleet_paths(options.fleet, os.environ).make()
    lock = FileLock(paths.supervisor_lock)
    if not (take_over(lock) if options.replace else lock.try_acquire()):
        holder = lock.holder() or {}
        print(f"fleet {options.fleet} is supervised already, by pid {holder.get('pid')}", file=sys.stderr)  # noqa: T201
        return 1
    manager = Manager()
    linger = math.inf if manager.there else options.linger  # a service that ended would only be started again
    try:
        Supervisor(paths, lock, linger=linger, manager=manager).run()
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
