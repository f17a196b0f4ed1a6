"""`python -m tests.prove [NAME…]`: what `scripts/prove` runs."""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

from tests.prove.messages import prove
from tests.prove.page import PAGE, page

NAMES = ("messages",)
FULL = 500


def main(argv: list[str] | None = None) -> int:
    """Run the named proofs, all of them if none is named; 1 when one fails."""
    parser = argparse.ArgumentParser(prog="scripts/prove", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help=", ".join(NAMES))
    parser.add_argument("--messages", type=int, default=FULL)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument(
        "--page", action="store_true", help=f"write {PAGE.name} after a run of under {FULL} messages too"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the fleet's files there at the end")
    given = parser.parse_args(argv)
    hermes = Path(os.environ.get("HERMUX_HERMES", "/nowhere"))
    if not hermes.is_file():
        parser.error("HERMUX_HERMES names no Hermes: use scripts/prove")
    if not 1 <= given.workers <= 64 or not given.workers <= given.messages <= 9000:
        parser.error("--workers is 1 to 64, --messages at least as many and at most 9000")
    print(f"prove: {given.messages} messages to {given.workers} workers, seed {given.seed}", flush=True)
    found = prove(hermes, messages=given.messages, workers=given.workers, seed=given.seed, keep=given.keep)
    width = max(len(name) for name, _ in found.rows())
    print("\n".join(f"{name:<{width}}  {value}" for name, value in found.rows()))
    if given.page or given.messages >= FULL:
        PAGE.write_text(page(found, hermes))
        print(f"written to docs/{PAGE.name}")
    if not found.good:
        print(found.fleet, file=sys.stderr)
        print("prove: FAILED, see above", file=sys.stderr)
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
