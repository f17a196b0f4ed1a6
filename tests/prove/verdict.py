"""Where each number stands at the model: judged from the requests that were logged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from orchestrator.rehearsal.script import text_of
from tests.prove.plan import NUMBER


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers with a fault of each kind; all empty = every message is in exactly one user message."""

    lost: tuple[int, ...]
    """Not in the newest request of its worker's conversation."""
    doubled: tuple[int, ...]
    """More than once in some request, or begun as a turn again after the model had been asked with it."""
    strayed: tuple[int, ...]
    """In a request of another worker."""
    misordered: tuple[int, ...]
    """Behind a message that was sent after it."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.strayed or self.misordered)


def numbers(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers in the user messages of one request, in order, one entry for each time."""
    users = (text_of(dict(message)) for message in messages if message.get("role") == "user")
    return [int(found) for text in users for found in NUMBER.findall(text)]


def judge(
    requests: Iterable[Sequence[Mapping[str, Any]]], sent: Mapping[int, str], *, asked: Mapping[int, int]
) -> Verdict:
    """Judge requests (their messages, oldest first); `sent` gives each number's worker.

    `asked` says in how many turns of Hermes each number was the new user message at the model.
    """
    newest: dict[str, list[int]] = {}
    doubled, strayed = {number for number, turns in asked.items() if turns > 1}, set()
    for messages in requests:
        held = numbers(messages)
        if not held:
            continue
        owner = sent.get(held[0], "")
        newest[owner] = held
        doubled |= {number for number in held if held.count(number) > 1}
        strayed |= {number for number in held if sent.get(number, "") != owner}
    lost = {number for number, worker in sent.items() if number not in newest.get(worker, ())}
    behind = {b for held in newest.values() for a, b in pairwise(held) if b < a}
    return Verdict(*(tuple(sorted(each)) for each in (lost, doubled, strayed, behind)))
