"""Names and roles of new workers: tables and invariants."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BadName, UsageError
from orchestrator.fleet.expand import MOST, Change, expand, scale
from orchestrator.fleet.spec import NAME_RULE, ROLE_ORDER

roles = st.lists(st.sampled_from([*ROLE_ORDER, "a", "a-1", "coder-1", "z" * 20]), min_size=1, max_size=8)
names = st.builds("{}-{}".format, st.sampled_from(ROLE_ORDER), st.integers(1, 9))
taken = st.sets(names, max_size=20)


@pytest.mark.parametrize(
    ("count", "sequence", "used", "made"),
    [
        (3, ROLE_ORDER, (), ["coder-1", "research-1", "qa-1"]),
        (7, ROLE_ORDER, (), [f"{role}-1" for role in ROLE_ORDER] + ["coder-2"]),
        (2, ["coder"], ("coder-1", "coder-3"), ["coder-2", "coder-4"]),
        (3, ["qa", "coder"], (), ["qa-1", "coder-1", "qa-2"]),
        (2, ["coder"], ("mine",), ["coder-1", "coder-2"]),
    ],
)
def test_roles_in_turn_and_lowest_free_numbers(
    count: int, sequence: list[str], used: tuple[str, ...], made: list[str]
) -> None:
    found = expand(count, roles=sequence, taken=used)
    assert [name for name, _ in found] == made
    assert all(name.startswith(f"{role}-") for name, role in found)


@settings(max_examples=60)
@given(st.integers(1, MOST), roles, taken)
def test_names_are_new_distinct_and_legal(count: int, sequence: list[str], used: set[str]) -> None:
    made = [name for name, _ in expand(count, roles=sequence, taken=used)]
    assert len(set(made)) == count
    assert not used & set(made)
    assert all(NAME_RULE.fullmatch(name) for name in made)


@pytest.mark.parametrize("count", [0, -1, 65, 10_000, 10**20])
def test_counts_that_are_refused(count: int) -> None:
    with pytest.raises(UsageError) as refused:
        expand(count, roles=ROLE_ORDER, taken=())
    assert str(count) in str(refused.value) and refused.value.hint


def test_a_name_of_ones_own() -> None:
    assert expand(1, roles=["qa"], taken=(), name="front") == [("front", "qa")]
    assert expand(2, roles=["qa", "coder"], taken=("front-1",), name="front") == [
        ("front-2", "qa"),
        ("front-3", "coder"),
    ]


def test_a_taken_name_says_what_to_do() -> None:
    with pytest.raises(UsageError) as refused:
        expand(1, roles=["qa"], taken=("front",), name="front")
    assert "front" in str(refused.value)
    assert "hermux start front" in refused.value.hint and "--replace" in refused.value.hint


@pytest.mark.parametrize("name", ["", "A", "1a", "a_b", "a.b", "a:b", "-a", "a" * 25, "ls", "ä", "a\n"])
def test_bad_names(name: str) -> None:
    with pytest.raises(BadName):
        expand(1, roles=["qa"], taken=(), name=name, reserved=frozenset({"ls"}))


def test_a_long_name_leaves_no_room_for_numbers() -> None:
    with pytest.raises(BadName):
        expand(2, roles=["qa"], taken=(), name="a" * 24)


def test_no_role() -> None:
    with pytest.raises(UsageError):
        expand(1, roles=[], taken=())


THREE = {"coder-1": "coder", "research-1": "research", "qa-1": "qa"}


@pytest.mark.parametrize(
    ("wanted", "existing", "change"),
    [
        (3, {}, Change(add=(("coder-1", "coder"), ("research-1", "research"), ("qa-1", "qa")))),
        (3, THREE, Change()),
        (5, THREE, Change(add=(("creative-1", "creative"), ("orchestrator-1", "orchestrator")))),
        (3, {"qa-1": "qa"}, Change(add=(("coder-1", "coder"), ("research-1", "research")))),
        (1, THREE, Change(remove=("qa-1", "research-1"))),
        (0, THREE, Change(remove=("qa-1", "research-1", "coder-1"))),
        (2, {"coder-1": "coder", "coder-10": "coder", "coder-9": "coder"}, Change(remove=("coder-10",))),
        ({"coder": 2}, THREE, Change(add=(("coder-2", "coder"),))),
        ({"coder": 0, "qa": 2}, THREE, Change(add=(("qa-2", "qa"),), remove=("coder-1",))),
        ({"coder": 1}, {**THREE, "mine": "coder"}, Change(remove=("coder-1",))),
    ],
)
def test_scale(wanted: int | dict[str, int], existing: dict[str, str], change: Change) -> None:
    assert scale(wanted, roles=ROLE_ORDER, existing=existing) == change


def test_idle_ones_go_first() -> None:
    change = scale(1, roles=ROLE_ORDER, existing=THREE, busy={"qa-1"})
    assert change == Change(remove=("research-1", "coder-1"))


@settings(max_examples=60)
@given(st.integers(0, MOST), st.dictionaries(names, st.sampled_from(ROLE_ORDER), max_size=20))
def test_scale_twice_does_nothing(wanted: int, existing: dict[str, str]) -> None:
    first = scale(wanted, roles=ROLE_ORDER, existing=existing)
    after = {name: role for name, role in existing.items() if name not in first.remove} | dict(first.add)
    assert len(after) == wanted
    assert scale(wanted, roles=ROLE_ORDER, existing=after) == Change()


@pytest.mark.parametrize("wanted", [-1, 65, {"coder": -1}, {"coder": 40, "qa": 30}])
def test_sizes_that_are_refused(wanted: int | dict[str, int]) -> None:
    with pytest.raises(UsageError):
        scale(wanted, roles=ROLE_ORDER, existing={})
