"""`scale`: the running fleet becomes exactly as large as wanted; twice does no harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.api.ready import Say
from orchestrator.errors import UsageError
from orchestrator.fleet.expand import scale as changes

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.api.order import Order


def scale(fleet: Fleet, wanted: int | Mapping[str, int], order: Order, *, wait: bool, say: Say) -> list[str]:
    """Start, make and stop workers until the fleet is as wanted; return the names of those that run then."""
    workers = fleet.picture().workers
    running = {name: str(each["role"]) for name, each in workers.items() if each.get("want") == "run"}
    stopped = {name: str(each["role"]) for name, each in workers.items() if name not in running}
    first = changes(wanted, roles=order.in_turn, existing=running)
    back = _back(wanted, [role for _, role in first.add], stopped)
    busy = {name for name, each in workers.items() if each.get("word") not in ("ready", "failed")}
    target = changes(wanted, roles=order.in_turn, existing=running | back, busy=busy)
    roles = [role for _, role in target.add]
    new: list[str] = []
    if roles:
        beside = len(running) + len(back) - len(target.remove)
        wish = replace(order, count=len(roles), roles=tuple(roles), beside=beside)
        made = fleet.spawn_order(wish, wait=False, say=say)
        new = [spec.name for spec in made.specs]
    asleep = [name for name, each in workers.items() if name in running and each.get("phase") == "held"]
    if back or asleep:
        fleet.start([*back, *asleep], wait=False)
    if target.remove:
        fleet.stop(target.remove, wait=wait, say=say)
        for name in target.remove:
            say(
                name, f"keeps its conversation, messages and {workers[name].get('cwd')} → hermux start {name}"
            )
    fleet.ensure_supervisor()
    left = [name for name in (*running, *back, *new) if name not in target.remove]
    if wait and left:
        fleet.wait_ready(left, say=say)
    return left


def parse_wanted(words: list[str]) -> int | dict[str, int]:
    """Read `N` or `R=N…`; raises UsageError naming the word."""
    if len(words) == 1 and "=" not in words[0]:
        return _number(words[0], words[0])
    found: dict[str, int] = {}
    for word in words:
        role, equals, number = word.partition("=")
        if not equals or not role or role in found:
            raise UsageError(f"{word!r} is not ROLE=N", hint="for example: scale 3, or scale coder=2 qa=1")
        found[role] = _number(number, word)
    return found


def _number(text: str, word: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"{word!r} is no number of workers", hint="for example: scale 3, or scale coder=2 qa=1"
        )
    return int(text)


def _back(wanted: int | Mapping[str, int], missing: list[str], stopped: Mapping[str, str]) -> dict[str, str]:
    """Return the stopped workers that come back before new ones are made."""
    if isinstance(wanted, int):
        return dict(list(stopped.items())[: len(missing)])
    back: dict[str, str] = {}
    for name, role in stopped.items():
        if role in missing:
            missing.remove(role)
            back[name] = role
    return back
