"""The conversation of a worker, from its event feed and turn files alone: no database, no process is asked.

So it reads the same while the worker runs, after it was stopped or killed, and in an archive.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UnknownWorker, UsageError
from orchestrator.fleet.transcript import Now, Record, Step, StepKind, Turn, TurnState
from orchestrator.store.files import BadFile, read_json
from orchestrator.store.paths import FleetPaths, WorkerPaths

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet

LIVE = ("starting", "up", "stopping")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who sent what began a turn: the message's id and its sender."""

    message: str = ""
    sender: str = ""
    """cli, api, spawn, nudge …; "hermes" where Hermes began it itself; "" = typed, or no longer known."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The turns of a worker, oldest first; the words of each are read when its document is asked for."""

    worker: str
    fleet: str
    archive: str
    """The folder that it was read from when the worker is no more, else ""."""
    turns: list[Turn]
    first: int
    """The number of the first of `turns`, counted from the oldest turn that is on record."""
    paths: WorkerPaths
    origins: Mapping[str, Origin]

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield each turn as `transcript --json` has it; one at a time is in memory."""
        for place, turn in enumerate(self.turns):
            yield self.document(turn, self.first + place)

    def document(self, turn: Turn, number: int) -> dict[str, Any]:
        """Return one turn with its words."""
        words = _words(self.paths, turn.id)
        origin = self.origins.get(turn.id, Origin(sender=_own(str(words.get("user") or turn.user))))
        answer, user = words.get("answer"), words.get("user")
        whole_answer = words.get("done", True) and answer is not None
        return {
            "number": number,
            "turn": turn.id,
            "session": turn.session,
            "attempt": turn.attempt,
            "background": turn.background,
            "began": turn.began,
            "time": turn.ended or turn.began,
            "ended": turn.ended,
            "state": str(turn.state or TurnState.UNKNOWN),
            "error": _error(turn),
            "message": origin.message,
            "sender": origin.sender,
            "user": str(user if user is not None else turn.user),
            "user_cut": bool(words.get("user_cut")) or user is None,
            "answer": str(answer if whole_answer else turn.answer),
            "answer_cut": bool(words.get("answer_cut")) or (not whole_answer and bool(turn.answer)),
            "model": turn.model,
            "calls": turn.calls,
            "tokens": {"in": turn.tokens_in, "out": turn.tokens_out},
            "tools": [step.text for step in turn.steps if step.kind is StepKind.TOOL],
            "steps": [_step(step) for step in turn.steps],
            "steps_left_out": turn.left_out,
        }


def read_transcript(fleet: Fleet, name: str, *, last: int = 0, archive: str = "") -> Transcript:
    """Return the conversation of a worker, or its `last` turns; `archive` names the folder that `rm` left.

    Raises UnknownWorker, which names the archive of a worker that was removed, and UsageError.
    """
    if archive:
        paths, now = WorkerPaths(_archived(fleet.paths, archive)), Now()
    else:
        try:
            worker = fleet.worker(name)
        except UnknownWorker as error:
            raise _removed(fleet.paths, name) or error from None
        name, paths, now = worker.name, worker.paths, _now(worker.state())
    turns, first = _turns(paths, now, last)
    shown = str(paths.dir) if archive else ""
    origins = _origins(paths, {turn.id for turn in turns})
    return Transcript(name, fleet.name, shown, turns, first, paths, origins)


def _turns(paths: WorkerPaths, now: Now, last: int) -> tuple[list[Turn], int]:
    from orchestrator.hermes.feed import iter_events

    record = Record(keep=last)
    for event in iter_events(paths.dir):
        record.add(event)
    turns = record.turns(now)
    older = _before(paths, record.known)
    known = record.began + len(older)
    turns = sorted([*older, *turns], key=lambda turn: turn.began)
    if last > 0:
        turns = turns[-last:]
    return turns, known - len(turns) + 1


def _now(worker: Mapping[str, Any]) -> Now:
    ended = worker.get("last_turn") or {}
    return Now(
        attempt=int(worker.get("attempt") or 0),
        alive=worker.get("phase") in LIVE and _runs(int(worker.get("pid") or 0)),
        running=str(worker.get("turn") or ""),
        last=str(ended.get("turn") or ""),
        outcome=str(ended.get("outcome") or ""),
    )


def _runs(pid: int) -> bool:
    """Whether a process has this pid; after a reboot the picture still says that the worker is up."""
    from orchestrator.terminal.process import Process

    return not pid or Process.of(pid) is not None


def _before(paths: WorkerPaths, known: set[str]) -> list[Turn]:
    """Return the turns whose events were rotated away, from their files."""
    from orchestrator.hermes.plugin.text import file_safe

    seen = {file_safe(turn) for turn in known}
    found = []
    for path in _listed(paths.turns):
        if path.name in seen:
            continue
        with suppress(BadFile, TypeError, ValueError):
            turn = _from_file(read_json(path) or {})
            if turn is not None:
                found.append(turn)
    return found


def _from_file(words: Mapping[str, Any]) -> Turn | None:
    if not words.get("turn") or words.get("platform", "cli") != "cli":
        return None
    ended, session = float(words.get("time") or 0.0), str(words.get("session") or "")
    began = float(words.get("began") or ended)
    turn = Turn(str(words["turn"]), began, int(words.get("attempt") or 0), session, session.startswith("bg_"))
    if words.get("done", True):
        turn.ended, turn.state = ended, TurnState.OK
    else:
        turn.state = TurnState.UNKNOWN
    turn.steps = [Step(StepKind.TOOL, began, str(tool)) for tool in words.get("tools") or ()]
    return turn


def _words(paths: WorkerPaths, turn: str) -> dict[str, Any]:
    from orchestrator.hermes.feed import read_turn

    return read_turn(paths.dir, turn) or {}


def _error(turn: Turn) -> str:
    if turn.state is not TurnState.FAILED:
        return ""
    errors = [step.text for step in turn.steps if step.kind is StepKind.ERROR]
    return errors[-1] if errors else ""


def _step(step: Step) -> dict[str, Any]:
    return {
        "kind": str(step.kind),
        "time": step.time,
        "text": step.text,
        "detail": step.detail,
        "choices": list(step.choices),
        "outcome": step.outcome,
        "result": step.result,
        "seconds": None if step.seconds is None else round(step.seconds, 3),
    }


def _own(user: str) -> str:
    """Return "hermes" for a turn that Hermes began itself: its children's results, a signal (0.19)."""
    return "hermes" if user.startswith(("[ASYNC DELEGATION", "received signal ")) else ""


