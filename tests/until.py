"""Waiting in tests: until something is so, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(predicate: Callable[[], T], timeout: float = 10.0, *, every: float = 0.02, what: str = "") -> T:
    """Return the first true value of `predicate()`.

    Asked every `every` seconds; after `timeout` seconds an AssertionError names `what` (or the
    predicate) and the last value seen. Exceptions of the predicate pass through.
    """
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            name = what or getattr(predicate, "__qualname__", repr(predicate))
            raise AssertionError(f"not so within {timeout:g} s: {name}; last value: {value!r}")
        time.sleep(every)
