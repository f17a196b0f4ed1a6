"""Chat requests as Hermes makes them, and what an answer holds or lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.doctor.check import Trouble
from orchestrator.health.http import Reply
from orchestrator.health.listing import said

TOOL = "hermux_check"
WORD = "ready"
MAX_TOKENS = 1024
"""Enough for a model that thinks before it answers two words."""
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Reports a word to the doctor.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string", "description": "the word"}},
                "required": ["word"],
            },
        },
    }
]
_PLAY_TOOL = json.dumps({"steps": [{"tools": [{"name": TOOL, "args": {"word": WORD}}]}]})
"""What makes the rehearsal model call the tool; see docs/rehearsal.md."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: `arguments` as the server gave them, a JSON text where it is right."""

    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Said:
    """A well-formed answer."""

    text: str
    calls: tuple[Call, ...] = ()
    tokens: tuple[int, int] | None = None
    """(prompt, answer) as the server counted, None when it did not say."""
    finish: str = ""
    reasoning: str = ""


def chat_body(
    model: str, *, stream: bool = False, tools: bool = False, rehearsal: bool = False
) -> dict[str, Any]:
    """Return the body of a request; streamed ones ask for the usage, as Hermes does."""
    text = f"Answer with the one word: {WORD}"
    if tools:
        text = f'Call the tool {TOOL} once, with the word "{WORD}". Do not write anything else.'
        text += f"\n{_PLAY_TOOL}" if rehearsal else ""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": MAX_TOKENS,
    }
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if tools:
        body["tools"] = _TOOLS
    return body


def read_completion(reply: Reply) -> Said:
    """Return what an unstreamed answer with status 200 says; raises Trouble naming what is wrong with it."""
    content = _content(reply)
    message = _first(content).get("message")
    if not isinstance(message, dict):
        raise Trouble("the answer's first choice has no message", hint=_NOT_CHAT)
    finish = str(_first(content).get("finish_reason") or "")
    return _said(message, message.get("tool_calls"), content.get("usage"), finish)


def read_stream(reply: Reply) -> Said:
    """Return what a streamed answer with status 200 says; raises Trouble naming what is wrong with it."""
    if reply.html or not reply.body.lstrip().startswith((b"data:", b":", b"event:", b"id:")):
        content = _content(reply)
        _first(content)
        raise Trouble(
            "the server does not stream: it answers in one piece, and Hermes reads only streams",
            hint="switch streaming on in the server or gateway",
        )
    text, reasoning, finish, usage = "", "", "", None
    calls: dict[int, dict[str, Any]] = {}
    choices = 0
    for chunk in _events(reply.body):
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            if not isinstance(choice, dict):
                continue
            choices += 1
            delta = choice.get("delta") or {}
            text += _text(delta.get("content"))
            reasoning += _text(delta.get("reasoning_content") or delta.get("reasoning"))
            finish = str(choice.get("finish_reason") or finish)
            _add_calls(calls, delta.get("tool_calls"))
    if not choices:
        raise Trouble("the streamed answer has no choices", hint=_NO_CHOICES)
    message = {"content": text, "reasoning_content": reasoning}
    return _said(message, [calls[index] for index in sorted(calls)], usage, finish)


def _content(reply: Reply) -> dict[str, Any]:
    """Return the body as an object with choices; raises Trouble: HTML, no JSON, an error, no choices."""
    if reply.html:
        raise Trouble(
            "the server answers with a web page (HTML)",
            hint="the URL belongs to a web page or a login, not to an API: hermux endpoint set URL -m MODEL",
        )
    content = reply.json()
    if not isinstance(content, dict):
        start = " ".join(reply.body[:60].decode("utf-8", "replace").split())
        raise Trouble(f"the answer is no JSON object but {start!r}", hint=_NOT_CHAT)
    if content.get("error"):
        raise Trouble(
            f"the server answers 200 with an error in it: {said(reply) or 'it does not say which'}",
            hint="look into the log of the server, or of the gateway in front of it",
        )
    return content


def _first(content: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = content.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Trouble("the answer has no choices", hint=_NO_CHOICES)
    return choices[0]


def _said(message: Mapping[str, Any], calls: Any, usage: Any, finish: str) -> Said:
    made = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            made.append(Call(str(function.get("name") or ""), function.get("arguments")))
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    return Said(_text(message.get("content")), tuple(made), _tokens(usage), finish, reasoning)


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    return counts if all(isinstance(count, int) for count in counts) else None  # type: ignore[return-value]


def _add_calls(calls: dict[int, dict[str, Any]], deltas: Any) -> None:
    """Join the pieces of streamed tool calls."""
    for place, delta in enumerate(deltas if isinstance(deltas, list) else ()):
        function = delta.get("function") if isinstance(delta, dict) else None
        if not isinstance(function, dict):
            continue
        index = delta.get("index")
        known = calls.setdefault(
            index if isinstance(index, int) else place, {"function": {"name": "", "arguments": ""}}
        )
        known["function"]["name"] += str(function.get("name") or "")
        piece = function.get("arguments")
        if isinstance(piece, str) and isinstance(known["function"]["arguments"], str):
            known["function"]["arguments"] += piece
        elif piece is not None:
            known["function"]["arguments"] = piece


def _events(body: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects of a server-sent stream; raises Trouble for an error that stands in it."""
    found = []
    for line in body.decode("utf-8", "replace").splitlines():
        if not line.startswith("data:") or line[5:].strip() in ("", "[DONE]"):
            continue
        try:
            chunk = json.loads(line[5:])
        except ValueError:
            raise Trouble("the stream holds a line that is no JSON", hint=_NOT_CHAT) from None
        if isinstance(chunk, dict):
            if chunk.get("error"):
                told = said(Reply(200, line[5:].encode(), {})) or "it does not say which"
                raise Trouble(f"the stream ends in an error: {told}", hint="look into the server's log")
            found.append(chunk)
    return found


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


_NOT_CHAT = "is the URL that of an OpenAI-compatible chat API? hermux endpoint show"
_NO_CHOICES = "the server or gateway does not speak the chat API, or filtered the answer: look into its log"
