"""Making workers: all of them or none, names never given twice, the key in one file only."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.api.order import Order
from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.resolve import Asked
from orchestrator.store import inbox
from orchestrator.store.desired import load_desired
from tests.unit.stage import Stage

HERMES = "#!/bin/sh\necho 'Hermes Agent v0.19.0 (2026.7.20)'\n"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage whose PATH has tmux and a program that calls itself Hermes; the rehearsal model is asked for."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "hermes").write_text(HERMES)
    (programs / "hermes").chmod(0o755)
    with Stage(tmp_path) as stage:
        stage.env |= {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "HERMUX_ENDPOINT": "rehearsal"}
        stage.env |= {"HERMES_HOME": str(tmp_path / "hermes")}
        yield stage


def order(stage: Stage, count: int = 1, **fields: object) -> Order:
    return Order(count=count, cwd=str(stage.paths.root), **fields)  # type: ignore[arg-type]


def on_disk(stage: Stage) -> tuple[list[str], list[str], list[str]]:
    """Return the names in desired.json, in workers/ and in Hermes' profiles/."""
    profiles = Path(stage.env["HERMES_HOME"]) / "profiles"
    return (
        sorted(load_desired(stage.paths).workers),
        sorted(path.name for path in stage.paths.workers.iterdir()),
        sorted(path.name for path in profiles.iterdir()) if profiles.is_dir() else [],
    )


def test_roles_in_turn_numbered_names_and_a_first_message(stage: Stage) -> None:
    made = stage.fleet.spawn_order(order(stage, 3, prompt="begin\r\n"), wait=False)
    assert [each.name for each in made.specs] == ["coder-1", "research-1", "qa-1"]
    more = stage.fleet.spawn_order(order(stage, 2), wait=False)
    assert [each.name for each in more.specs] == ["coder-2", "research-2"]
    (message,) = inbox.list_new(stage.paths.worker("qa-1"))
    assert (message.text, message.changed) == ("begin", ("line ends became LF", "outer blanks removed"))
    port = json.loads(stage.paths.rehearsal.read_text())["port"]
    assert {each.endpoint.base_url for each in (*made.specs, *more.specs)} == {f"http://127.0.0.1:{port}/v1"}


def test_an_error_midway_leaves_nothing_half_made(stage: Stage) -> None:
    foreign = Path(stage.env["HERMES_HOME"]) / "profiles" / "hx-default-qa-1"
    foreign.mkdir(parents=True)
    (foreign / "config.yaml").write_text("mine")
    with pytest.raises(UsageError, match="hx-default-qa-1"):
        stage.fleet.spawn_order(order(stage, 3), wait=False)
    assert on_disk(stage) == ([], [], ["hx-default-qa-1"])
    assert (foreign / "config.yaml").read_text() == "mine"


def test_nothing_is_made_without_hermes(stage: Stage) -> None:
    stage.env["PATH"] = "/usr/bin:/bin"
    with pytest.raises(NotReady, match="Hermes"):
        stage.fleet.spawn_order(order(stage), wait=False)
    assert on_disk(stage) == ([], [], [])


def test_what_was_left_under_a_new_name_is_put_aside(stage: Stage) -> None:
    left = stage.paths.worker("coder-1").make()
    (left.dir / "env").write_text("export OPENAI_API_KEY=sk-secret")
    (left.turns / "t.json").write_text("{}")
    stage.fleet.spawn_order(order(stage), wait=False)
    assert not (left.turns / "t.json").exists()
    assert [path.name for path in stage.paths.archive.rglob("t.json")] == ["t.json"]
    assert not list(stage.paths.archive.rglob("env"))


def test_names_are_given_once_however_many_ask(stage: Stage) -> None:
    names: list[str] = []

    def ask() -> None:
        names.extend(each.name for each in stage.fleet.spawn_order(order(stage, 3), wait=False).specs)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == len(names) == 12
    assert on_disk(stage)[0] == sorted(names)


def test_a_taken_name_tells_both_ways_on(stage: Stage) -> None:
    stage.fleet.spawn_order(order(stage, name="anna"), wait=False)
    with pytest.raises(UsageError) as caught:
        stage.fleet.spawn_order(order(stage, name="anna"), wait=False)
    assert "start anna" in caught.value.hint and "--replace" in caught.value.hint


def test_variables_go_into_a_private_file(stage: Stage) -> None:
    stage.fleet.spawn_order(order(stage, variables={"CANARY": "it's sk-canary"}), wait=False)
    worker = stage.paths.worker("coder-1")
    assert worker.env.stat().st_mode & 0o777 == 0o600
    for root in (stage.paths.root, Path(stage.env["HERMES_HOME"])):
        holders = [path for path in root.rglob("*") if path.is_file() and b"sk-canary" in path.read_bytes()]
        assert holders == ([worker.env] if root == stage.paths.root else [])


def test_an_endpoint_that_is_not_there_is_explained(stage: Stage) -> None:
    with pytest.raises(NotReady, match=r"127\.0\.0\.1:1") as caught:
        stage.fleet.spawn_order(order(stage, asked=Asked(url="http://127.0.0.1:1/v1", model="m")), wait=False)
    assert caught.value.hint
    assert on_disk(stage) == ([], [], [])


def test_scale_is_absolute(stage: Stage) -> None:
    assert stage.fleet.scale(3, order(stage), wait=False) == ["coder-1", "research-1", "qa-1"]
    assert stage.fleet.scale(3, order(stage), wait=False) == ["coder-1", "research-1", "qa-1"]
    assert len(stage.fleet.names()) == 3
    assert stage.fleet.scale({"coder": 2, "qa": 0}, order(stage), wait=False) == [
        "coder-1",
        "research-1",
        "coder-2",
    ]
    wants = {name: str(each.want) for name, each in load_desired(stage.paths).workers.items()}
    assert wants == {"coder-1": "run", "research-1": "run", "qa-1": "stopped", "coder-2": "run"}
    assert "qa-1" in stage.fleet.scale(4, order(stage), wait=False), "a stopped worker comes back first"
    assert len(stage.fleet.names()) == 4
