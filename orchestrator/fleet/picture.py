"""What readers are shown: one word for a worker's state, and the worker as it stands in `state.json`."""

from __future__ import annotations

from typing import Any

from orchestrator.fleet.deliver import closed
from orchestrator.fleet.dialog import Dialog
from orchestrator.fleet.memory import plain
from orchestrator.fleet.people import front
from orchestrator.fleet.talk import TurnOutcome
from orchestrator.fleet.worker import DIALOGS, Activity, Phase, PromptKind, Want, Worker


def activity(worker: Worker) -> tuple[Activity, str]:
    """Return what an `up` worker does and the witness: the newer of event and steady screen."""
    glance, talk = worker.glance, worker.talk
    if not talk.plugin:
        return _by_screen(worker), "screen" if glance else "process"
    if glance is not None and worker.steady() and glance.kind is not PromptKind.UNKNOWN:
        seen = _by_screen(worker)
        if not (seen is Activity.READY and talk.busy):
            return seen, "screen" if glance.at > talk.heard + 1.0 else "event"
    if worker.dialogs:
        return Activity.WAITING, "event"
    if talk.busy:
        return Activity.BUSY, "event"
    if talk.children or talk.owed:
        return Activity.BACKGROUND, "event"
    return Activity.READY, "event"


def _by_screen(worker: Worker) -> Activity:
    glance = worker.glance
    if glance is None or glance.kind in (PromptKind.UNKNOWN, PromptKind.GONE):
        return Activity.UNKNOWN
    if glance.kind in DIALOGS:
        return Activity.WAITING
    if glance.kind in (PromptKind.BUSY, PromptKind.COMMAND):
        return Activity.BUSY
    return Activity.BACKGROUND if background(worker) else Activity.READY


def background(worker: Worker) -> int:
    """Return how many children and background tasks run while the prompt is free."""
    shown = worker.glance.background if worker.glance else 0
    return max(shown, len(worker.talk.children), 1 if worker.talk.owed else 0)


def word_of(worker: Worker) -> tuple[str, str]:
    """Return the one word for the worker's state, and its witness."""
    if worker.phase is Phase.STOPPED and worker.want is Want.PAUSED:
        return "paused", "process"
    if worker.phase is not Phase.UP:
        return str(worker.phase), "process" if worker.life is None else "screen"
    doing, witness = activity(worker)
    if worker.pause or worker.flights:
        return "held", "event"
    if doing is not Activity.READY:
        return str(doing), witness
    if worker.draft:
        return "draft", "screen"
    if worker.talk.last is not None and worker.talk.last.outcome is TurnOutcome.FAILED:
        return "failed", "bell" if worker.bell_at >= worker.talk.heard else "screen"
    return "ready", witness


def waiting(worker: Worker) -> Dialog | None:
    """Return the dialog in the pane that waits for a person: as an event told it, or the screen shows it."""
    if worker.phase is not Phase.UP or activity(worker)[0] is not Activity.WAITING:
        return None
    return front(worker)


def shown_dialog(worker: Worker, dialog: Dialog) -> dict[str, Any]:
    """Return a dialog as `state.json` shows it. `deadline` is null where the screen has not told it yet."""
    return {
        "id": f"{worker.name}#{dialog.number}",
        "kind": dialog.kind,
        "text": dialog.text,
        "choices": list(dialog.choices),
        "since": dialog.since,
        "deadline": dialog.deadline or None,
        "in_pane": dialog is front(worker),
    }


def picture(worker: Worker) -> dict[str, Any]:
    """Return the worker as `state.json` shows it; see docs/json.md for the fields."""
    doing = activity(worker)[0] if worker.phase is Phase.UP else ""
    dialog, op, last = waiting(worker), worker.op, worker.talk.last
    shut = closed(worker)
    return {
        "role": worker.spec.role,
        "cwd": worker.spec.cwd,
        "hermes_profile": worker.spec.hermes_profile,
        "endpoint": plain(worker.spec.endpoint),
        "fallback": [each.model for each in worker.spec.fallback],
        "model": worker.talk.model,
        "want": "stopped" if worker.left else str(worker.want),
        "draining": worker.draining and worker.life is not None,
        "generation": worker.generation,
        "phase": str(worker.phase),
        "why": worker.hold or worker.pause or worker.why or shut,
        "activity": str(doing),
        "waiting": shown_dialog(worker, dialog) if dialog else None,
        "dialogs": [shown_dialog(worker, each) for each in worker.dialogs] if worker.life else [],
        "timed_out": worker.timed_out,
        "background": background(worker) if worker.life else 0,
        "last_turn": plain(last) if last else None,
        "stalled": {
            "since": worker.quiet.reported,
            "seconds": round(worker.quiet.seconds),
            "done": ("", "reported", "interrupted", "restarted")[worker.quiet.steps],
        }
        if worker.quiet.steps
        else None,
        "intake": "paused" if shut else "open",
        "intake_why": shut,
        "word": worker.word,
        "witness": worker.witness,
        "since": worker.since,
        "doing": worker.talk.doing,
        "turn": worker.talk.turn,
        "plugin": worker.talk.plugin,
        "setting_up": worker.setting_up,
        "session": worker.session,
        "attempt": worker.attempt,
        "restarts": worker.restarts,
        "ended_by": worker.ended_by,
        "anew": plain(worker.anew) if worker.anew else None,
        "pid": worker.life.pid if worker.life else 0,
        "pane": worker.life.pane if worker.life else "",
        "operation": None
        if op is None
        else {
            "kind": str(op.kind),
            "step": op.step,
            "since": op.since,
            "deadline": op.deadline,
            "message": op.message,
        },
        "tokens": {"in": worker.talk.tokens_in, "out": worker.talk.tokens_out},
        "turns": worker.talk.turns,
        "queued": len(worker.queue),
        "decided": [plain(d) for d in worker.decided],
    }
