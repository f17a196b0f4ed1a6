"""Which workers a command means: names, globs (`'coder-*'`) and groups (`@front`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.errors import UnknownWorker


def select(patterns: Sequence[str], names: Collection[str], *, fleet: str) -> list[str]:
    """Return the names meant, each once, in the order of the patterns; raises UnknownWorker."""
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(_matching(pattern, names, fleet)))
    return list(found)


def select_one(pattern: str, names: Collection[str], *, fleet: str) -> str:
    """Return the one worker meant; raises UnknownWorker for none, and for several."""
    found = select([pattern], names, fleet=fleet)
    if len(found) > 1:
        raise UnknownWorker(f"{pattern!r} means {len(found)} workers, and this takes one: {', '.join(found)}")
    return found[0]


def _matching(pattern: str, names: Collection[str], fleet: str) -> list[str]:
    if pattern in names:
        return [pattern]
    if any(mark in pattern for mark in "*?["):
        import fnmatch

        matching = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if matching:
            return matching
    raise UnknownWorker(_unknown(pattern, fleet), hint=_nearest(pattern, names, fleet))


def _unknown(pattern: str, fleet: str) -> str:
    kind = "group" if pattern.startswith("@") else "worker"
    return f"no {kind} {pattern!r} in fleet {fleet}"


def _nearest(pattern: str, names: Collection[str], fleet: str) -> str:
    option = "" if fleet == "default" else f" -F {fleet}"
    if not names:
        return f"the fleet is empty: hermux spawn{option}"
    import difflib

    close = difflib.get_close_matches(pattern, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are: {', '.join(names)}"
