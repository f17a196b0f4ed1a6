"""Lines of a file that grows and is rotated while it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.api.lines import lines
from orchestrator.store.journal import Journal


def _numbers(path: Path, **how: Any) -> Iterator[int]:
    return (line["n"] for line in lines(path, clock="time", keep=lambda line: "n" in line, **how))


def _write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        for n in numbers:
            file.write(json.dumps({"time": float(n), "n": n}) + "\n")


def test_what_comes_while_the_history_is_read_comes_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, *range(2000))
    found = _numbers(path, follow=True)
    first = list(islice(found, 10))
    _write(path, 2000, 2001)
    rest = list(islice(found, 1992))
    assert first + rest == list(range(2002))


def test_a_rotation_while_the_history_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", max_bytes=4000)
    for n in range(60):
        journal.write(n=n)
    found = _numbers(journal.path, follow=True)
    got = [next(found)]
    for n in range(60, 100):
        journal.write(n=n)
    assert journal.path.with_name("journal.1.jsonl").exists()
    got += islice(found, 99 - got[0])
    assert got == list(range(got[0], 100))


def test_a_torn_last_line_comes_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, 1)
    with path.open("a") as file:
        file.write('{"time": 2.0, ')
    assert list(_numbers(path)) == [1]
    found = _numbers(path, follow=True)
    assert next(found) == 1
    with path.open("a") as file:
        file.write('"n": 2}\nrubbish\n')
    _write(path, 3)
    assert list(islice(found, 2)) == [2, 3]


def test_tail_and_since_are_about_what_is_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, *range(10))
    assert list(_numbers(path, tail=2)) == [8, 9]
    assert list(_numbers(path, since=7.0)) == [7, 8, 9]
    assert list(_numbers(tmp_path / "none.jsonl")) == []
    found = _numbers(path, tail=1, follow=True)
    assert next(found) == 9
    _write(path, 10)
    assert next(found) == 10
