"""Asking, waiting, starting, removing: against a fleet on disk whose supervisor is played by the test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.api.follow import check_products
from orchestrator.errors import (
    PersonNeeded,
    SupervisorDown,
    TimedOut,
    UnknownWorker,
    UsageError,
    WorkerFailed,
)
from orchestrator.store import inbox
from orchestrator.store.desired import load_desired
from orchestrator.store.lock import FileLock
from tests.unit.stage import Stage
from tests.until import until


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        stage.worker("coder-1")
        yield stage


def test_an_answer(stage: Stage) -> None:
    def part() -> None:
        stage.take("coder-1")
        stage.event("coder-1", "post_api_request", usage={"in": 7, "out": 3})
        stage.end("coder-1")

    stage.play(part)
    answer = stage.fleet.worker("coder-1").ask("6 x 7?", timeout=10)
    assert (answer.text, answer.turn, answer.tokens_in, answer.tokens_out) == ("42", "t1", 7, 3)
    assert answer.receipt is not None and answer.receipt["method"] == "paste"


def test_old_events_do_not_answer_a_new_message(stage: Stage) -> None:
    stage.end("coder-1", turn="t0")
    stage.play(lambda: stage.take("coder-1"), lambda: stage.end("coder-1", answer="new"))
    assert stage.fleet.worker("coder-1").ask("?", timeout=10).text == "new"


def test_a_delegated_answer(stage: Stage) -> None:
    def part() -> None:
        stage.take("coder-1")
        stage.event("coder-1", "subagent_start", platform="", child_session="c")
        stage.event("coder-1", "post_tool_call", platform="", tool="delegate_task", status="ok")
        stage.end("coder-1", answer="I asked somebody")
        stage.event("coder-1", "subagent_stop", platform="", child_session="c")
        stage.event("coder-1", "pre_llm_call", turn="t2", preview="[ASYNC DELEGATION COMPLETE — d]")
        stage.end("coder-1", turn="t2", answer="the child says 42")

    stage.play(part)
    answer = stage.fleet.worker("coder-1").ask("?", timeout=10)
    assert (answer.text, answer.delegations) == ("the child says 42", 1)


def test_a_failed_turn(stage: Stage) -> None:
    def part() -> None:
        stage.take("coder-1")
        stage.event("coder-1", "api_request_error", status=401, error="bad key")
        last = {"turn": "t1", "outcome": "failed", "kind": "auth", "error": "HTTP 401: bad key"}
        stage.worker("coder-1", word="failed", last_turn=last)

    stage.play(part)
    with pytest.raises(WorkerFailed, match="HTTP 401: bad key"):
        stage.fleet.worker("coder-1").ask("?", timeout=10)


def test_an_interrupted_turn(stage: Stage) -> None:
    stage.play(
        lambda: stage.take("coder-1"), lambda: stage.event("coder-1", "on_session_end", interrupted=True)
    )
    with pytest.raises(WorkerFailed, match="interrupted"):
        stage.fleet.worker("coder-1").ask("?", timeout=10)


def test_a_dialog_needs_a_person(stage: Stage) -> None:
    waiting = {"kind": "approval", "text": "rm -rf build", "choices": ["once", "deny"], "since": time.time()}
    stage.play(
        lambda: stage.take("coder-1"), lambda: stage.worker("coder-1", word="waiting", waiting=waiting)
    )
    with pytest.raises(PersonNeeded, match=r"rm -rf build\n  1\. once\n  2\. deny"):
        stage.fleet.worker("coder-1").ask("?", timeout=10)


def test_a_message_that_failed(stage: Stage) -> None:
    def part() -> None:
        worker = stage.paths.worker("coder-1")
        message = until(lambda: inbox.list_new(worker))[0]
        inbox.take(worker, message.id)
        inbox.finish(worker, message.id, error="in doubt")

    stage.play(part)
    with pytest.raises(WorkerFailed, match="was not delivered: in doubt"):
        stage.fleet.worker("coder-1").ask("?", timeout=10)


@pytest.mark.parametrize(
    ("entry", "told"),
    [({"phase": "held", "word": "held", "why": "crash loop"}, "crash loop"), ({"phase": "stopped"}, None)],
)
def test_a_worker_that_gets_into_trouble(stage: Stage, entry: dict[str, str], told: str | None) -> None:
    if told is None:
        stage.play(lambda: stage.take("coder-1"), lambda: stage.fleet.stop(["coder-1"], wait=False))
    else:
        stage.play(lambda: stage.take("coder-1"), lambda: stage.worker("coder-1", **entry))
    with pytest.raises(WorkerFailed, match=told or "stopped"):
        stage.fleet.worker("coder-1").ask("?", timeout=10)


def test_nothing_is_sent_to_a_worker_on_hold(stage: Stage) -> None:
    stage.worker("coder-1", phase="held", word="held", why="auth")
    with pytest.raises(WorkerFailed, match="nothing was sent"):
        stage.fleet.worker("coder-1").ask("?")
    assert inbox.list_new(stage.paths.worker("coder-1")) == []


def test_time_is_up_and_the_message_stays(stage: Stage) -> None:
    sent: list[str] = []
    with pytest.raises(TimedOut, match="is still queued"):
        stage.fleet.worker("coder-1").ask("?", timeout=0.1, sent=sent)
    assert [each.id for each in inbox.list_new(stage.paths.worker("coder-1"))] == sent


def test_products(stage: Stage) -> None:
    there = stage.paths.root / "old.txt"
    there.write_text("old")

    def part() -> None:
        stage.take("coder-1")
        stage.end("coder-1")

    stage.play(part)
    with pytest.raises(
        WorkerFailed, match=r"old\.txt was not written in this turn; no tool that writes was called"
    ):
        stage.fleet.worker("coder-1").ask("?", produces=["old.txt"], timeout=10)


def test_a_product_that_was_written(stage: Stage) -> None:
    def part() -> None:
        stage.take("coder-1")
        (stage.paths.root / "new.txt").write_text("x")
        stage.event("coder-1", "pre_tool_call", platform="", tool="write_file")
        stage.end("coder-1")

    stage.play(part)
    answer = stage.fleet.worker("coder-1").ask("?", produces=["new.txt"], timeout=10)
    assert answer.produced == (str(stage.paths.root / "new.txt"),)
    assert check_products(answer, ()) is not answer


def test_bad_texts_are_refused(stage: Stage) -> None:
    worker = stage.fleet.worker("coder-1")
    for text in ("", " \n", "a\0b", "a\udcff"):
        with pytest.raises(UsageError):
            worker.send(text)
    with pytest.raises(UsageError, match="starts with '/'"):
        worker.send("help", slash=True)
    assert inbox.list_new(worker.paths) == []


def test_half_of_the_context_is_warned_of(stage: Stage) -> None:
    worker = stage.fleet.worker("coder-1")
    assert worker.warnings("x") == []
    assert "more than half" in worker.warnings("x" * 300_000)[0]


def test_waiting_for_idleness(stage: Stage) -> None:
    assert list(stage.fleet.wait(["coder-1"], timeout=5)) == ["coder-1"]
    stage.fleet.worker("coder-1").send("x")
    with pytest.raises(TimedOut):
        stage.fleet.wait(["coder-1"], timeout=0.1)
    stage.worker("coder-1", word="busy")
    assert stage.fleet.wait(["coder-1"], state="busy", timeout=5)["coder-1"]["word"] == "busy"
    with pytest.raises(UsageError, match="no state"):
        stage.fleet.wait(["coder-1"], state="happy")


def test_waiting_for_one_of_several(stage: Stage) -> None:
    stage.worker("qa-1", word="busy")
    assert list(stage.fleet.wait(["qa-1", "coder-1"], any_one=True, timeout=5)) == ["coder-1"]


def test_waiting_ends_with_trouble(stage: Stage) -> None:
    stage.worker("coder-1", word="failed", last_turn={"error": "HTTP 500"})
    with pytest.raises(WorkerFailed, match="HTTP 500"):
        stage.fleet.wait(["coder-1"], timeout=5)
    stage.worker("coder-1", word="held", phase="held", why="quota")
    with pytest.raises(WorkerFailed, match="quota"):
        stage.fleet.wait(["coder-1"], timeout=5)


def test_a_receipt_is_waited_for(stage: Stage) -> None:
    message = stage.fleet.worker("coder-1").send("x")
    stage.play(lambda: stage.take("coder-1"))
    assert stage.fleet.wait_message(message, timeout=10).place == "done"


def test_start_stop_restart_are_wishes(stage: Stage) -> None:
    def wish() -> tuple[str, int, float, int]:
        each = load_desired(stage.paths).workers["coder-1"]
        return str(each.want), each.generation, each.grace, each.renew

    stage.fleet.start(["coder-1"], wait=False)
    assert wish() == ("run", 1, 10.0, 0), "it runs already"
    stage.fleet.restart(["coder-1"], wait=False)
    assert wish() == ("run", 2, 10.0, 1)
    stage.fleet.stop(["coder-1"], grace=0, wait=False)
    assert wish() == ("stopped", 2, 0.0, 1)
    stage.worker("coder-1", phase="stopped", word="stopped")
    stage.fleet.start(["coder-1"], wait=False)
    assert wish() == ("run", 3, 0.0, 1)


def test_a_restarted_worker_is_ready_in_its_next_attempt(stage: Stage) -> None:
    stage.fleet.restart(["coder-1"], wait=False)
    stage.worker("coder-1", generation=2)
    with pytest.raises(TimedOut):
        stage.fleet.wait_ready(["coder-1"], timeout=0.1)
    stage.play(lambda: stage.worker("coder-1", attempt=2))
    stage.fleet.wait_ready(["coder-1"], timeout=10)


def test_only_stopped_workers_are_removed(stage: Stage) -> None:
    with pytest.raises(UsageError, match="coder-1 is ready"):
        stage.fleet.remove(["coder-1"])
    stage.fleet.stop(["coder-1"], wait=False)
    stage.worker("coder-1", phase="stopped", word="stopped")
    home = Path(stage.env["HOME"]) / ".hermes" / "profiles" / "hx-default-coder-1"
    home.mkdir(parents=True)
    (home / ".hermux").write_text('{"fleet": "default", "worker": "coder-1"}')
    (home / "state.db").write_text("learned")
    (stage.paths.worker("coder-1").env).write_text("export OPENAI_API_KEY=sk-secret")
    stage.play(lambda: until(lambda: not stage.fleet.names()), lambda: stage.forget("coder-1"))
    (removed,) = stage.fleet.remove(["coder-1"])
    assert removed.archive is not None and not home.exists()
    kept = sorted(path.name for path in removed.archive.rglob("*"))
    assert "state.db" in kept and "inbox" in kept and "env" not in kept
    assert not stage.paths.worker("coder-1").dir.exists()


def test_a_held_worker_fails_the_wait_for_it(stage: Stage) -> None:
    stage.worker("qa-1", phase="held", word="held", why="no such directory: /x")
    told: list[tuple[str, str]] = []
    with pytest.raises(WorkerFailed, match="qa-1 is held: no such directory"):
        stage.fleet.wait_ready(["coder-1", "qa-1"], say=lambda name, text: told.append((name, text)))
    assert [name for name, _ in told] == ["coder-1", "qa-1"]


def test_unknown_workers_are_told_with_the_nearest(stage: Stage) -> None:
    stage.worker("qa-1")
    assert [each.name for each in stage.fleet.select(["q*", "qa-1", "coder-1"])] == ["qa-1", "coder-1"]
    with pytest.raises(UnknownWorker) as caught:
        stage.fleet.worker("coder1")
    assert "coder-1" in caught.value.hint
    with pytest.raises(UnknownWorker, match="2 workers"):
        stage.fleet.worker("*")
    with pytest.raises(UnknownWorker, match="group"):
        stage.fleet.worker("@front")


def test_a_supervisor_of_another_version_is_refused(stage: Stage) -> None:
    stage.paths.supervisor_lock.write_text('{"pid": 1, "start": 0, "version": "9.9"}')
    with pytest.raises(SupervisorDown, match=r"9\.9") as caught:
        stage.fleet.start(["coder-1"])
    assert "hermux supervise --replace" in caught.value.hint


def test_a_lock_file_without_a_holder_is_no_supervisor(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.lock"
    path.write_text('{"pid": 1, "start": 0, "version": "0.1.0"}')
    assert FileLock(path).holder() is None
