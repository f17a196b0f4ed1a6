"""`python -m tests.prove [NAME…]`: what `scripts/prove` runs."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.prove import faults as fault_proof
from tests.prove.messages import prove
from tests.prove.page import PAGE, page

FULL = 500
MORE = 20
"""So many times as many histories of the brain as the tests run."""
ROOT = Path(__file__).parents[2]


def main(argv: list[str] | None = None) -> int:
    """Run the named proofs, all of them if none is named; 1 when one fails."""
    given = _parsed(argv)
    signal.signal(signal.SIGTERM, _end)
    results = [PROOFS[name](given) for name in given.names or PROOFS]
    return 0 if all(results) else 1


def _end(*_: object) -> None:
    """Take the fleet down on the way out; `timeout` sends its signal twice."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _parsed(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/prove", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of: {', '.join(PROOFS)}")
    parser.add_argument("--messages", type=int, default=FULL)
    parser.add_argument("--faults", type=int, default=FULL)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument(
        "--page",
        action="store_true",
        help=f"write the page after a run of under {FULL} messages or faults too",
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the fleet's files there at the end")
    given = parser.parse_args(argv)
    if unknown := [name for name in given.names if name not in PROOFS]:
        parser.error(f"no proof {unknown[0]!r}; there are: {', '.join(PROOFS)}")
    if not 1 <= given.workers <= 64 or not given.workers <= given.messages <= 9000:
        parser.error("--workers is 1 to 64, --messages at least as many and at most 9000")
    if not 1 <= given.faults <= 2000:
        parser.error("--faults is 1 to 2000")
    return given


def brain(_given: argparse.Namespace) -> bool:
    """Many more random histories in the modelled world of the unit tests."""
    print(f"prove: brain, {MORE} times the histories of the tests", flush=True)
    command = [sys.executable, "-m", "pytest", "--timeout", "3600", "tests/unit/test_decide.py"]
    env = os.environ | {"HERMUX_TEST_MORE": str(MORE)}
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0


def messages(given: argparse.Namespace) -> bool:
    """No message lost or doubled while real workers and the supervisor are killed."""
    hermes = _hermes()
    if hermes is None:
        return False
    print(
        f"prove: {given.messages} messages to {given.workers} workers, seed {given.seed}",
        flush=True,
    )
    found = prove(hermes, messages=given.messages, workers=given.workers, seed=given.seed, keep=given.keep)
    width = max(len(name) for name, _ in found.rows())
    print("\n".join(f"{name:<{width}}  {value}" for name, value in found.rows()))
    if given.page or given.messages >= FULL:
        PAGE.write_text(page(found, hermes))
        print(f"written to docs/{PAGE.name}")
    if not found.good:
        print(found.fleet, file=sys.stderr)
        print("prove: FAILED, see above", file=sys.stderr)
    return found.good


def faults(given: argparse.Namespace) -> bool:
    """Every worker alive in its own conversation, nothing lost, doubled, left or touched by random faults."""
    hermes = _hermes()
    if hermes is None:
        return False
    print(f"prove: {given.faults} faults on {given.workers} workers, seed {given.seed}", flush=True)
    results, seconds = fault_proof.prove(count=given.faults, workers=given.workers, seed=given.seed)
    text = fault_proof.page(results, hermes, workers=given.workers, seed=given.seed, seconds=seconds)
    if given.page or given.faults >= FULL:
        fault_proof.PAGE.write_text(text)
        print(f"written to docs/{fault_proof.PAGE.name}")
    else:
        print(text)
    return all(each.verdict != "failed" for each in results)


def _hermes() -> Path | None:
    hermes = Path(os.environ.get("HERMUX_HERMES", "/nowhere"))
    if hermes.is_file():
        return hermes
    print("HERMUX_HERMES names no Hermes: use scripts/prove", file=sys.stderr)
    return None


PROOFS: dict[str, Callable[[argparse.Namespace], bool]] = {
    "brain": brain,
    "messages": messages,
    "faults": faults,
}

if __name__ == "__main__":
    sys.exit(main())
