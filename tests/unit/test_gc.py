"""What may be deleted, what never, and that no link and no newcomer is deleted in its place."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from orchestrator.api import gc
from orchestrator.api.supervisor import LOG_LIMIT, _rotate_log
from orchestrator.errors import UsageError
from orchestrator.fleet.leftover import Leftover
from orchestrator.hermes.home import profile_dir, write_home
from orchestrator.hermes.tidy import BOUNDS, DAY, MIB, surplus
from orchestrator.store import inbox, sweep
from orchestrator.store.lock import FileLock
from orchestrator.supervise.bounds import ATTEMPTS, Bounds
from tests.unit.stage import Stage, spec

OLD = time.time() - 40 * DAY


def put(path: Path, size: int = 3, *, at: float = OLD) -> Path:
    """Make a file of a size, written at a time; its folders get that time too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))
    return path


# -- store/sweep ------------------------------------------------------------------------------------------


def test_a_file_and_a_folder_are_measured_and_deleted(tmp_path: Path) -> None:
    put(tmp_path / "a" / "b" / "one", 10)
    put(tmp_path / "a" / "two", 5, at=OLD + 7)
    left = sweep.look("x", tmp_path, "a", "why")
    assert left is not None and (left.bytes, left.time) == (15, OLD + 7)
    assert sweep.names(tmp_path, "a") == ["b", "two"] and sweep.names(tmp_path, "") == ["a"]
    assert sweep.delete(left) and not (tmp_path / "a").exists()
    assert not sweep.delete(left)


def test_links_are_neither_named_nor_followed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "precious")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "file").symlink_to(outside)
    assert sweep.look("x", inside, "link", "") is None
    assert sweep.look("x", inside, "file", "") is None
    assert sweep.look("x", inside, "link/precious", "") is None
    assert sweep.look("x", inside, "../outside/precious", "") is None
    assert sweep.names(inside, "link") == []
    put(inside / "folder" / "f")
    (inside / "folder" / "out").symlink_to(tmp_path / "outside")
    left = sweep.look("x", inside, "folder", "")
    assert left is not None and left.bytes == 3
    assert sweep.delete(left)
    assert outside.exists()


def test_what_took_its_place_stays(tmp_path: Path) -> None:
    path = put(tmp_path / "d" / "f")
    left = sweep.look("x", tmp_path, "d/f", "")
    assert left is not None
    put(tmp_path / "new", 9).replace(path)
    assert not sweep.delete(left) and path.exists()
    again = sweep.look("x", tmp_path, "d/f", "")
    assert again is not None
    os.utime(path)
    assert not sweep.delete(again) and path.exists(), "written since it was looked at"
    (tmp_path / "d").rename(tmp_path / "aside")
    (tmp_path / "d").symlink_to(tmp_path / "aside")
    with pytest.raises(OSError):
        sweep.delete(again)
    assert (tmp_path / "aside" / "f").exists()


# -- hermes/tidy ------------------------------------------------------------------------------------------


def over(home: Path, *, before: float = 0.0) -> list[str]:
    return [left.name for left in surplus(home, now=time.time(), before=before or time.time())]


def test_request_dumps_are_bounded_by_number_age_and_size(tmp_path: Path) -> None:
    now = time.time()
    for number in range(25):
        put(tmp_path / "sessions" / f"request_dump_s_{number:02}.json", at=now - 100 + number)
    put(tmp_path / "sessions" / "session_s.json", at=1.0)
    put(tmp_path / "state.db", at=1.0)
    put(tmp_path / "memories" / "MEMORY.md", at=1.0)
    put(tmp_path / "skills" / "mine" / "SKILL.md", at=1.0)
    assert over(tmp_path) == [f"sessions/request_dump_s_{n:02}.json" for n in range(5)]
    assert len(over(tmp_path, before=1.0)) == 5, "Hermes never reads a dump again"
    for number in range(25):
        put(tmp_path / "sessions" / f"request_dump_s_{number:02}.json", 1 * MIB, at=now - 100 + number)
    assert len(over(tmp_path)) == 25 - 8
    put(tmp_path / "sessions" / "request_dump_s_24.json", at=now - 8 * DAY)
    assert "sessions/request_dump_s_24.json" in over(tmp_path)


