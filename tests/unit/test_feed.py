"""Reading the feed: torn lines, rotation, restarts of the reader, rubbish."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.fleet.events import EventName
from orchestrator.hermes.feed import FEED, PREVIOUS, Feed, iter_events, read_turn, rotate
from orchestrator.hermes.plugin.feed import FeedWriter
from orchestrator.hermes.plugin.owner import Owner
from orchestrator.hermes.plugin.turns import save_turn


def line(number: int, **more: Any) -> dict[str, Any]:
    return {
        "v": 1, "t": float(number), "pid": 7, "attempt": 1, "event": "pre_api_request",
        "session": "s", "platform": "cli", "turn": "t", "call": number, **more,
    }  # fmt: skip


def append(path: Path, *numbers: int) -> None:
    writer = FeedWriter(Owner(path.parent, None, 1))
    for number in numbers:
        writer.append(line(number))


def calls(feed: Feed) -> list[int]:
    return [event.data["call"] for event in feed.read()]


def test_a_missing_file_is_an_empty_feed(tmp_path: Path) -> None:
    feed = Feed(tmp_path / FEED)
    assert feed.read() == []
    append(tmp_path / FEED, 1)
    assert calls(feed) == [1]
    assert feed.read() == []


def test_an_event_carries_everything(tmp_path: Path) -> None:
    append(tmp_path / FEED, 1)
    (event,) = Feed(tmp_path / FEED).read()
    assert event.name is EventName.REQUEST
    assert (event.time, event.pid, event.attempt) == (1.0, 7, 1)
    assert (event.session, event.platform, event.turn) == ("s", "cli", "t")
    assert event.data == {"call": 1}
    assert event.offset == (tmp_path / FEED).stat().st_size
    assert event.main


@given(st.integers(1, 4000), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_torn_writes_lose_nothing(tmp_path_factory: Any, step: int, count: int) -> None:
    path = tmp_path_factory.mktemp("feed") / FEED
    data = b"".join(json.dumps(line(n, note="é")).encode() + b"\n" for n in range(count))
    feed, seen = Feed(path), []
    for start in range(0, len(data), step):
        with path.open("ab") as file:
            file.write(data[start : start + step])
        seen += calls(feed)
    assert seen == list(range(count))
    assert feed.bad == 0


def test_rubbish_is_counted_and_unknown_events_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1)
    with path.open("ab") as file:
        file.write(b'\xff\xfe\n{"v":1}\n[1]\nnull\n{"event": "pre_llm_call", "t": "x"}\n\n')
        file.write(json.dumps(line(2, event="on_human_input_request")).encode() + b"\n")
        file.write(json.dumps(line(2, session=None, platform=None, turn=None)).encode() + b"\n")
    append(path, 3)
    feed = Feed(path)
    assert calls(feed) == [1, 2, 3]
    assert feed.bad == 6


def test_a_reader_goes_on_where_another_stopped(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1, 2)
    first = Feed(path)
    events = first.read()
    append(path, 3)
    assert calls(Feed.at(path, first.offset)) == [3]
    assert calls(Feed.at(path, events[0].offset)) == [2, 3]
    assert calls(Feed.at(path, 0)) == [1, 2, 3]


def test_rotation_is_followed_and_offsets_grow(tmp_path: Path) -> None:
    path = tmp_path / FEED
    feed, events = Feed(path), []
    for round_number in range(4):
        append(path, *range(round_number * 10, round_number * 10 + 10))
        if round_number != 2:  # one file is read only after it was rotated
            events += feed.read()
        assert rotate(path, 100)
    events += feed.read()
    assert [event.data["call"] for event in events] == list(range(40))
    offsets = [event.offset for event in events]
    assert offsets == sorted(set(offsets))
    assert (tmp_path / PREVIOUS).exists() and path.exists()
    assert not rotate(path, 100)


def test_a_reader_that_was_away_during_a_rotation_misses_nothing(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1, 2)
    before = Feed(path)
    before.read()
    append(path, 3)
    rotate(path, 1)
    append(path, 4)
    again = Feed.at(path, before.offset)
    assert calls(again) == [3, 4]
    append(path, 5)
    assert calls(again) == [5]
    assert calls(Feed.at(path, again.offset)) == []


def test_a_line_written_into_the_old_file_after_the_rotation_is_seen(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1)
    feed = Feed(path)
    feed.read()
    with path.open("ab") as held:  # a hook between its open() and its write()
        rotate(path, 1)
        assert calls(feed) == []
        held.write(json.dumps(line(2)).encode() + b"\n")
    append(path, 3)
    assert sorted(calls(feed)) == [2, 3]


def test_a_feed_that_was_begun_anew_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1, 2, 3)
    feed = Feed(path)
    feed.read()
    path.unlink()
    assert feed.read() == []
    append(path, 4)
    assert calls(feed) == [4]
    path.write_bytes(b"")
    assert feed.read() == []
    append(path, 5)
    (event,) = feed.read()
    assert event.data["call"] == 5
    assert calls(Feed.at(path, event.offset)) == [5]  # of another file than this one: better twice than never


def test_writers_readers_and_rotations_at_once(tmp_path: Path) -> None:
    path = tmp_path / FEED
    done = threading.Event()

    def write(base: int) -> None:
        for number in range(300):
            append(path, base + number)

    threads = [threading.Thread(target=write, args=(base,)) for base in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    feed, seen = Feed(path), []
    while any(thread.is_alive() for thread in threads):
        seen += calls(feed)
        rotate(path, 8000)
    done.set()
    seen += calls(feed)
    assert sorted(seen) == [base + number for base in (0, 1000, 2000) for number in range(300)]
    for base in (0, 1000, 2000):
        mine = [number for number in seen if base <= number < base + 1000]
        assert mine == sorted(mine)


def test_everything_on_disk_is_listed_from_a_time_on(tmp_path: Path) -> None:
    path = tmp_path / FEED
    append(path, 1, 2)
    rotate(path, 1)
    append(path, 3, 4)
    assert [event.data["call"] for event in iter_events(tmp_path)] == [1, 2, 3, 4]
    assert [event.data["call"] for event in iter_events(tmp_path, since=2.5)] == [3, 4]
    assert list(iter_events(tmp_path / "nobody")) == []


def test_a_turn_is_found_by_its_id(tmp_path: Path) -> None:
    turn = "20261129_120541_458a22:20261129_120541_458a22:a7cb0b9b"
    assert read_turn(tmp_path, turn) is None
    name = "20261129_120541_458a22_20261129_120541_458a22_a7cb0b9b.json"
    save_turn(tmp_path / "turns" / name, {"turn": turn}, user="u", answer="a")
    found = read_turn(tmp_path, turn)
    assert found is not None and (found["turn"], found["answer"]) == (turn, "a")
    assert read_turn(tmp_path, "../../etc/passwd") is None
