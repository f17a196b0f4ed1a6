"""What real workers leave on disk: shown, deleted when asked to, and nothing that anybody needs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.schemas import undocumented
from tests.e2e.play import said, script, shell
from tests.e2e.sandbox import Sandbox, ended, sandbox
from tests.until import until

OLD = time.time() - 40 * 86400
PASTED = "\n".join(f"row {number}" for number in range(9))


def age(*paths: Path) -> None:
    """Make files, and all that is in folders, 40 days old."""
    for path in paths:
        for folder, inner, files in os.walk(path, topdown=False):
            for each in (*inner, *files):
                os.utime(Path(folder) / each, (OLD, OLD), follow_symlinks=False)
        os.utime(path, (OLD, OLD), follow_symlinks=False)


def profile(box: Sandbox, worker: str) -> Path:
    return box.home / ".hermes" / "profiles" / f"hx-{box.fleet}-{worker}"


def items(box: Sandbox, *args: str) -> dict[str, dict[str, Any]]:
    document = box.json("gc", *args)
    assert undocumented("gc", document) == []
    return {item["path"]: item for item in document["items"]}


@pytest.fixture(scope="module")
def box(hermes: Path) -> Iterator[Sandbox]:
    """Two workers: `w` was killed once in a tool and has failed turns behind it, `gone` was removed."""
    with sandbox(hermes) as box:
        box.hire("gone")
        box.out("ask", "gone", "hello")
        box.hire("w")
        box.out("ask", "w", script(shell("echo hi"), said("done")))
        for _ in range(2):
            assert box.run("ask", "w", script({"status": 404}, say="fail")).returncode == 3
        box.hermes("w").kill()
        until(lambda: box.worker("w").get("attempt") == 2, 60, every=0.1, what="the second attempt")
        box.shows("w", "ready", 90)
        box.out("stop", "gone", timeout=120)
        box.out("rm", "gone")
        yield box


def test_what_hermes_leaves(box: Sandbox) -> None:
    """What hermes/tidy.py says of it: a dump a failed turn, a snapshot of a killed process."""
    dumps = list((profile(box, "w") / "sessions").glob("request_dump_*.json"))
    assert len(dumps) == 2
    assert all(10_000 < dump.stat().st_size < 1_000_000 for dump in dumps)
    assert len(list((box.home / "tmp").glob("hermes-snap-*.sh"))) == 1


def test_nothing_is_named_while_it_is_young(box: Sandbox) -> None:
    document = box.json("gc", "--older-than", "0", "--archives")
    assert document["items"] == []
    assert document["delete"] is False
    assert "nothing is left over" in box.run("gc").stderr


def test_bad_input(box: Sandbox) -> None:
    for args in (("--older-than", "soon"), ("--older-than", "-1d"), ("w",), ("--force",)):
        done = box.run("gc", *args)
        assert (done.returncode, done.stdout) == (2, ""), args
        assert "→" in done.stderr


def test_shown_then_deleted_beside_a_fleet_that_works(box: Sandbox) -> None:
    home, worker = profile(box, "w"), box.dir / "workers" / "w"
    (home / "memories").mkdir(exist_ok=True)
    (home / "memories" / "MEMORY.md").write_text("the wire is red\n")
    precious = box.home / "precious"
    precious.mkdir()
    (precious / "paste_1_1.txt").write_text("mine")
    person = home.with_name("hx-a-person")
    (person / "sessions").mkdir(parents=True)
    (person / "sessions" / "request_dump_1.json").write_text("mine")
    (home / "pastes").mkdir(exist_ok=True)
    (home / "pastes" / "paste_7_1.txt").symlink_to(precious / "paste_1_1.txt")
    (worker / "attempts" / "99").symlink_to(precious)
    age(
        precious,
        person,
        home,
        box.home / "tmp",
        *worker.glob("inbox/*"),
        worker / "turns",
        box.dir / "archive",
    )
    shown = items(box)
    by_kind = {
        kind: sum(item["kind"] == kind for item in shown.values())
        for kind in ("cache", "message", "snapshot")
    }
    assert by_kind["cache"] == 2
    assert by_kind["snapshot"] == 1
    assert by_kind["message"] >= 3
    assert sum(by_kind.values()) == len(shown)
    assert all(item["age"] > 39 * 86400 and item["why"] and not item["deleted"] for item in shown.values())
    assert all(Path(path).exists() for path in shown), "showing deletes nothing"
    text = box.run("gc")
    assert "request_dump" in text.stdout
    assert "hermux gc --delete" in text.stderr
    assert "--archives" in text.stderr
    asking = box.begin("ask", "w", script(shell("sleep 2; echo hi"), said("still at it")))
    box.shows("w", "busy")
    both = [box.begin("gc", "--delete", "--json") for _ in range(2)]
    done = [ended(each) for each in both]
    assert [each.returncode for each in done] == [0, 0], done[0].stderr + done[1].stderr
    assert not [path for path in shown if Path(path).exists()]
    answer = ended(asking)
    assert (answer.returncode, answer.stdout) == (0, "still at it\n"), answer.stderr
    assert (precious / "paste_1_1.txt").read_text() == "mine"
    assert (person / "sessions" / "request_dump_1.json").read_text() == "mine"
    assert (home / "memories" / "MEMORY.md").read_text() == "the wire is red\n"
    assert (home / "state.db").exists()
    assert box.json("transcript", "w")["turns"][0]["answer"] == "done"
    assert items(box) == {}
    (worker / "attempts" / "99").unlink()


def test_a_restart_after_it_goes_on_in_the_conversation(box: Sandbox) -> None:
    session = box.worker("w")["session"]
    box.out("restart", "w", timeout=170)
    assert box.out("ask", "w", script(said("here again"))) == "here again"
    assert box.worker("w")["session"] == session


def test_archives_go_only_when_named(box: Sandbox) -> None:
    (archive,) = (box.dir / "archive").iterdir()
    age(box.dir / "archive")
    kept = box.json("gc")["kept"]
    assert [each["path"] for each in kept] == [str(archive)]
    assert box.run("gc", "--delete").returncode == 0
    assert archive.exists()
    assert items(box, "--archives")[str(archive)]["kind"] == "archive"
    deleted = items(box, "--archives", "--delete")
    assert deleted[str(archive)]["deleted"] is True
    assert not archive.exists()


def test_a_profile_whose_worker_was_lost(box: Sandbox) -> None:
    """A worker's files are deleted by hand, and the supervisor forgets it: its profile is nobody's then."""
    box.hire("lost")
    box.out("stop", "lost", timeout=120)
    home = profile(box, "lost")
    age(home)
    assert str(home) not in items(box, "--archives", "--older-than", "1h")
    archive = Path(box.json("rm", "lost")["removed"][0]["archive"])
    (archive / home.name).rename(home)
    age(home)
    found = items(box, "--archives", "--older-than", "1h")
    assert found[str(home)]["kind"] in ("profile", "learned")
    assert items(box, "--archives", "--delete")[str(home)]["deleted"] is True
    assert not home.exists()
    assert profile(box, "w").exists()


def test_gc_beside_spawn_and_rm(box: Sandbox) -> None:
    """Eight rounds of gc while workers come and go: each that was spawned works, each archive is whole."""
    sweeping = [box.begin("gc", "--delete", "--archives", "--older-than", "0") for _ in range(2)]
    box.hire("brief")
    box.out("ask", "brief", "hello")
    sweeping += [box.begin("gc", "--delete", "--archives", "--older-than", "0") for _ in range(2)]
    box.out("stop", "brief", "--now", timeout=120)
    sweeping += [box.begin("gc", "--delete", "--archives", "--older-than", "0") for _ in range(2)]
    archive = Path(box.json("rm", "brief")["removed"][0]["archive"])
    sweeping += [box.begin("gc", "--delete", "--archives", "--older-than", "0") for _ in range(2)]
    for each in sweeping:
        done = ended(each)
        assert done.returncode == 0, done.stderr
    assert list(archive.glob("worker/turns/*.json"))
    assert list(archive.glob("hx-*/state.db"))