def _origins(paths: WorkerPaths, turns: set[str]) -> dict[str, Origin]:
    """Return who began each turn, as the receipts of delivered messages tell."""
    found = {}
    for path in _listed(paths.inbox_done):
        with suppress(BadFile):
            message = read_json(path) or {}
            turn = str((message.get("receipt") or {}).get("turn") or "")
            if turn in turns:
                found[turn] = Origin(str(message.get("id") or ""), str(message.get("sender") or ""))
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.name[0] != ".")
    except OSError:
        return []


def archives_of(fleet: FleetPaths, name: str) -> list[Path]:
    """Return the folders that `rm` left of workers of this name, oldest first."""
    try:
        found = [path for path in fleet.archive.iterdir() if path.name.startswith(f"{name}-")]
    except OSError:
        return []
    return sorted(path for path in found if _archive_name(path) == name)


def _archive_name(path: Path) -> str:
    """Return whose archive a folder is: what its spec says, else what its name says."""
    try:
        return str(json.loads((path / "worker" / "spec.json").read_bytes())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return path.name.rsplit("-", 2)[0]


def _removed(fleet: FleetPaths, name: str) -> UnknownWorker | None:
    found = archives_of(fleet, name)
    if not found:
        return None
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found[-1].stat().st_mtime))
    return UnknownWorker(
        f"{name} was removed on {when}; what it said is in {found[-1]}",
        hint=f"hermux transcript {name} --archive {found[-1]}",
    )


def _archived(fleet: FleetPaths, archive: str) -> Path:
    """Return the folder of a removed worker's files in an archive, given by path or by name."""
    given = Path(archive).expanduser()
    for place in (given / "worker", fleet.archive / archive / "worker", given):
        if (place / "events.jsonl").is_file() or (place / "turns").is_dir():
            return place
    raise UsageError(
        f"--archive {archive}: there is no archived conversation there", hint=f"ls {fleet.archive}"
    )
