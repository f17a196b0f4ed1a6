"""Locks, wishes, journal, environment: what two processes, a crash or a strange file do to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BadName, HermuxError, TimedOut, UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind, WorkerSpec
from orchestrator.fleet.worker import Want
from orchestrator.store import desired, env, files, journal, wake
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import RESERVED, FleetPaths, WorkerPaths, fleet_paths, state_root
from orchestrator.store.state import read_state

SPEC = WorkerSpec(
    "coder-1",
    "coder",
    "/work",
    "hx-default-coder-1",
    Endpoint("http://x/v1", "m", 65536, kind=EndpointKind.REHEARSAL, key_env="K"),
    toolsets=("terminal", "file"),
)


@pytest.fixture
def fleet(tmp_path: Path) -> FleetPaths:
    return FleetPaths(tmp_path / "fleet", "default").make()


def test_a_relative_state_home_is_ignored() -> None:
    assert state_root({"XDG_STATE_HOME": "here", "HOME": "/h"}) == Path("/h/.local/state/hermux")
    assert state_root({"XDG_STATE_HOME": "/s", "HOME": "/h"}) == Path("/s/hermux")
    with pytest.raises(BadName):
        fleet_paths("../x", {"HOME": "/h"})


def test_a_json_file_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert files.read_json(path) is None
    files.write_json(path, {"a": "ü"})
    assert files.read_json(path) == {"a": "ü"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    path.write_text("{")
    with pytest.raises(files.BadFile, match=r"a\.json"):
        files.read_json(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        files.write_json(path, {"a": object()})
    assert files.read_json(path) == {"a": 1}


def test_a_lock_is_the_kernels(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path, timeout=0.02)
    assert second.holder() is None
    assert first.try_acquire()
    assert not second.try_acquire(patience=0)
    holder = second.holder()
    assert holder is not None and holder["pid"] == os.getpid() and holder["version"]
    with pytest.raises(TimedOut, match=str(os.getpid())), second:
        pass
    first.release()
    assert second.holder() is None
    assert second.try_acquire(patience=0)
    second.release()


def test_a_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    script = (
        "import sys,time; from pathlib import Path; from orchestrator.store.lock import FileLock\n"
        "FileLock(Path(sys.argv[1])).try_acquire(); print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert child.stdout is not None and child.stdout.readline() == b"held\n"
    holder = FileLock(path).holder()
    assert holder is not None and holder["pid"] == child.pid
    child.kill()
    child.wait()
    child.stdout.close()
    assert FileLock(path).holder() is None


def test_wishes_survive_and_newer_keys_are_ignored(fleet: FleetPaths) -> None:
    with desired.edit_desired(fleet) as wanted:
        wanted.workers["coder-1"] = desired.DesiredWorker(SPEC, Want.STOPPED, 3, 0.0)
    assert desired.load_desired(fleet).workers["coder-1"] == desired.DesiredWorker(SPEC, Want.STOPPED, 3, 0.0)
    raw = json.loads(fleet.desired.read_text())
    raw["workers"]["coder-1"]["spec"] |= {"later": 1}
    raw["workers"]["coder-1"]["spec"]["endpoint"] |= {"later": 1}
    del raw["workers"]["coder-1"]["spec"]["restart"]
    fleet.desired.write_text(json.dumps(raw))
    assert desired.load_desired(fleet).workers["coder-1"].spec == SPEC


def test_an_error_while_editing_changes_nothing(fleet: FleetPaths) -> None:
    with pytest.raises(RuntimeError), desired.edit_desired(fleet) as wanted:
        wanted.workers["coder-1"] = desired.DesiredWorker(SPEC)
        raise RuntimeError
    assert not fleet.desired.exists()


def test_a_damaged_wish_is_named(fleet: FleetPaths) -> None:
    fleet.desired.write_text('{"workers": {"coder-1": {"spec": {"name": "coder-1"}}}}')
    with pytest.raises(files.BadFile, match=r"desired\.json.*coder-1"):
        desired.load_desired(fleet)


def test_a_spec_holds_no_more_than_it_should() -> None:
    assert desired.spec_from_dict(json.loads(json.dumps(desired.spec_to_dict(SPEC)))) == SPEC
    assert set(desired.spec_to_dict(SPEC)) == set(asdict(SPEC))


def test_editing_wakes_the_supervisor(fleet: FleetPaths) -> None:
    wake.poke(fleet.wake)
    handle = wake.open_wake(fleet.wake)
    try:
        assert not wake.drain(handle)
        with desired.edit_desired(fleet):
            pass
        assert wake.drain(handle)
    finally:
        os.close(handle)
    wake.poke(fleet.wake)


def test_nothing_is_written_into_a_wake_that_is_no_fifo(tmp_path: Path) -> None:
    path = tmp_path / "wake"
    path.write_text("mine")
    wake.poke(path)
    assert path.read_text() == "mine"


def test_state_has_an_age(fleet: FleetPaths) -> None:
    assert read_state(fleet) is None
    files.write_json(fleet.state, {"workers": {"a": {}}})
    os.utime(fleet.state, (1.0, 1.0))
    state = read_state(fleet)
    assert state is not None and state.age > 1e6 and list(state.workers) == ["a"]


def test_the_journal_rotates_and_redacts(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    book = journal.Journal(path, max_bytes=400, redact=lambda text: text.replace("sk-secret", "[redacted]"))
    for number in range(20):
        book.write(time=float(number), text="key sk-secret", more={"list": ["sk-secret"]})
    book.close()
    assert "sk-secret" not in path.read_text() + journal.older(path).read_text()
    path.open("a").write("torn {")
    lines = list(journal.read(path))
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    assert lines[-1]["time"] == 19.0 and len(lines) < 20
    assert [line["time"] for line in journal.read(path, since=19.0)] == [19.0]


def test_a_torn_last_line_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"v": 1, "time": 1.0, "text": "whole"}\n{"v": 1, "ti')
    book = journal.Journal(path)
    book.write(time=2.0, text="after")
    book.close()
    assert [line["time"] for line in journal.read(path)] == [1.0, 2.0]


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))


@settings(max_examples=15)
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_variables_survive_the_shell(variables: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        worker = WorkerPaths(Path(folder))
        env.write_env(worker, variables)
        assert env.read_env(worker) == variables
        assert worker.env.stat().st_mode & 0o777 == 0o600


def test_an_env_file(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text('# c\n\nA=1\nexport B = two words # c\nC=\'a # b\'\nD="x\\n\\"y\\"" # c\nE=\nF=a#b\n')
    assert env.parse_env_file(path) == {
        "A": "1",
        "B": "two words",
        "C": "a # b",
        "D": 'x\n"y"',
        "E": "",
        "F": "a#b",
    }


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"A=1\nno sign\n", ":2:"),
        (b"1A=sk-secret\n", ":1:"),
        (b"A=1\nB='open\n", ":2:"),
        (b"A=\xff\n", ":1:"),
        (b"A='x' y\n", ":1:"),
    ],
)
def test_a_bad_env_file_is_named_by_line_and_never_quoted(tmp_path: Path, content: bytes, where: str) -> None:
    path = tmp_path / ".env"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        env.parse_env_file(path)
    assert where in str(caught.value) and "sk-secret" not in str(caught.value)


def test_a_missing_env_file(tmp_path: Path) -> None:
    with pytest.raises(HermuxError, match="cannot read"):
        env.parse_env_file(tmp_path / "nope")


def test_every_verb_is_reserved() -> None:
    from orchestrator.cli.verbs import VERBS

    assert {verb.name for verb in VERBS} <= RESERVED
