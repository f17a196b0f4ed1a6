"""What a worker did last, from its event feed and turn files, for a hand-over."""

from __future__ import annotations

from orchestrator.fleet.handover import Past
from orchestrator.fleet.transcript import Now, Record, Step, StepKind, Turn, TurnState
from orchestrator.hermes.feed import iter_events, read_turn
from orchestrator.store.paths import WorkerPaths


def past(paths: WorkerPaths, most: int) -> list[Past]:
    """Return the newest turns of the main conversation, oldest first; the worker's process is dead, or new."""
    record = Record(keep=most)
    for event in iter_events(paths.dir):
        record.add(event)
    turns = [turn for turn in record.turns(Now()) if not turn.background]
    return [_past(paths, turn) for turn in turns[-most:]]


def _past(paths: WorkerPaths, turn: Turn) -> Past:
    words = read_turn(paths.dir, turn.id) or {}
    state = turn.state or TurnState.UNKNOWN
    return Past(
        asked=str(words.get("user") or turn.user),
        answered=str(words.get("answer") or turn.answer),
        state="cut off" if state is TurnState.CUT else str(state),
        steps=tuple(_did(step) for step in turn.steps if step.kind is StepKind.TOOL),
    )


def _did(step: Step) -> str:
    what = f"{step.text}: {step.detail}" if step.detail else step.text
    return f"{what} → {step.outcome}: {step.result}" if step.outcome else f"{what} → not finished"