def test_what_the_running_attempt_may_use_stays(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path / "pastes" / f"paste_{number}_1.txt", at=OLD + number)
    assert len(over(tmp_path)) == 3
    assert over(tmp_path, before=OLD + 1.5) == ["pastes/paste_0_1.txt", "pastes/paste_1_1.txt"]
    put(tmp_path / "pastes" / "mine.txt")
    assert len(over(tmp_path)) == 3


def test_a_delegation_is_dropped_as_a_whole(tmp_path: Path) -> None:
    put(tmp_path / "cache" / "delegation" / "live" / "deleg_1" / "task-0.log")
    put(tmp_path / "cache" / "models" / "big.bin")
    assert over(tmp_path) == ["cache/delegation/live/deleg_1"]


def test_no_bound_names_what_is_the_workers_own() -> None:
    own = ("memories", "skills", "checkpoints", "cron", "home", "workspace", "plans", "plugins", "sandboxes")
    assert not [bound for bound in BOUNDS if bound.folder.split("/")[0] in own]
    assert [bound.pattern for bound in BOUNDS if bound.folder == "sessions"] == ["request_dump_*.json"]


def test_a_linked_folder_in_a_profile_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "paste_1_1.txt")
    home = tmp_path / "home"
    home.mkdir()
    (home / "pastes").symlink_to(tmp_path / "elsewhere")
    (home / "cache").symlink_to(tmp_path / "elsewhere")
    (home / "sessions").mkdir()
    (home / "sessions" / "request_dump_1.json").symlink_to(tmp_path / "elsewhere" / "paste_1_1.txt")
    assert over(home) == []


