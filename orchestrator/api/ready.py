"""Waiting until workers are as wanted: `spawn`, `start`, `stop` and `wait` look here."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from orchestrator.api.picture import Picture, read_picture, settled
from orchestrator.errors import SupervisorDown, TimedOut, WorkerFailed
from orchestrator.store.paths import FleetPaths

POLL = 0.05
"""Seconds between two looks: a look at an unchanged picture is one stat(2)."""
GONE = 2.0
"""Seconds without a supervisor that are taken for a restart of it."""
READY_LIMIT = 120.0
"""Seconds after which a start is said to be late; boots of 15 to 60 s were seen on loaded machines."""

Say = Callable[[str, str], None]
"""Called with a worker's name and a line of talk."""


def quiet(name: str, text: str) -> None:
    """Say nothing."""


def pictures(
    paths: FleetPaths, *, timeout: float | None, revive: Callable[[], object] | None = None
) -> Iterator[Picture]:
    """Yield the picture every `POLL` seconds, read anew when it may have changed.

    Ends after `timeout` seconds (None = never). When no supervisor has been there for `GONE` seconds,
    `revive` is called, which is to start one; without it, SupervisorDown is raised.
    """
    now = time.monotonic()
    deadline, alive_at, asked_at, last = now + timeout if timeout is not None else None, now, 0.0, None
    picture = read_picture(paths)
    while True:
        now, mark = time.monotonic(), _mark(paths)
        if mark != last or now - asked_at > 1.0 or picture.supervisor is None:
            picture, last, asked_at = read_picture(paths), mark, now
        yield picture
        if picture.supervisor is not None:
            alive_at = now
        elif now - alive_at > GONE:
            if revive is None:
                hint = f"look at {paths.supervisor_log}, then: hermux start '*'"
                raise SupervisorDown("the supervisor has ended", hint=hint)
            revive()
            alive_at = now
        if deadline is not None and time.monotonic() >= deadline:
            return
        time.sleep(POLL)


def wait_ready(
    paths: FleetPaths, names: Sequence[str], *, say: Say = quiet, timeout: float = READY_LIMIT
) -> None:
    """Wait until each worker's prompt stands; `say` hears of each as it comes.

    Raises WorkerFailed when one is held (after the others are ready), TimedOut after `timeout` seconds:
    nothing is undone, and a worker that becomes ready later counts.
    """
    left, failed, pending, told = dict.fromkeys(names), {}, set[str](), set[str]()
    begun = time.monotonic()
    deadline = begun + timeout
    for picture in pictures(paths, timeout=None):
        if _setting_up(picture, left, told, say):
            deadline = time.monotonic() + timeout  # a setup takes as long as it takes
        for name in list(left):
            verdict = _started(picture.workers.get(name))
            if verdict is None:
                waits = _waits_for_memory(picture.workers.get(name))
                if waits and name not in pending:
                    pending.add(name)
                    say(name, waits)
                continue
            del left[name]
            if verdict:
                failed[name] = verdict
            say(name, verdict or _after(time.monotonic() - begun))
        if not left or time.monotonic() >= deadline:
            break
    if failed:
        name = next(iter(failed))
        why = "; ".join(f"{name} {why}" for name, why in failed.items())
        raise WorkerFailed(why, hint=f"hermux why {name}")
    if left:
        raise TimedOut(
            f"not ready after {timeout:g} s: {', '.join(left)}",
            hint=f"it goes on starting: hermux wait {next(iter(left))}",
        )


def wait_stopped(
    paths: FleetPaths, names: Sequence[str], *, word: str = "stopped", say: Say = quiet, timeout: float = 60.0
) -> None:
    """Wait until no process of these workers is left, and they are `word` (stopped, paused).

    Raises TimedOut after `timeout` seconds.
    """
    left = dict.fromkeys(names)
    for picture in pictures(paths, timeout=timeout):
        for name in list(left):
            worker = picture.workers.get(name)
            if worker is None or (settled(worker) and worker.get("word") == word):
                del left[name]
                say(name, word)
        if not left:
            return
    raise TimedOut(
        f"not {word} after {timeout:g} s: {', '.join(left)}",
        hint=f"hermux why {next(iter(left))}, or stop --now",
    )


def runs(worker: dict[str, Any]) -> bool:
    """Whether a worker is wanted and up, or on its way there."""
    going = worker.get("phase") in ("pending", "starting", "up") and worker.get("word") != "held"
    return going and worker.get("want") == "run"


def _started(worker: dict[str, Any] | None) -> str | None:
    """Return "" for ready, the trouble if there is any, None while it may still become ready."""
    if worker is None:
        return "was removed"
    if worker.get("want") != "run":
        return f"is to be {worker.get('want')}"
    if worker.get("phase") == "held" and _newest(worker):
        return f"is held: {worker.get('why') or 'no reason was noted'}"
    return "" if settled(worker) and worker.get("phase") == "up" else None


def _setting_up(picture: Picture, names: Collection[str], told: set[str], say: Say) -> bool:
    """Whether a setup command of one of these workers runs; each is told once."""
    running = [name for name in names if picture.workers.get(name, {}).get("setting_up")]
    for name in running:
        if name not in told:
            told.add(name)
            say(name, f"is being set up: {picture.workers[name].get('why')}; hermux peek {name} shows it")
    return bool(running)


def _waits_for_memory(worker: dict[str, Any] | None) -> str:
    why = str((worker or {}).get("why") or "")
    return f"is pending: {why}" if (worker or {}).get("phase") == "pending" and "memory" in why else ""


def _after(seconds: float) -> str:
    return "is ready" if seconds < 2 * POLL else f"is ready after {seconds:.1f} s"


def _newest(worker: dict[str, Any]) -> bool:
    return int(worker.get("generation") or 0) >= int(worker.get("wanted_generation") or 0)


def _mark(paths: FleetPaths) -> tuple[int, int]:
    marks = []
    for path in (paths.state, paths.desired):
        try:
            marks.append(path.stat().st_mtime_ns)
        except FileNotFoundError:
            marks.append(0)
    return marks[0], marks[1]
