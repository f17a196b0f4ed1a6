"""`fleet.yaml`, read strictly: every fault with file, line, field and the nearest right word, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.api.declared import orders
from orchestrator.api.order import Isolation, Order
from orchestrator.errors import UsageError
from orchestrator.fleet.sequence import cycle, waits_for, waves
from orchestrator.fleet.spec import Restart, RestartPolicy
from orchestrator.fleet.worker import Phase, Want, Worker
from orchestrator.store.fleetfile import read_fleetfile
from orchestrator.store.fleetfile_schema import schema_text
from tests.unit.world import spec

ROOT = Path(__file__).parents[2]


def load(folder: Path, text: str, **env: str) -> dict[str, Order]:
    path = folder / "fleet.yaml"
    path.write_text(text)
    variables = {"HOME": str(folder), **env}
    return orders(read_fleetfile(path, variables), variables)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(UsageError) as refused:
        load(folder, text)
    return [line.removeprefix(f"{folder}/") for line in str(refused.value).splitlines()]


def test_what_a_file_comes_to(tmp_path: Path) -> None:
    (tmp_path / "vars").write_text("A=file\nB=file\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "first.md").write_text("Begin.\n")
    text = (
        "schema: 1\ndefaults:\n  env: {C: shared}\n  endpoint: rehearsal\n  restart: {max_restarts: 2}\n"
        "workers:\n  coder:\n    count: 2\n    after: [lead]\n    env_file: vars\n    env:\n      A: x-${WHO}$HOME\n"
        "    cwd: sub\n    worktree: false\n  lead: {role: qa, prompt_file: first.md, restart: never}\n  qa:\n"
    )
    made = load(tmp_path, text, WHO="me")
    assert list(made) == ["lead", "qa", "coder-1", "coder-2"]
    coder = made["coder-2"]
    assert coder.variables == {"A": "x-me$HOME", "B": "file", "C": "shared"}
    assert (coder.cwd, coder.isolation, coder.after) == (str(tmp_path / "sub"), Isolation.SHARED, ("lead",))
    assert coder.restart == RestartPolicy(max_restarts=2)
    assert made["lead"].prompt == "Begin.\n" and made["lead"].restart == RestartPolicy(Restart.TEMPORARY)
    assert made["qa"].roles == ("qa",) and made["qa"].beside == 1


def test_all_faults_at_once(tmp_path: Path) -> None:
    text = (
        "workers:\n"
        "  coder:\n"
        "    cuont: 2\n"  # 3
        "    cwd: nowhere\n"  # 4
        "    env: {A: 1}\n"  # 5
        "    key_env: NOT_SET_ANYWHERE\n"  # 6
        "  helper: {}\n"  # 7
        "  qa: {count: 0, after: [codr]}\n"  # 8
        "  research: {role: reserch}\n"  # 9
        "group: {}\n"  # 10
    )
    told = "\n".join(refusal(tmp_path, text))
    for words in (
        "fleet.yaml:3: workers.coder.cuont: unknown field; did you mean 'count'?",
        "fleet.yaml:4: workers.coder.cwd: ",
        "fleet.yaml:5: workers.coder.env.A: must be text, not 1; put it in quotes",
        "fleet.yaml:6: workers.coder.key_env: the variable NOT_SET_ANYWHERE is not set here",
        "fleet.yaml:7: workers.helper: no role is called 'helper'",
        "fleet.yaml:8: workers.qa.count: must be",
        "fleet.yaml:8: workers.qa.after[0]: no worker 'codr' in this file; did you mean 'coder'?",
        "fleet.yaml:9: workers.research.role: no role 'reserch'",
        "fleet.yaml:10: group: unknown field; did you mean 'groups'?",
    ):
        assert words in told, told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "fleet.yaml:1: empty; write for example"),
        ("- a\n", "not a list of fields"),
        ("schema: 2\nworkers: {x: {}}\n", "fleet.yaml:1: schema: 2 is of a newer hermux; this one reads 1"),
        ("workers:\n\tcoder: {}\n", "fleet.yaml:2: begins with a tab"),
        (
            "workers:\n  coder: {}\n  coder: {}\n",
            "fleet.yaml:3: workers.coder: is there twice (first on line 2)",
        ),
        ("workers:\n  coder: {count: 2}\n  coder-1: {role: qa}\n", "a worker coder-1 is declared twice"),
        ("workers: {coder: {count: -1}}\n", "workers.coder.count: must be"),
        (
            "workers: {coder: {after: [qa]}, qa: {after: [coder]}}\n",
            "each waits for the next: coder → qa → coder",
        ),
        ("workers: {coder: {after: [coder]}}\n", "coder → coder"),
        ("workers: {}\n", "workers: must"),
        ("schema: 1\n", "workers: missing"),
        ("workers: {Bad_Name: {role: qa}}\n", "'Bad_Name' is no worker name"),
        ("workers: {ls: {role: qa}}\n", "'ls' is a word of hermux itself"),
        (
            "workers:\n  coder:\n    env:\n      A: ${NOT_SET_X}\n",
            "fleet.yaml:4: workers.coder.env.A: the variable NOT_SET_X",
        ),
        ("workers: {coder: {prompt: a, prompt_file: b}}\n", "exclude each other"),
        ("workers: {coder: {}}\ngroups: {front: [qa]}\n", "groups.front[0]: no worker 'qa' in this file"),
        ("workers: {coder: {restart: {max_restart: 1}}}\n", "did you mean 'max_restarts'?"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, told: str) -> None:
    assert told in "\n".join(refusal(tmp_path, text))


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_fleetfile(tmp_path, {})


def test_the_schema_for_editors_is_up_to_date() -> None:
    assert (ROOT / "docs" / "fleet.schema.json").read_text() == schema_text(), "run scripts/gen-fleet-schema"


def test_who_waits_for_whom() -> None:
    from dataclasses import replace

    lead = Worker(spec("lead"), Want.RUN, 1, phase=Phase.STARTING, word="starting")
    coder = Worker(replace(spec("coder"), after=("lead",)), Want.RUN, 1)
    assert waits_for(coder, {"lead": lead}) == "starts after lead, which is starting"
    assert not waits_for(coder, {"lead": replace(lead, phase=Phase.UP)})
    assert not waits_for(coder, {"lead": replace(lead, want=Want.STOPPED)})
    assert not waits_for(coder, {"lead": replace(lead, phase=Phase.STOPPED, left="a person ended it")})
    assert not waits_for(coder, {})
    assert waits_for(coder, {"lead": replace(lead, phase=Phase.HELD)})
    assert not waits_for(replace(coder, attempt=1), {"lead": replace(lead, phase=Phase.HELD)})


def test_order_and_cycles() -> None:
    after = {"c": ["a", "b"], "b": ["a"], "a": [], "d": []}
    assert waves(after) == [["a", "d"], ["b"], ["c"]] and not cycle(after)
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]


def test_the_example_of_the_guide(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "fleet-file.md").read_text()
    made = load(tmp_path, guide.partition("```yaml\n")[2].partition("```")[0], USER_TEAM="red")
    assert list(made) == ["lead", "qa", "coder-1", "coder-2"]
    assert made["qa"].variables == {"TEAM": "red"} and made["qa"].max_turns == 40
