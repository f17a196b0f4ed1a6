"""Names and roles of new workers, made in one place: `spawn N` and `scale N`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as integers
from itertools import cycle, islice

from orchestrator.errors import UsageError
from orchestrator.fleet.spec import check_name

MOST = 64
"""Workers that one command may add, and that a fleet may have. Each takes 100 to 180 MB."""


@dataclass(frozen=True, slots=True)
class Change:
    """What `scale` has to do: workers to add as (name, role), and names to remove."""

    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()


def expand(
    count: int,
    *,
    roles: Sequence[str],
    taken: Collection[str],
    name: str | None = None,
    reserved: frozenset[str] = frozenset(),
) -> list[tuple[str, str]]:
    """Return `count` new workers as (name, role), roles in turn.

    Names are `<role>-<n>` with the lowest free numbers; with `name`, one worker is called exactly
    that and several `<name>-<n>`. Raises UsageError when count is not 1 to 64 or the name is taken,
    BadName when it breaks the rule.
    """
    check_count(count)
    if not roles:
        raise UsageError("no role was named", hint="for example: --role coder,qa")
    if name is None:
        return _numbered(islice(cycle(roles), count), taken)
    check_name(name, reserved=reserved)
    chosen = list(islice(cycle(roles), count))
    if count > 1:
        names = _free(name, taken)
        return [(check_name(next(names), reserved=reserved), role) for role in chosen]
    if name in taken:
        raise UsageError(
            f"a worker {name!r} exists already",
            hint=f"`hermux start {name}` goes on with it; `spawn --name {name} --replace` makes a new one",
        )
    return [(name, chosen[0])]


def check_count(count: int) -> None:
    """Raise UsageError when `count` workers cannot be asked for at once."""
    if count < 1:
        raise UsageError(f"{count} workers cannot be started", hint="ask for at least 1")
    if count > MOST:
        raise UsageError(
            f"{count} workers are too many: {MOST} at most",
            hint=f"each takes 100 to 180 MB; ask for {MOST} or fewer",
        )


def scale(
    wanted: int | Mapping[str, int],
    *,
    roles: Sequence[str],
    existing: Mapping[str, str],
    busy: Collection[str] = (),
) -> Change:
    """Return what makes the fleet `wanted` in size; `existing` maps names to roles.

    A number is the whole fleet's size: missing roles of the sequence are filled in turn. A mapping
    is absolute per role and leaves other roles alone. Those that are not `busy` go first, of them the
    highest numbers.
    Raises UsageError when the fleet would be larger than 64 or a number is negative.
    """
    have = Counter(existing.values())
    if isinstance(wanted, int):
        _check_size(wanted)
        if wanted <= len(existing):
            return Change(remove=tuple(_last(existing, len(existing) - wanted, busy)))
        extra = _missing(wanted - len(existing), roles, have)
        return Change(add=tuple(_numbered(extra, existing)))
    add: list[str] = []
    remove: list[str] = []
    for role, number in wanted.items():
        _check_size(number)
        add += [role] * max(0, number - have[role])
        of_role = {name: r for name, r in existing.items() if r == role}
        remove += _last(of_role, max(0, have[role] - number), busy)
    _check_size(len(existing) + len(add) - len(remove))
    return Change(add=tuple(_numbered(add, existing)), remove=tuple(remove))


def _check_size(size: int) -> None:
    if size < 0:
        raise UsageError(f"a fleet of {size} workers cannot be made", hint="use 0 or more")
    if size > MOST:
        raise UsageError(f"a fleet of {size} workers is too large: {MOST} at most", hint=f"use 0 to {MOST}")


def _missing(number: int, roles: Sequence[str], have: Counter[str]) -> list[str]:
    """Return `number` roles: the sequence in turn, passing over what is there already."""
    if not roles:
        raise UsageError("no role was named", hint="for example: scale coder=3")
    left = Counter(have)
    chosen: list[str] = []
    for role in cycle(roles):
        if len(chosen) == number:
            break
        if left[role] > 0:
            left[role] -= 1
        else:
            chosen.append(role)
    return chosen


def _last(existing: Mapping[str, str], number: int, busy: Collection[str]) -> list[str]:
    """Return the `number` names that go first: idle, then the highest number, then the newest."""
    order = {name: place for place, name in enumerate(existing)}
    ranked = sorted(existing, key=lambda name: (name not in busy, _number(name), order[name]), reverse=True)
    return ranked[:number]


def _number(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0


def _numbered(roles: Iterable[str], taken: Collection[str]) -> list[tuple[str, str]]:
    used = set(taken)
    made: list[tuple[str, str]] = []
    for role in roles:
        name = check_name(next(_free(role, used)))
        used.add(name)
        made.append((name, role))
    return made


def _free(stem: str, taken: Collection[str]) -> Iterator[str]:
    return (name for name in (f"{stem}-{n}" for n in integers(1)) if name not in taken)
