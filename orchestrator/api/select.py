"""Which workers a command means: names, globs (`'coder-*'`) and groups (`@front`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from orchestrator.errors import UnknownWorker

Groups = Mapping[str, Sequence[str]]
"""Names and globs of workers, by the group's name without its @."""


def select(
    patterns: Sequence[str], names: Collection[str], *, fleet: str, groups: Groups | None = None
) -> list[str]:
    """Return the names meant, each once, in the order of the patterns; raises UnknownWorker."""
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern.startswith("@") and pattern not in names:
            matching = _members(pattern, names, fleet, groups or {})
        else:
            matching = _matching(pattern, names, fleet)
        found.update(dict.fromkeys(matching))
    return list(found)


def select_one(pattern: str, names: Collection[str], *, fleet: str, groups: Groups | None = None) -> str:
    """Return the one worker meant; raises UnknownWorker for none, and for several."""
    found = select([pattern], names, fleet=fleet, groups=groups)
    if len(found) > 1:
        raise UnknownWorker(f"{pattern!r} means {len(found)} workers, and this takes one: {', '.join(found)}")
    return found[0]


def _members(pattern: str, names: Collection[str], fleet: str, groups: Groups) -> list[str]:
    """Return the workers of a group that exist; raises UnknownWorker for no such group, or an empty one."""
    import fnmatch

    group = pattern.removeprefix("@")
    if group not in groups:
        raise UnknownWorker(f"no group {pattern!r} in fleet {fleet}", hint=_nearest_group(group, groups))
    members = [name for each in groups[group] for name in names if fnmatch.fnmatchcase(name, each)]
    if not members:
        raise UnknownWorker(
            f"no worker of the group {pattern} is there", hint=f"it is: {', '.join(groups[group])}"
        )
    return members


def _nearest_group(group: str, groups: Groups) -> str:
    import difflib

    if not groups:
        return "groups are declared in a fleet.yaml: hermux up"
    close = difflib.get_close_matches(group, groups, n=1)
    return f"did you mean @{close[0]}?" if close else f"there are: {', '.join(f'@{each}' for each in groups)}"


def _matching(pattern: str, names: Collection[str], fleet: str) -> list[str]:
    if pattern in names:
        return [pattern]
    if any(mark in pattern for mark in "*?["):
        import fnmatch

        matching = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        if matching:
            return matching
    raise UnknownWorker(f"no worker {pattern!r} in fleet {fleet}", hint=_nearest(pattern, names, fleet))


def _nearest(pattern: str, names: Collection[str], fleet: str) -> str:
    option = "" if fleet == "default" else f" -F {fleet}"
    if not names:
        return f"the fleet is empty: hermux spawn{option}"
    import difflib

    close = difflib.get_close_matches(pattern, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are: {', '.join(names)}"
