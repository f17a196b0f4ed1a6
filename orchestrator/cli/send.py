"""`hermux send`, `unsend`, `interrupt`, `keys`: what is put into a worker's inbox."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orchestrator.api import Fleet, Worker
from orchestrator.cli.options import FleetName, Json, Quiet, Timeout, WorkerName, WorkerNames, open_fleet
from orchestrator.cli.show import out, out_json, talk
from orchestrator.cli.texts import text_and_workers
from orchestrator.errors import HermuxError, UsageError

MessageFile = Annotated[
    str, typer.Option("--file", metavar="F", help="the text is in a file", show_default=False)
]


def send(
    words: Annotated[
        list[str], typer.Argument(metavar="W... TEXT", help="workers, then the text; `-` reads stdin")
    ],
    file: MessageFile = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="wait until it was delivered, and print the receipt")
    ] = False,
    timeout: Timeout = None,
    interrupt: Annotated[bool, typer.Option("--interrupt", help="stop the running turn first")] = False,
    slash: Annotated[
        bool, typer.Option("--slash", help="the text is a command of Hermes, such as /compress")
    ] = False,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Queue a message and print its id; it is delivered when the worker is ready for it.

    A text that starts with `-` comes after `--`. With --wait the receipt is printed: how the text was
    delivered, and the sha256 of what Hermes reports to have taken.
    """
    if timeout is not None and not wait:
        raise UsageError("--timeout goes with --wait")
    text, names = text_and_workers(words, file)
    opened = open_fleet(fleet)
    workers = opened.select(names)
    sent = [
        (worker, _send(worker, text, interrupt=interrupt, slash=slash, quiet=quiet)) for worker in workers
    ]
    opened.ensure_supervisor()
    _report(opened, sent, wait=wait, timeout=timeout, json=json, quiet=quiet)


def unsend(
    message: Annotated[str, typer.Argument(metavar="ID", help="a message id, as `send` printed it")],
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take back a message that still waits; one that is being delivered stays."""
    found = open_fleet(fleet).unsend(message)
    if json:
        out_json({"schema": 1, "messages": [_message(found.data, found.place)]})
    elif not quiet:
        talk(f"{message} for {found.worker} was taken back")


def interrupt(workers: WorkerNames, fleet: FleetName = "", json: Json = False, quiet: Quiet = False) -> None:
    """Stop the running turn of workers; what Hermes has said and done so far stays in the conversation."""
    opened = open_fleet(fleet)
    sent = [(worker, worker.interrupt(sender="cli")) for worker in opened.select(workers)]
    opened.ensure_supervisor()
    _report(opened, sent, wait=False, timeout=None, json=json, quiet=quiet)


def keys(
    worker: WorkerName,
    names: Annotated[
        list[str], typer.Argument(metavar="KEY...", help="tmux key names: Enter, Escape, C-c, Up, y")
    ],
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have keys typed into a worker's terminal, whatever it does: for dialogs that nothing else answers."""
    opened = open_fleet(fleet)
    one = opened.worker(worker)
    sent = [(one, one.keys(names, sender="cli"))]
    opened.ensure_supervisor()
    _report(opened, sent, wait=False, timeout=None, json=json, quiet=quiet)


def _send(worker: Worker, text: str, *, interrupt: bool, slash: bool, quiet: bool) -> str:
    for warning in worker.warnings(text) if not quiet else ():
        talk(warning)
    if interrupt:
        worker.interrupt(sender="cli")
    return worker.send(text, slash=slash, sender="cli")


def _report(
    fleet: Fleet,
    sent: list[tuple[Worker, str]],
    *,
    wait: bool,
    timeout: float | None,
    json: bool,
    quiet: bool,
) -> None:
    found: list[dict[str, Any]] = []
    trouble: HermuxError | None = None
    for worker, message_id in sent:
        if wait:
            try:
                fleet.wait_message(message_id, timeout=timeout)
            except HermuxError as error:
                trouble = trouble or error
        place, data = fleet.message(message_id)
        found.append(_message(data | {"id": message_id, "worker": worker.name}, place))
    if json:
        out_json({"schema": 1, "messages": found})
    else:
        for message in found:
            out(_line(message, quiet))
    if trouble:
        raise trouble


def _message(data: dict[str, Any], place: str) -> dict[str, Any]:
    kept = ("id", "worker", "kind", "created", "sha256", "bytes", "changed", "receipt", "error")
    return {**{key: data.get(key) for key in kept}, "place": place}


def _line(message: dict[str, Any], quiet: bool) -> str:
    if quiet:
        return str(message["id"])
    words = {"new": "queued", "cur": "being delivered", "done": "delivered", "failed": "failed"}
    line = f"{message['id']}  {message['worker']}  {words.get(message['place'], 'queued')}"
    receipt = message.get("receipt")
    if receipt:
        digest, method = str(receipt.get("sha256") or "")[:12], receipt.get("method")
        line += f"  by {method}  sha256 {digest}" if digest else f"  by {method}"
    changed = (receipt or message).get("changed")
    return line + (f"  ({'; '.join(changed)})" if changed else "")
