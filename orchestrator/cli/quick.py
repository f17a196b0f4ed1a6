"""`hermux ls` without typer, whose import and set-up are four fifths of such a command's time.

Only the plainest command lines are taken; whatever else there is goes the usual way, where errors and
`--help` are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

LISTS = ("ls", "ps", "status")
SWITCHES = {
    "--json": "json",
    "-q": "quiet",
    "--quiet": "quiet",
    "-v": "verbose",
    "--verbose": "verbose",
}


def quick(words: Sequence[str]) -> bool:
    """Run the command line if it is a plain `ls`; return whether it was. Raises what `listing.show` does."""
    if not words or words[0] not in LISTS:
        return False
    fleet, flags, rest = (
        os.environ.get("HERMUX_FLEET", ""),
        dict.fromkeys(SWITCHES.values(), False),
        list(words[1:]),
    )
    while rest:
        word = rest.pop(0)
        if word in SWITCHES:
            flags[SWITCHES[word]] = True
        elif word in ("-F", "--fleet") and rest and not rest[0].startswith("-"):
            fleet = rest.pop(0)
        else:
            return False
    from orchestrator.cli import listing

    listing.show(fleet, json=flags["json"], quiet=flags["quiet"], verbose=flags["verbose"])
    return True
