"""Taking a lock over: from one that ends when asked, one that does not, and one that is not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.api import supervisor
from orchestrator.errors import SupervisorDown
from orchestrator.store.lock import FileLock
from orchestrator.supervise.takeover import take_over

HOLD = (
    "import signal,sys,time; from pathlib import Path; from orchestrator.store.lock import FileLock\n"
    "if sys.argv[2] == 'deaf': signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "FileLock(Path(sys.argv[1])).try_acquire(); print('held', flush=True); time.sleep(60)"
)


@contextmanager
def holder(path: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), how], stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert child.stdout is not None and child.stdout.readline() == b"held\n"
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.parametrize(("how", "number"), [("asked", -15), ("deaf", -9)])
def test_the_holder_ends_and_the_lock_is_ours(tmp_path: Path, how: str, number: int) -> None:
    path = tmp_path / "lock"
    with holder(path, how) as child:
        lock = FileLock(path)
        assert take_over(lock, patience=0.3 if how == "deaf" else 10.0)
        assert lock.held
        assert child.wait(10) == number
        lock.release()


def test_nobody_is_signalled_for_a_file_that_nobody_holds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(tmp_path / "other", "asked") as child:
        path.write_text(f'{{"pid": {child.pid}, "version": "0.0.0"}}')
        lock = FileLock(path)
        assert take_over(lock)
        assert child.poll() is None
        lock.release()


def test_another_version_is_met_with_what_to_type() -> None:
    assert supervisor.other_version(None) == ""
    assert supervisor.other_version({"pid": 1, "version": ""}) == "", "it has not signed yet"
    with pytest.raises(SupervisorDown, match=r"pid 7.*0\.0\.0") as refused:
        supervisor.check_version({"pid": 7, "version": "0.0.0"})
    assert "hermux supervise --replace" in refused.value.hint
