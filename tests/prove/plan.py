"""What a proof will do, fixed by its seed: which message, which text, and who is killed when. Pure."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from enum import StrEnum

HOOKS = ("pre_llm_call", "pre_api_request", "post_api_request", "post_llm_call", "on_session_end")
AFTER_ENTER = 0.4
"""Seconds after the recorded Enter within which a kill falls."""
IN_HOOK = 0.3
"""Seconds after Hermes went into a hook within which a kill falls; the hook stalls longer than that."""


class Target(StrEnum):
    """Who is killed."""

    HERMES = "hermes"
    SCRIPT = "launch script"
    SUPERVISOR = "supervisor"


class Side(StrEnum):
    """Whether Hermes stalls before or after hermux's own plugin had the hook; the name of a plugin too."""

    BEFORE = "astall"
    AFTER = "zstall"


@dataclass(frozen=True, slots=True)
class Kill:
    """One SIGKILL. `hook` is empty for a kill after Enter; `delay` is in seconds."""

    target: Target
    delay: float
    hook: str = ""
    side: Side = Side.AFTER

    @property
    def kind(self) -> str:
        """Return what it is counted as."""
        return f"{self.target} {f'in {self.hook}' if self.hook else 'after Enter'}"


@dataclass(frozen=True, slots=True)
class Step:
    """One message and the kills that meet it, in order. `hurried`: the next is sent without waiting."""

    number: int
    text: str
    kills: tuple[Kill, ...] = ()
    hurried: bool = False


def steps(seed: int, *, messages: int, workers: int, share: float = 0.7) -> list[list[Step]]:
    """Return each worker's steps; about `share` of the messages meet a kill."""
    dice = random.Random(seed)
    plans: list[list[Step]] = [[] for _ in range(workers)]
    for number in range(1, messages + 1):
        kills = _kills(dice, number) if dice.random() < share else ()
        plans[number % workers].append(Step(number, _text(dice, number), kills, dice.random() < 0.2))
    return plans


def _kills(dice: random.Random, number: int) -> tuple[Kill, ...]:
    target = dice.choices(list(Target), weights=(5, 2, 3))[0]
    if number % 2:
        first = Kill(
            target, dice.uniform(0, IN_HOOK), HOOKS[number // 2 % len(HOOKS)], dice.choice(list(Side))
        )
    else:
        first = Kill(target, dice.uniform(0, AFTER_ENTER))
    again = Kill(Target.HERMES, dice.uniform(0, AFTER_ENTER))
    return (first, again) if target is not Target.SUPERVISOR and dice.random() < 0.15 else (first,)


def _text(dice: random.Random, number: int) -> str:
    """Return a text that is pasted, one that goes by reference, or one that makes the model call a tool."""
    head = f"Note #{number:04d}# of a numbered series."
    match dice.randrange(4):
        case 0:
            return f"{head}\n\tA tab and several lines:\n{{}} ; ! # $(true)\n- 数字 {number}"
        case 1:
            tool = {"tools": [{"name": "terminal", "args": {"command": f"echo {number}"}}]}
            return f"{head} {json.dumps({'steps': [tool, {'text': 'noted', 'delay': 0.2}]})}"
        case 2:
            return f"{head} {json.dumps({'steps': [{'text': 'noted', 'delay': round(dice.uniform(0, 0.6), 2)}]})}"
        case _:
            return f"{head} Say that you have read it."


def last_text(number: int) -> str:
    """Return the message that ends a worker's series: the request that it makes holds all before it."""
    return f"Note #{number:04d}# ends the series."
