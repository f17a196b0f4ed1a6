"""`hermux transcript`: the conversation of a worker as text, Markdown or JSON, written turn by turn."""

from __future__ import annotations

import json as jsons
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from orchestrator.api.picture import span
from orchestrator.cli.options import FleetName, Json, open_fleet
from orchestrator.cli.show import talk
from orchestrator.errors import UsageError
from orchestrator.fleet.visible import UNSEEN, visible, visible_line

Turn = Mapping[str, Any]
Shown = Callable[[str], str]
MARKS = {"tool": "·", "approval": "⚠", "question": "?", "child": "↳", "error": "!"}
CUT = "[cut: what is kept of it ends here]"
HEADING = 160
"""Characters of an error in a turn's heading; the whole of it is among the steps."""
STATES = {
    "running": "runs now",
    "cut": "cut off: its process died",
    "unknown": "its end was not reported",
}


def transcript(
    worker: Annotated[str, typer.Argument(metavar="W", help="a worker, or a glob that means one")],
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", help="only the last N turns", min=1)
    ] = None,
    md: Annotated[bool, typer.Option("--md", help="as Markdown")] = False,
    archive: Annotated[
        str,
        typer.Option(
            "--archive",
            metavar="DIR",
            help="of a removed worker: the folder that `rm` named",
            show_default=False,
        ),
    ] = "",
    fleet: FleetName = "",
    json: Json = False,
) -> None:
    """Print the conversation of a worker, turn by turn: what was asked, done and answered, and how it ended.

    It is read from what the plugin wrote, so it is there while the worker runs, after it was stopped or
    killed, and, with --archive, after it was removed. The newest 200 turns have their whole words.
    """
    from orchestrator.api.transcript import read_transcript

    if md and json:
        raise UsageError("--md and --json exclude each other")
    found = read_transcript(open_fleet(fleet), worker, last=last or 0, archive=archive)
    turns = found.documents()
    if json:
        head = {"schema": 1, "fleet": found.fleet, "worker": found.worker, "archive": found.archive or None}
        _write(document(head, turns))
        return
    if not found.turns:
        talk(f"{found.worker} has had no turn")
        return
    _write(markdown(found.worker, turns) if md else plain(found.worker, turns))


def _write(parts: Iterator[str]) -> None:
    for part in parts:
        sys.stdout.write(part)


def document(head: Mapping[str, Any], turns: Iterator[Turn]) -> Iterator[str]:
    """Yield the JSON document in parts, so that one turn is in memory; what acts on a terminal is escaped."""
    yield jsons.dumps(head, indent=2)[:-2] + ',\n  "turns": ['
    between = "\n"
    for turn in turns:
        text = jsons.dumps(turn, ensure_ascii=False, indent=2)
        yield between + textwrap.indent(_escaped(text), "    ")
        between = ",\n"
    yield "]\n}\n" if between == "\n" else "\n  ]\n}\n"


def _escaped(text: str) -> str:
    """JSON leaves DEL, C1, reading marks and lone surrogates; inside its strings they may stand as escapes."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def plain(worker: str, turns: Iterator[Turn]) -> Iterator[str]:
    """Yield each turn as text for a terminal. What others wrote is indented, so none of it looks like ours."""
    for turn in turns:
        yield f"── {_heading(turn, visible_line)}\n"
        yield _said("user", _who(turn), turn["user"], turn["user_cut"])
        for step in turn["steps"]:
            yield f"  {MARKS.get(step['kind'], '·')} {_step(step, visible_line)}\n"
        if turn["steps_left_out"]:
            yield f"  · and {turn['steps_left_out']} more\n"
        if turn["answer"]:
            yield _said(worker, "", turn["answer"], turn["answer_cut"])
        yield "\n"


def _said(who: str, note: str, text: str, cut: bool) -> str:
    shown = textwrap.indent(visible(text), "    ", lambda _line: True)
    return f"  {who}{f' ({note})' if note else ''}:\n{shown}\n" + (f"    {CUT}\n" if cut else "")


def markdown(worker: str, turns: Iterator[Turn]) -> Iterator[str]:
    """Yield the conversation as Markdown; what others wrote stands in fences and code that it cannot end."""
    yield f"# {worker}\n"
    for turn in turns:
        yield f"\n## {_heading(turn, code)}\n\n**user**{f' ({_who(turn)})' if _who(turn) else ''}\n\n"
        yield fenced(turn["user"]) + (f"\n{CUT}\n" if turn["user_cut"] else "")
        if turn["steps"]:
            yield "\n"
        for step in turn["steps"]:
            yield f"- {step['kind']} {_step(step, code)}\n"
        if turn["steps_left_out"]:
            yield f"- and {turn['steps_left_out']} more\n"
        if turn["answer"]:
            yield (
                f"\n**{worker}**\n\n" + fenced(turn["answer"]) + (f"\n{CUT}\n" if turn["answer_cut"] else "")
            )


def fenced(text: str) -> str:
    """Return a Markdown code block whose fence is longer than any run of backticks or tildes in the text."""
    shown = visible(text).rstrip("\n")
    fence = "`" * max(3, _longest(shown, "`") + 1)
    return f"{fence}text\n{shown}\n{fence}\n"


def code(text: str) -> str:
    """Return Markdown inline code of one line, whatever backticks are in it; "" for nothing."""
    shown = visible_line(text)
    if not shown:
        return ""
    ticks = "`" * (_longest(shown, "`") + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _longest(text: str, mark: str) -> int:
    return max((len(run) for run in re.findall(f"{mark}+", text)), default=0)


def _heading(turn: Turn, shown: Shown) -> str:
    began, ended = float(turn["began"]), turn["ended"]
    took = f" ({span(float(ended) - began)})" if ended else ""
    state = STATES.get(turn["state"]) or str(turn["state"])
    error = shown(str(turn["error"])[:HEADING])
    facts = [
        f"{turn['number']}  {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(began))}{took}",
        state + (f": {error}" if error else ""),
        "in the background" if turn["background"] else "",
        f"attempt {turn['attempt']}" if turn["attempt"] > 1 else "",
    ]
    return "  ".join(filter(None, facts))


def _who(turn: Turn) -> str:
    return " ".join(filter(None, [turn["sender"], turn["message"]]))


def _step(step: Turn, shown: Shown) -> str:
    """Return one step on a line; `shown` makes foreign text fit for where it stands."""
    text, detail, result = (shown(str(step[key])) for key in ("text", "detail", "result"))
    choices = f"[{', '.join(shown(str(choice)) for choice in step['choices'])}]" if step["choices"] else ""
    took = f"{step['seconds']:.1f} s" if step["seconds"] is not None else ""
    outcome = visible_line(str(step["outcome"]))
    match step["kind"]:
        case "question":
            end = f"→ {result}" if outcome else "→ not answered"
            parts = [text, choices, end, took if outcome else ""]
        case "approval":
            parts = [
                text,
                f"({detail})" if detail else "",
                f"→ {outcome}" if outcome else "→ not answered",
                took,
            ]
        case "error":
            parts = [text, detail]
        case _:
            parts = [text, detail, outcome or "no end", took, f"→ {result}" if result else ""]
    return "  ".join(filter(None, parts))
