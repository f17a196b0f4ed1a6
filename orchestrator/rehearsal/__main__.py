"""`python -m orchestrator.rehearsal`: the rehearsal model in the foreground, until SIGTERM."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.errors import NotReady
from orchestrator.rehearsal.server import CONTEXT, RehearsalServer

END = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def _say(line: str) -> None:
    with suppress(OSError):
        sys.stdout.buffer.write(f"{line}\n".encode())
        sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code: 0, or 1 if the port is taken or the log cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.rehearsal", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--context", type=int, default=CONTEXT, metavar="TOKENS")
    parser.add_argument("--log", type=Path, metavar="FILE", help="every chat request as a JSON line")
    given = parser.parse_args(argv)
    signal.pthread_sigmask(signal.SIG_BLOCK, END)
    try:
        server = RehearsalServer(given.port, context=given.context, log=given.log, say=_say)
    except NotReady as error:
        sys.stderr.write(f"hermux: {error}\n" + (f"  → {error.hint}\n" if error.hint else ""))
        return 1
    _say(f"rehearsal model on {server.url}")
    with server:
        signal.sigwait(END)
    return 0


if __name__ == "__main__":
    sys.exit(main())
