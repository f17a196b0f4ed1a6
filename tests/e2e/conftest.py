"""Fixtures of the end-to-end ring: fleets in fresh homes, on the Hermes that `scripts/test` set up."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.sandbox import HERMUX, Sandbox, report, sandbox


@pytest.fixture(scope="session")
def hermes() -> Path:
    """The real Hermes; its absence is a failure, since nothing in this ring is worth running without it."""
    path = Path(os.environ.get("HERMUX_HERMES", "/nowhere"))
    assert path.is_file(), "HERMUX_HERMES names no Hermes: run this ring through scripts/test"
    assert HERMUX.is_file(), f"hermux is not installed beside {HERMUX.parent}/python"
    return path


@pytest.fixture
def fleet(hermes: Path) -> Iterator[Sandbox]:
    """An empty fleet for one test."""
    with sandbox(hermes) as box:
        yield box


@pytest.fixture(scope="module")
def shared_fleet(hermes: Path) -> Iterator[Sandbox]:
    """An empty fleet for all tests of a module."""
    with sandbox(hermes) as box:
        yield box


@pytest.fixture
def worker(shared_fleet: Sandbox, request: pytest.FixtureRequest) -> str:
    """A ready worker of the module's fleet, for one test and named after it."""
    return shared_fleet.hire(worker_name(request.node.name))


def worker_name(test: str) -> str:
    """Return a test's name as a worker's, which no other test has: `test_stop[--now]` → `stop-now-1f3`."""
    words = re.sub(r"[^a-z0-9]+", "-", test.removeprefix("test_").lower())
    return f"{words[:20].strip('-')}-{sha256(test.encode()).hexdigest()[:3]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the fleet looked like to the report of a failed test, while it still runs."""
    result = yield
    values = [getattr(value, "box", value) for value in getattr(item, "funcargs", {}).values()]
    boxes = [value for value in values if isinstance(value, Sandbox)]
    if result.when == "call" and result.failed and boxes:
        result.sections.append(("fleet", report(boxes[0])))
    return result
