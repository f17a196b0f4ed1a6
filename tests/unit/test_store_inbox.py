"""The inbox: a message is in exactly one place, whatever happens between two renames."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UsageError
from orchestrator.fleet.message import Message, MessageKind, digest
from orchestrator.store import inbox
from orchestrator.store.paths import FleetPaths, WorkerPaths


@pytest.fixture
def fleet(tmp_path: Path) -> FleetPaths:
    return FleetPaths(tmp_path / "fleet", "default").make()


@pytest.fixture
def worker(fleet: FleetPaths) -> WorkerPaths:
    return fleet.worker("coder-1").make()


def message(text: str = "hello", **fields: object) -> Message:
    return Message(inbox.new_id(), "coder-1", MessageKind.TEXT, text, 1.0, **fields)  # type: ignore[arg-type]


def places(worker: WorkerPaths) -> dict[str, list[str]]:
    folders = (worker.inbox_new, worker.inbox_cur, worker.inbox_done, worker.inbox_failed)
    return {each.name: sorted(path.name for path in each.iterdir()) for each in folders}


def test_ids_sort_by_time_even_within_a_microsecond() -> None:
    ids = [inbox.new_id() for _ in range(500)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 500


def test_a_message_goes_from_new_to_done_with_its_receipt(fleet: FleetPaths, worker: WorkerPaths) -> None:
    sent = message("a\nb", changed=("line ends became LF",))
    inbox.put(worker, sent)
    assert inbox.list_new(worker) == [sent]
    assert inbox.take(worker, sent.id) == sent
    assert inbox.text_file(worker, sent.id).read_text() == "a\nb"
    assert inbox.current(worker) == [sent] and inbox.list_new(worker) == []
    inbox.finish(worker, sent.id, receipt={"method": "paste", "sha256": digest("a\nb")})
    found = inbox.find(fleet, sent.id)
    assert found is not None and found.place == "done"
    assert found.data["receipt"]["sha256"] == found.data["sha256"]
    assert places(worker)["cur"] == []


def test_files_are_private(worker: WorkerPaths) -> None:
    sent = message()
    inbox.put(worker, sent)
    assert (worker.inbox_new / f"{sent.id}.json").stat().st_mode & 0o777 == 0o600
    assert worker.inbox_new.stat().st_mode & 0o777 == 0o700


def test_the_text_of_a_file_that_is_still_to_be_read_stays(worker: WorkerPaths) -> None:
    sent = message()
    inbox.put(worker, sent)
    inbox.take(worker, sent.id)
    inbox.finish(worker, sent.id, receipt={"method": "read_file"})
    assert inbox.text_file(worker, sent.id).read_text() == "hello"
    assert inbox.current(worker) == []


def test_put_back_and_failed(fleet: FleetPaths, worker: WorkerPaths) -> None:
    sent = message()
    inbox.put(worker, sent)
    inbox.take(worker, sent.id)
    inbox.put_back(worker, sent.id)
    inbox.put_back(worker, sent.id)
    assert [each.id for each in inbox.list_new(worker)] == [sent.id]
    inbox.take(worker, sent.id)
    inbox.finish(worker, sent.id, error="the worker is gone")
    found = inbox.find(fleet, sent.id)
    assert found is not None and (found.place, found.data["error"]) == ("failed", "the worker is gone")


def test_a_crash_between_the_two_steps_of_finish_leaves_no_second_copy(worker: WorkerPaths) -> None:
    sent = message()
    inbox.put(worker, sent)
    inbox.take(worker, sent.id)
    before = (worker.inbox_cur / f"{sent.id}.json").read_text()
    inbox.finish(worker, sent.id, receipt={"method": "paste"})
    (worker.inbox_cur / f"{sent.id}.json").write_text(before)
    assert inbox.current(worker) == []


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"\xff",
        b"{}",
        b'{"id":"m-other","worker":"w","text":"x"}',
        b'{"id":"m-x","worker":"w","text":3}',
    ],
)
def test_a_file_that_is_no_message_is_set_aside_with_the_reason(worker: WorkerPaths, content: bytes) -> None:
    good = message()
    (worker.inbox_new / "m-x.json").write_bytes(content)
    inbox.put(worker, good)
    assert inbox.list_new(worker) == [good]
    record = json.loads((worker.inbox_failed / "m-x.json").read_text())
    assert record["error"]
    assert (worker.inbox_failed / "m-x.bad").read_bytes() == content


def test_a_message_that_cannot_be_read_for_now_stays(worker: WorkerPaths) -> None:
    (worker.inbox_new / "m-1.json").symlink_to("/proc/self/mem")  # reading it from its start is EIO
    assert inbox.list_new(worker) == []
    assert (worker.inbox_new / "m-1.json").is_symlink()
    assert list(worker.inbox_failed.iterdir()) == []


def test_unsend_takes_back_only_what_waits(fleet: FleetPaths, worker: WorkerPaths) -> None:
    waits, taken = message(), message()
    inbox.put(worker, waits)
    inbox.put(worker, taken)
    inbox.take(worker, taken.id)
    assert inbox.unsend(fleet, waits.id).data["error"] == "unsent"
    assert inbox.list_new(worker) == []
    with pytest.raises(UsageError, match="is being delivered"):
        inbox.unsend(fleet, taken.id)
    with pytest.raises(UsageError, match="no message"):
        inbox.unsend(fleet, "m-nope-0000")


def test_finished_messages_are_bounded(worker: WorkerPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "KEEP", 3)
    sent = [message(str(number)) for number in range(6)]
    for each in sent:
        inbox.put(worker, each)
        inbox.take(worker, each.id)
        inbox.finish(worker, each.id, receipt={"method": "paste"})
    assert places(worker)["done"] == [f"{each.id}.json" for each in sent[3:]]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.sampled_from(MessageKind))
def test_every_text_survives_the_file(text: str, kind: MessageKind) -> None:
    sent = Message("m-a-b", "w", kind, text, 2.5, keys=("C-c",), changed=("x",))
    again = inbox.message_from_dict(json.loads(json.dumps(inbox.message_to_dict(sent))))
    assert again == sent
