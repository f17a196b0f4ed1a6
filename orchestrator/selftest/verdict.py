"""Where each number stands at the model: judged from the requests that were logged. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from orchestrator.rehearsal.script import text_of

NUMBER = re.compile(r"#(\d{4})#")
"""How a message carries its number: found again in the user messages at the model."""


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


class Judge:
    """Takes requests as they come, oldest first, and judges all of them so far."""

    def __init__(self) -> None:
        self._newest: dict[str, list[int]] = {}
        self._twice: set[int] = set()
        self._met: dict[int, set[str]] = {}
        """Number → the workers in whose requests it stood."""

    def take(self, messages: Sequence[Mapping[str, Any]], sent: Mapping[int, str]) -> None:
        """Take the messages of one request; `sent` gives each number's worker."""
        held = numbers(messages)
        if not held:
            return
        owner = sent.get(held[0], "")
        self._newest[owner] = held
        self._twice |= {number for number in held if held.count(number) > 1}
        for number in held:
            self._met.setdefault(number, set()).add(owner)

    def verdict(self, sent: Mapping[int, str], asked: Mapping[int, int]) -> Verdict:
        """Judge; `asked` says in how many turns of Hermes each number was the new user message at the model."""
        lost = {number for number, worker in sent.items() if number not in self._newest.get(worker, ())}
        doubled = self._twice | {number for number, turns in asked.items() if turns > 1}
        strayed = {number for number, owners in self._met.items() if owners != {sent.get(number, "")}}
        behind = {b for held in self._newest.values() for a, b in pairwise(held) if b < a}
        return Verdict(*(tuple(sorted(each)) for each in (lost, doubled, strayed, behind)))


def numbers(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the numbers in the user messages of one request, in order, one entry for each time."""
    users = (text_of(dict(message)) for message in messages if message.get("role") == "user")
    return [int(found) for text in users for found in NUMBER.findall(text)]


def judge(
    requests: Iterable[Sequence[Mapping[str, Any]]], sent: Mapping[int, str], *, asked: Mapping[int, int]
) -> Verdict:
    """Judge requests (their messages, oldest first); see `Judge`."""
    bench = Judge()
    for messages in requests:
        bench.take(messages, sent)
    return bench.verdict(sent, asked)


def text(dice: random.Random, number: int) -> str:
    """Return a numbered text that is pasted, one that goes by reference, or one that makes the model wait."""
    head = f"Note #{number:04d}# of a numbered series."
    match dice.randrange(3):
        case 0:
            return f"{head}\n\tA tab and several lines:\n{{}} ; ! # $(true)\n- 数字 {number}"
        case 1:
            return f'{head} {{"steps": [{{"text": "noted", "delay": {dice.uniform(0, 0.6):.2f}}}]}}'
        case _:
            return f"{head} Say that you have read it."