def test_the_supervisor_keeps_a_worker_within_bounds(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.worker("w")
    root = tmp_path / "hermes"
    one = spec("w")
    home = write_home(root, one, soul="s", key=False, state=stage.paths.root)
    dump = put(home / "sessions" / "request_dump_1.json")
    for number in range(1, ATTEMPTS + 4):
        put(stage.paths.worker("w").attempt(number) / "pid")
    bounds = Bounds(stage.paths)
    bounds.delivered(one, root, launched=0.0)
    assert dump.exists(), "the first look is an hour after the start"
    bounds.launched(one, root, began=time.time())
    assert not dump.exists()
    left = sorted(int(path.name) for path in stage.paths.worker("w").attempts.iterdir())
    assert left == list(range(4, ATTEMPTS + 4))


# -- api/gc -----------------------------------------------------------------------------------------------


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.env["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    stage.worker("w", attempt=14)
    return stage


def found(stage: Stage, *, older_than: float = 30 * DAY, archives: bool = False) -> gc.Found:
    return gc.find(stage.paths, stage.env, older_than=older_than, archives=archives)


def kinds(stage: Stage, *, older_than: float = 30 * DAY, archives: bool = False) -> dict[str, str]:
    items = found(stage, older_than=older_than, archives=archives).items
    return {item.path.name: item.kind for item in items}


def test_what_is_named(stage: Stage) -> None:
    worker = stage.paths.worker("w")
    for number in range(1, 15):
        put(worker.attempt(number) / "pid")
    put(worker.inbox_done / "m-1.json")
    put(worker.inbox_failed / "m-2.bad")
    put(worker.inbox_done / "m-3.json", at=time.time() - 7200)
    put(worker.inbox_done / "m-4.json")
    put(worker.inbox_cur / "m-4.json")
    put(worker.inbox_cur / "m-4.txt")
    put(worker.inbox_cur / "m-5.txt")
    put(worker.inbox_new / "m-6.json")
    put(worker.turns / "t.json")
    put(worker.turns / "t.4194305.tmp")
    put(worker.turns / f"t.{os.getpid()}.tmp")
    put(worker.dir / "events.1.jsonl")
    put(worker.dir / "events.jsonl")
    put(worker.dir / "env")
    put(stage.paths.root / "journal.1.jsonl")
    put(stage.paths.root / ".state.json.4194305.tmp")
    expected = {
        "1": "attempt", "2": "attempt", "3": "attempt", "4": "attempt", "m-1.json": "message", "m-2.bad": "message",
        "m-5.txt": "text", "t.4194305.tmp": "scratch", "events.1.jsonl": "rotated", "journal.1.jsonl": "rotated",
        ".state.json.4194305.tmp": "scratch",
    }  # fmt: skip
    assert kinds(stage) == expected
    assert kinds(stage, older_than=0) == expected | {"m-3.json": "message"}
    assert kinds(stage, older_than=50 * DAY) == {}


def test_nothing_younger_than_an_hour_is_named(stage: Stage) -> None:
    put(stage.paths.worker("w").inbox_done / "m-1.json", at=time.time() - 1800)
    assert kinds(stage, older_than=0) == {}


def test_archives_only_when_asked_for(stage: Stage) -> None:
    put(stage.paths.archive / "x-20260101-000000" / "worker" / "events.jsonl")
    os.utime(stage.paths.archive / "x-20260101-000000", (OLD, OLD))
    assert kinds(stage) == {}
    assert "--archives" in found(stage).kept[0].why
    assert kinds(stage, archives=True) == {"x-20260101-000000": "archive"}


def test_a_folder_of_no_worker(stage: Stage) -> None:
    put(stage.paths.worker("ghost").dir / "events.jsonl")
    put(stage.paths.worker("stopping").dir / "events.jsonl")
    stage.entries["stopping"] = {"phase": "stopping"}
    stage.draw()
    assert kinds(stage) == {}
    (item,) = found(stage, archives=True).items
    assert (item.kind, item.path.name) == ("worker", "ghost")
    stage.worker("ghost")
    (gone,) = gc.delete(stage.paths, [item])
    assert not gone.deleted and "exists again" in gone.why and item.path.exists()
    with FileLock(stage.paths.spawn_lock):
        (gone,) = gc.delete(stage.paths, [item])
    assert "spawn or rm" in gone.why and item.path.exists()


def home_of(stage: Stage, name: str, *, state: Path | None, learned: bool = False) -> Path:
    root = Path(stage.env["HOME"]) / ".hermes"
    home = write_home(root, spec(name), soul="s", key=False, state=state)
    if learned:
        put(home / "memories" / "MEMORY.md")
    for folder, _, files in os.walk(home, topdown=False):
        for each in (*files, "."):
            os.utime(Path(folder) / each, (OLD, OLD))
    return home


def test_profiles_of_no_worker(stage: Stage) -> None:
    ours = stage.paths.root
    mine = home_of(stage, "w", state=ours)
    empty = home_of(stage, "gone", state=ours)
    learned = home_of(stage, "wise", state=ours, learned=True)
    home_of(stage, "elsewhere", state=Path("/elsewhere/state/hermux/default"))
    unmarked = home_of(stage, "older", state=None)
    vanished = home_of(stage, "past", state=ours.parent / "past-fleet")
    user = empty.with_name("hx-of-a-person")
    put(user / "config.yaml")
    link = empty.with_name("hx-default-link")
    link.symlink_to(mine)
    assert kinds(stage) == {empty.name: "profile", vanished.name: "profile"}
    assert {kept.path for kept in found(stage).kept} == {learned, unmarked}
    assert kinds(stage, archives=True)[learned.name] == "learned"
    gone = list(gc.delete(stage.paths, found(stage, archives=True).items))
    assert all(each.deleted for each in gone)
    left = {path.name for path in mine.parent.iterdir()}
    assert left == {mine.name, unmarked.name, user.name, link.name, "hx-default-elsewhere"}


def test_a_profile_that_is_spawned_again_meanwhile_stays(stage: Stage) -> None:
    home = home_of(stage, "back", state=stage.paths.root)
    (item,) = found(stage).items
    stage.worker("back")
    (gone,) = gc.delete(stage.paths, [item])
    assert not gone.deleted and home.exists()


def snapshot(stage: Stage, name: str, folder: Path, attempt: int) -> Path:
    path = Path(stage.env["TMPDIR"]) / f"hermes-snap-{name}.sh"
    text = f'declare -x A="b"\ndeclare -x HERMUX_ATTEMPT="{attempt}"\ndeclare -x HERMUX_DIR="{folder}"\n'
    path.write_text(text)
    os.utime(path, (OLD, OLD))
    return path


def test_snapshots_of_attempts_that_are_over(stage: Stage) -> None:
    worker, tmp = stage.paths.worker("w"), Path(stage.env["TMPDIR"])
    for number in (13, 14):
        worker.attempt(number).mkdir(parents=True)
    over, live = snapshot(stage, "0" * 12, worker.dir, 13), snapshot(stage, "1" * 12, worker.dir, 14)
    put(tmp / ("hermes-cwd-" + "0" * 12 + ".txt"))
    removed = snapshot(stage, "2" * 12, stage.paths.worker("removed").dir, 1)
    snapshot(stage, "3" * 12, Path("/elsewhere/workers/w"), 1)
    put(tmp / ("hermes-snap-" + "4" * 12 + ".sh"))
    (tmp / ("hermes-snap-" + "5" * 12 + ".sh")).symlink_to(over)
    assert set(kinds(stage)) == {over.name, removed.name, "hermes-cwd-" + "0" * 12 + ".txt"}
    (worker.attempt(14) / "exit.json").write_text("{}")
    assert live.name in kinds(stage)


def test_two_at_once_delete_each_thing_once(stage: Stage) -> None:
    worker = stage.paths.worker("w")
    for number in range(200):
        put(worker.inbox_done / f"m-{number:03}.json")
    items = found(stage).items
    deleted: list[Leftover] = []

    def run() -> None:
        deleted.extend(each.item for each in gc.delete(stage.paths, items) if each.deleted)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(deleted) == len(items) == 200
    assert list(worker.inbox_done.iterdir()) == []


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("90s", 90), ("12h", 43200), ("30d", 2592000), ("1.5d", 129600)])  # fmt: skip
def test_ages(text: str, seconds: float) -> None:
    assert gc.parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "-1d", "1y", "nan", "d", "1e9d", "²d", " 1d"])
