"""`hermux why`: everything that explains the state of one worker, and what to type next."""

from __future__ import annotations

import time
from typing import Any

from orchestrator.api import Worker
from orchestrator.api.follow import answers
from orchestrator.api.picture import OWN, Picture, seconds_left, span
from orchestrator.cli.listing import REHEARSAL_NOTICE, state, switched, where
from orchestrator.cli.options import FleetName, Json, WorkerName, open_fleet
from orchestrator.cli.show import one_line, out, out_json, runnable


def why(worker: WorkerName, fleet: FleetName = "", json: Json = False) -> None:
    """Say why a worker is in its state, what it waits for, what was decided, and what to type next."""
    opened = open_fleet(fleet)
    one = opened.worker(worker)
    picture = opened.picture()
    entry = picture.workers[one.name]
    messages = one.messages()
    advice = [runnable(step, opened.name) for step in next_steps(one.name, entry, messages, picture)]
    if json:
        shown = {key: value for key, value in entry.items() if key not in OWN}
        out_json(
            {
                "schema": 1,
                "name": one.name,
                **shown,
                "warning": picture.warning,
                "messages": messages,
                "next": advice,
            }
        )
        return
    out("\n".join([*_head(one, entry, picture), *_decided(entry), *_queue(messages), *_advice(advice)]))


def next_steps(
    name: str, worker: dict[str, Any], messages: list[dict[str, Any]], picture: Picture
) -> list[str]:
    """Return the commands that lead on from here, the most useful first."""
    if picture.warning and picture.supervisor is None:
        return [f"hermux start {name}"]
    word, phase = worker.get("word"), worker.get("phase")
    if phase == "held" or word == "held":
        return [
            f"hermux logs {name} --tail 20",
            f"hermux start {name}",
            f"hermux rm {name}  (after hermux stop {name})",
        ]
    if worker.get("waiting"):
        return answers(name, worker["waiting"])
    if word == "paused":
        return [f"hermux start {name}"]
    if phase == "stopped":
        return [f"hermux start {name}", f"hermux rm {name}"]
    if worker.get("draining"):
        return [f"hermux drain {name}  (waits for it)", f"hermux stop {name}", f"hermux start {name}"]
    if phase in ("starting", "pending", "backoff", "stopping"):
        return [f"hermux peek {name}", f"hermux logs {name} -f"]
    if word == "draft":
        return [f"hermux attach {name}  (send or delete what stands in the prompt)"]
    if word == "failed":
        return [f"hermux peek {name}", f"hermux events {name} --tail 10", f"hermux ask {name} TEXT"]
    if word in ("busy", "background"):
        return [f"hermux wait {name}", f"hermux peek {name}", f"hermux interrupt {name}"]
    if word == "unknown":
        return [f"hermux peek {name}", f"hermux attach {name}"]
    return [f"hermux wait {name}"] if messages else [f"hermux ask {name} TEXT", f"hermux attach {name}"]


def _head(one: Worker, worker: dict[str, Any], picture: Picture) -> list[str]:
    lines = [f"{one.name} is {state(worker)}"]
    facts = {
        "because": one_line(worker.get("why")),
        "does": one_line(worker.get("doing")),
        "stalled": _stalled(worker.get("stalled")),
        "waits for": _waiting(worker.get("waiting")),
        "timed out": _timed_out(worker),
        "last turn": _last_turn(worker.get("last_turn")),
        "takes messages": _intake(worker),
        "wanted": str(worker.get("want", "")),
        "attempt": f"{worker.get('attempt') or 0}, restarted {worker.get('restarts') or 0} times, pid {worker.get('pid') or 'none'}",
        "last end": one_line(worker.get("ended_by")),
        "new talk": _anew(worker.get("anew")),
        "step": _operation(worker.get("operation")),
        "session": str(worker.get("session") or ""),
        "model": _model(worker.get("endpoint") or {}),
        "asks now": switched(worker),
        "fallback": ", then ".join(worker.get("fallback") or ()),
        "files": str(one.paths.dir),
        "picture": picture.warning or f"{picture.age:.1f} s old",
    }
    return [*lines, *(f"  {key + ':':<16}{value}" for key, value in facts.items() if value)]


def _stalled(stalled: dict[str, Any] | None) -> str:
    if not stalled:
        return ""
    return f"nothing has come of it for {span(float(stalled['seconds']))}; {stalled['done']} so far"


def _anew(anew: dict[str, Any] | None) -> str:
    if not anew:
        return ""
    told = (
        "it was told what it was doing" if anew.get("told") else "it has not been told yet what it was doing"
    )
    return f"A NEW CONVERSATION, since {one_line(anew.get('why'))}; {told}"


def _intake(worker: dict[str, Any]) -> str:
    if worker.get("intake") != "paused" or worker.get("operation"):
        return ""
    why = one_line(worker.get("intake_why"))
    return "no" if why == one_line(worker.get("why")) else f"no: {why}"


def _waiting(waiting: dict[str, Any] | None) -> str:
    if not waiting:
        return ""
    choices = "; ".join(
        f"{n}. {one_line(choice)}" for n, choice in enumerate(waiting.get("choices") or (), start=1)
    )
    left = seconds_left(waiting)
    facts = [
        str(waiting.get("kind")),
        str(waiting.get("id") or ""),
        f"{span(left)} left" if left is not None else "",
    ]
    told = ", ".join(filter(None, facts))
    asked = f"a person, for {span(time.time() - float(waiting.get('since') or 0))} ({told})"
    return f"{asked}: {one_line(waiting.get('text'))}" + (f" [{choices}]" if choices else "")


def _timed_out(worker: dict[str, Any]) -> str:
    number = int(worker.get("timed_out") or 0)
    return f"{number} of its dialogs, which nobody answered" if number else ""


def _last_turn(turn: dict[str, Any] | None) -> str:
    if not turn:
        return ""
    ago = span(time.time() - float(turn.get("time") or 0))
    failed = (
        f" ({turn.get('kind') or 'unknown kind'}): {one_line(turn.get('error'))}"
        if turn.get("outcome") == "failed"
        else ""
    )
    return f"{turn.get('outcome')}, {ago} ago{failed}"


def _operation(operation: dict[str, Any] | None) -> str:
    if not operation:
        return ""
    now = time.time()
    left = float(operation.get("deadline") or now) - now
    message = f" of {operation['message']}" if operation.get("message") else ""
    since = span(now - float(operation.get("since") or now))
    return (
        f"{operation.get('kind')}{message}: {operation.get('step')}, for {since}, {max(0.0, left):.0f} s left"
    )


def _model(endpoint: dict[str, Any]) -> str:
    notice = f"; {REHEARSAL_NOTICE}" if endpoint.get("kind") == "rehearsal" else ""
    return f"{where(endpoint)} ({endpoint.get('source') or 'no source noted'}{notice})"


def _decided(worker: dict[str, Any]) -> list[str]:
    lines = [
        f"    {time.strftime('%H:%M:%S', time.localtime(float(each.get('time') or 0)))}  {one_line(each.get('text'))}"
        + (f"  because {one_line(each.get('reason'))}" if each.get("reason") else "")
        + (f"  [{each['witness']}]" if each.get("witness") else "")
        for each in worker.get("decided") or ()
    ]
    return ["  decided:", *lines] if lines else []


def _queue(messages: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"    {each['id']}  {each['place']}  {span(time.time() - float(each['created']))} old  {each['bytes']} bytes: {each['preview']}"
        for each in messages
    ]
    return ["  messages:", *lines] if lines else []


def _advice(advice: list[str]) -> list[str]:
    return ["  next:", *(f"    {line}" for line in advice)]
