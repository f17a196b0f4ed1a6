"""`hermux ask`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from orchestrator.api.follow import check_takes
from orchestrator.cli.options import FleetName, Json, Quiet, Timeout, Verbose, open_fleet
from orchestrator.cli.send import MessageFile
from orchestrator.cli.show import out, out_json, talk, talker
from orchestrator.cli.texts import text_and_workers
from orchestrator.errors import UsageError


def ask(
    words: Annotated[
        list[str], typer.Argument(metavar="W TEXT", help="a worker, then the text; `-` reads stdin")
    ],
    file: MessageFile = "",
    timeout: Timeout = None,
    produces: Annotated[
        list[str] | None,
        typer.Option("--produces", metavar="PATH", help="a file that must be written; repeatable"),
    ] = None,
    fleet: FleetName = "",
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Send a message, wait for its answer, and print the answer alone on stdout.

    A turn that delegated is over when its children's answer came. Exit codes: 3 the turn or the worker failed,
    5 a person is needed, 124 timed out, 130 interrupted; message and turn go on in these cases.
    """
    text, names = text_and_workers(words, file)
    if len(names) != 1:
        raise UsageError(
            f"ask takes one worker, not {len(names)}", hint="quote the text: hermux ask W 'TEXT'"
        )
    worker = open_fleet(fleet).worker(names[0])
    check_takes(worker.name, worker.state())
    for warning in worker.warnings(text) if not quiet else ():
        talk(warning)
    sent: list[str] = []
    try:
        answer = worker.ask(
            text, timeout=timeout, produces=produces or (), say=talker(quiet), sender="cli", sent=sent
        )
    except KeyboardInterrupt:
        talk(_left(worker.name, sent))
        return 130
    if json:
        out_json({"schema": 1, **asdict(answer)})
    else:
        out(answer.text)
    if verbose and not json:
        spent = f"{answer.seconds:.1f} s, {answer.tokens_in + answer.tokens_out} tokens"
        talk(f"{answer.message} by {(answer.receipt or {}).get('method')}; turn {answer.turn}; {spent}")
    return 0


def _left(name: str, sent: list[str]) -> str:
    if not sent:
        return "nothing was sent"
    return f"message {sent[0]} stays with {name}: hermux unsend {sent[0]} while it is queued, hermux interrupt {name} later"
