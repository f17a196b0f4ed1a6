"""What the rehearsal model says next: a pure function of the request's messages.

A script is a JSON object `{"steps": [step, …]}` anywhere in the last user message; the last one wins.
A step is one model call; the call's index is the number of assistant messages since that user message.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

DONE = "[rehearsal] done"
"""Said when a script has no further step."""
QUOTED = 60
"""Characters of a plain prompt that the answer quotes."""
MALFORMED = ("nochoices", "notjson", "drop", "midstream_drop", "hang")
HERMES_SAYS = ("[System:", "[ASYNC DELEGATION", "[IMPORTANT:")
"""Openings of user messages that Hermes 0.19.0 writes itself within or after a turn
(agent/conversation_loop.py, tools/process_registry.py). They go on with the script of the person's last
message; the scripts that they quote (a child's goal) were meant for somebody else."""

KEY = re.compile(r'"steps"\s*:\s*\[')
TRIED = 16
"""Places that are looked at for a script."""

Message = Mapping[str, Any]


class ScriptError(ValueError):
    """A script or a fault that cannot be played; the text says which field and why."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for; `args` is the JSON text that goes out, verbatim."""

    name: str
    args: str


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the model, or one way to fail."""

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    delay: float = 0.0
    """Seconds before the first byte."""
    status: int = 0
    """HTTP status of an error answer; 0 = none."""
    error: str = ""
    """Message of that error answer."""
    retry_after: float | None = None
    """Seconds, sent as `Retry-After` with `status`."""
    malformed: str = ""
    """One of MALFORMED; "" = well-formed."""

    @property
    def fails(self) -> bool:
        """Whether the client gets no complete answer."""
        return bool(self.status or self.malformed)


STEP_FIELDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "tools": list,
    "reasoning": str,
    "delay": (int, float),
    "status": int,
    "error": str,
    "retry_after": (int, float),
    "malformed": str,
}


def checked(data: object, fields: Mapping[str, type | tuple[type, ...]], what: str) -> dict[str, Any]:
    """Return `data` if it is an object with only these fields, of these types; raise ScriptError."""
    if not isinstance(data, dict):
        raise ScriptError(f"{what} is no object")
    for name, value in data.items():
        if name not in fields:
            raise ScriptError(f"{what}: unknown field {name!r}, known are {', '.join(fields)}")
        if not isinstance(value, fields[name]):
            raise ScriptError(f"{what}: {name} is a {type(value).__name__}")
    if data.get("malformed", "") not in ("", *MALFORMED):
        raise ScriptError(f"{what}: malformed is one of {', '.join(MALFORMED)}")
    if not 0 <= data.get("status", 0) <= 599 or 0 < data.get("status", 0) < 200:
        raise ScriptError(f"{what}: status is 200 to 599")
    return data


def parse_tool(data: object, what: str) -> ToolCall:
    """Read `{"name": …, "args": {…}}`; a string as `args` goes out as it is (to rehearse bad JSON)."""
    fields = checked(data, {"name": str, "args": (dict, str)}, what)
    if not fields.get("name"):
        raise ScriptError(f"{what}: name is missing")
    args = fields.get("args", {})
    return ToolCall(fields["name"], args if isinstance(args, str) else json.dumps(args, ensure_ascii=False))


def parse_step(data: object, what: str) -> Step:
    """Read one step; raise ScriptError."""
    fields = dict(checked(data, STEP_FIELDS, what))
    tools = fields.pop("tools", [])
    return Step(
        **fields, tools=tuple(parse_tool(tool, f"{what}, tool {n}") for n, tool in enumerate(tools, 1))
    )


def find_script(text: str) -> list[Any] | None:
    """Return the steps of the last script object in `text`, unread, or None.

    Looks at the last TRIED `"steps": [` and the TRIED braces in front of each, outermost first: a failed
    attempt costs time in proportion to the text (json counts lines for its error), and texts have 1 MB.
    """
    found, end = None, 0
    for key in deque(KEY.finditer(text), maxlen=TRIED):
        if key.start() < end:
            continue
        for at in _braces(text, end, key.start()):
            value, stop = _decode(text, at)
            if stop > key.start() and isinstance(value.get("steps"), list):
                found, end = value["steps"], stop
                break
    return found


def _braces(text: str, start: int, stop: int) -> list[int]:
    """Return where the last TRIED `{` of `text[start:stop]` are, in order."""
    found: list[int] = []
    while len(found) < TRIED and (stop := text.rfind("{", start, stop)) >= 0:
        found.insert(0, stop)
    return found


def _decode(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Return the JSON object at `text[at]` and where it ends; ({}, 0) if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return {}, 0


def text_of(message: Message) -> str:
    """Return a message's text, whether its content is a string, a list of parts or absent."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def users(messages: Sequence[Message]) -> Iterator[tuple[int, str]]:
    """Yield (index, text) of the user messages, newest first."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user":
            yield index, text_of(messages[index])


def last_user_text(messages: Sequence[Message]) -> str:
    """Return the text of the newest user message, "" if there is none."""
    return next((text for _, text in users(messages)), "")


def persons_message(messages: Sequence[Message], *, fresh: str | None = None) -> tuple[int, str]:
    """Return (index, text) of the newest user message that Hermes did not write itself, else of the oldest."""
    found = (0, "")
    for number, (index, text) in enumerate(users(messages)):
        found = (index, fresh if fresh is not None and number == 0 else text)
        if not found[1].startswith(HERMES_SAYS):
            break
    return found


def plain_answer(prompt: str) -> str:
    """Return the answer to a prompt without a script: it says that it is a rehearsal."""
    flat = " ".join(prompt.split())
    quote = flat if len(flat) <= QUOTED else flat[: QUOTED - 1] + "…"
    return f"[rehearsal] This is hermux's scripted rehearsal model, not a real one. You said: {quote}"


def plan(messages: Sequence[Message], *, fresh: str | None = None) -> Step:
    """Return what to answer. `fresh` is the part of the last user message that is new.

    (Hermes merges a message that got no answer with the next one; see unanswered.py.)
    A script that cannot be played gets an answer that says why.
    """
    index, said = persons_message(messages, fresh=fresh)
    steps = find_script(said)
    if steps is None:
        return Step(text=plain_answer(said))
    return play(steps, sum(message.get("role") == "assistant" for message in messages[index:]))


def play(steps: Sequence[object], call: int) -> Step:
    """Return step number `call`; DONE beyond the last, and what is wrong with a script that is wrong."""
    try:
        read = [parse_step(step, f"step {n}") for n, step in enumerate(steps, 1)]
    except ScriptError as error:
        return Step(text=f"[rehearsal] The object with steps in the message is no script of mine: {error}")
    if call >= len(read):
        return Step(text=DONE)
    step = read[call]
    # Hermes asks again and again for an answer that has neither text nor tools.
    return step if step.text or step.tools or step.fails else replace(step, text=DONE)