def test_bad_ages(text: str) -> None:
    with pytest.raises(UsageError, match="--older-than"):
        gc.parse_age(text)


# -- our own files ----------------------------------------------------------------------------------------


def test_large_finished_messages_are_bounded_by_size(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "KEEP", 10)
    monkeypatch.setattr(inbox, "KEEP_BYTES", 1000)
    worker = stage.paths.worker("w")
    for number in range(9):
        data = {"schema": 1, "id": f"m-{number}", "worker": "w", "kind": "text", "text": "x" * 300}
        (worker.inbox_cur / f"m-{number}.json").write_text(json.dumps(data))
        inbox.finish(worker, f"m-{number}", receipt={"method": "paste"})
    left = sorted(path.name for path in worker.inbox_done.iterdir())
    assert left == ["m-7.json", "m-8.json"], "the newest always stays"


def test_a_long_supervisor_log_is_moved_aside(stage: Stage) -> None:
    _rotate_log(stage.paths)
    put(stage.paths.supervisor_log, LOG_LIMIT)
    _rotate_log(stage.paths)
    assert stage.paths.supervisor_log.exists()
    put(stage.paths.supervisor_log, LOG_LIMIT + 1)
    _rotate_log(stage.paths)
    assert not stage.paths.supervisor_log.exists()
    assert kinds(stage)["supervisor.1.log"] == "rotated"


def test_profile_dir_of_the_mark(stage: Stage) -> None:
    home = home_of(stage, "w", state=stage.paths.root)
    assert home == profile_dir(Path(stage.env["HOME"]) / ".hermes", "hx-default-w")
    assert json.loads((home / ".hermux").read_text())["state"] == str(stage.paths.root)
