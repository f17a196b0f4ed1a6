"""How a worker's last attempt ended: its last screen, and what was reported and done before its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import NotReady

if TYPE_CHECKING:
    from orchestrator.api.worker import Worker

LIVE = ("starting", "up", "stopping")


@dataclass(frozen=True, slots=True)
class Ending:
    """The newest attempt that is over. Times are seconds since the epoch."""

    worker: str
    attempt: int
    newest: int
    """The newest attempt of the worker, which may run."""
    how: str
    """In words: `exit 0`, `killed by signal 9 (SIGKILL)`, why it could not be started, or `unknown`."""
    code: int | None
    signal: int | None
    began: float | None
    ended: float | None
    screen: list[str] | None
    """The rows of its last screen, blank ones at the end left out; None when none was kept."""
    screen_file: str
    events: list[dict[str, Any]]
    journal: list[dict[str, Any]]


def previous(worker: Worker, *, tail: int) -> Ending:
    """Return how the newest attempt that is over ended, with at most `tail` events and journal lines.

    Raises NotReady when none has ended.
    """
    state = worker.state()
    numbers = sorted(int(each.name) for each in worker.paths.attempts.glob("*") if each.name.isdigit())
    runs = int(state.get("attempt") or 0) if state.get("phase") in LIVE else 0
    over = [n for n in numbers if n != runs or (worker.paths.attempt(n) / "exit.json").exists()]
    if not over:
        raise NotReady(
            f"{worker.name} has had no attempt that ended",
            hint=f"hermux logs {worker.name}  has what was done so far",
        )
    return _ending(worker, over[-1], max(numbers), tail)


def _ending(worker: Worker, attempt: int, newest: int, tail: int) -> Ending:
    from orchestrator.hermes.launch import read_exit

    folder = worker.paths.attempt(attempt)
    end = read_exit(folder)
    events = _last((each for each in worker.events() if each.get("attempt") == attempt), tail)
    journal = _last(_journal(worker, attempt), tail)
    times = [_time(folder / "exit.json"), _time(folder / "screen.txt"), *_times(journal[-1:], "time")]
    screen = _screen(folder / "screen.txt")
    return Ending(
        worker=worker.name,
        attempt=attempt,
        newest=newest,
        how=_how(end.code, end.signal, end.why) if end else "unknown: no exit.json was written",
        code=end.code if end else None,
        signal=end.signal if end else None,
        began=_time(folder / "pid"),
        ended=next((each for each in times if each is not None), None),
        screen=screen,
        screen_file=str(folder / "screen.txt") if screen is not None else "",
        events=events,
        journal=journal,
    )


def _journal(worker: Worker, attempt: int) -> Iterable[dict[str, Any]]:
    """Yield the lines about an attempt, up to the one that says how it ended."""
    for line in worker.log():
        if line.get("attempt") == attempt:
            yield line


def _last(lines: Iterable[dict[str, Any]], tail: int) -> list[dict[str, Any]]:
    return list(deque(lines, maxlen=tail))


def _times(lines: list[dict[str, Any]], key: str) -> list[float]:
    return [float(line[key]) for line in lines if isinstance(line.get(key), int | float)]


def _time(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _screen(path: Path) -> list[str] | None:
    try:
        return path.read_text(errors="replace").rstrip().split("\n")
    except OSError:
        return None


def _how(code: int | None, number: int | None, why: str) -> str:
    import signal

    if why:
        return why
    if number is None:
        return f"exit {code}"
    try:
        return f"killed by signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"killed by signal {number}"
