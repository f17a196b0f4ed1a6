"""The short version of `scripts/prove messages`: every target and every kind of moment once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prove.messages import prove
from tests.prove.plan import Kill, Side, Step, Target

KILLS = (
    Kill(Target.HERMES, 0.05),
    Kill(Target.SCRIPT, 0.2),
    Kill(Target.SUPERVISOR, 0.0),
    Kill(Target.HERMES, 0.1, "pre_api_request", Side.BEFORE),
)
"""Each costs a boot of Hermes, so there are no more of them here."""


def plan(_seed: int, messages: int, workers: int) -> list[list[Step]]:
    """Each worker's first messages meet the kills; the rest goes through undisturbed behind them."""
    plans: list[list[Step]] = [[] for _ in range(workers)]
    for at in range(messages):
        kills = KILLS[at : at + 1]
        text = f"Note #{at + 1:04d}# of a numbered series.\n\tSay that you have read it."
        plans[at % workers].append(Step(at + 1, text, kills, hurried=not kills))
    return plans


@pytest.mark.timeout(600)
def test_no_message_is_lost_or_doubled(hermes: Path) -> None:
    found = prove(hermes, messages=12, workers=2, seed=0, planner=plan)
    table = "\n".join(f"{name}: {value}" for name, value in found.rows())
    assert found.good, f"{table}\n{found.fleet}"
    assert sum(found.kills.values()) + found.missed == len(KILLS)
    assert sum(found.kills.values()) >= len(KILLS) - 1, table
