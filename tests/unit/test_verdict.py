"""The judge of `scripts/prove`: each fault is seen, and a good history is not blamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.selftest.suite import FAULTS
from orchestrator.selftest.verdict import NUMBER, Verdict, judge
from tests.prove.plan import Target, steps

SENT = {1: "w-1", 2: "w-1", 3: "w-2"}
ASKED = {1: 1, 2: 1, 3: 1}


def user(*numbers: int) -> dict[str, Any]:
    return {"role": "user", "content": "\n\n".join(f"Note #{number:04d}#" for number in numbers)}


def request(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "#0009#"}, *messages, {"role": "assistant", "content": "#0001#"}]


GOOD = [request(user(1)), request(user(1), user(2)), request(user(3))]


def test_good() -> None:
    assert judge(GOOD, SENT, asked=ASKED) == Verdict((), (), (), ())
    merged = [request(user(1, 2)), request(user(3))]
    assert judge(merged, SENT, asked=ASKED).good


def test_lost_from_the_newest_request() -> None:
    assert judge([*GOOD, request(user(2))], SENT, asked=ASKED).lost == (1,)
    assert judge([], SENT, asked={}).lost == (1, 2, 3)


def test_doubled_in_a_request_or_by_turns() -> None:
    assert judge([*GOOD, request(user(1), user(1), user(2))], SENT, asked=ASKED).doubled == (1,)
    assert judge(GOOD, SENT, asked={**ASKED, 2: 2}).doubled == (2,)


def test_strayed_and_misordered() -> None:
    assert judge([*GOOD, request(user(1), user(2), user(3))], SENT, asked=ASKED).strayed == (3,)
    assert judge([request(user(2), user(1)), request(user(3))], SENT, asked=ASKED).misordered == (1,)


def test_the_seed_fixes_the_plan() -> None:
    plans = steps(7, messages=200, workers=8)
    assert plans == steps(7, messages=200, workers=8) != steps(8, messages=200, workers=8)
    flat = [step for plan in plans for step in plan]
    assert sorted(step.number for step in flat) == list(range(1, 201))
    assert all(NUMBER.findall(step.text) == [f"{step.number:04d}"] for step in flat)
    kinds = {kill.kind for step in flat for kill in step.kills}
    assert len(kinds) == len(Target) * 6, kinds


def test_the_page_names_every_fault() -> None:
    page = (Path(__file__).parents[2] / "docs" / "selftest.md").read_text()
    rows = [f"| `{fault.name}` | {fault.does} |" for fault in FAULTS]
    assert [row for row in rows if row not in page] == []
    assert page.count("\n| `") == len(rows)
