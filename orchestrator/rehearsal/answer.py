"""The bodies that an OpenAI-compatible server sends for a step: one object, or a stream of chunks."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.rehearsal.script import Step

MODEL = "hermux-rehearsal"
SAID_WITH = {
    401: "invalid API key",
    402: "insufficient credits",
    404: "the model does not exist",
    413: "request too large",
    429: "rate limit reached",
    500: "internal server error",
    503: "server overloaded",
}
"""Words that servers use with a status; Hermes decides by them too (agent/error_classifier.py)."""
CHARACTERS_PER_TOKEN = 4
"""A rough count: nothing here has a tokeniser."""
CHUNK = 24
"""Characters of text in a streamed chunk; more where the answer is long."""


def models(context: int) -> dict[str, Any]:
    """Return `/v1/models`; `context` in tokens, under both names that Hermes reads."""
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "hermux"}
    return {"object": "list", "data": [model | {"context_length": context, "max_model_len": context}]}


def error(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error answer."""
    said = message or f"rehearsal: {SAID_WITH.get(status, 'failed')}, as scripted"
    return {"error": {"message": said, "type": "rehearsal_error", "param": None, "code": status}}


def usage(request: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """Count the tokens of request and answer, roughly."""
    asked = json.dumps([request.get("messages"), request.get("tools")], ensure_ascii=False)
    said = len(step.text) + len(step.reasoning) + sum(len(tool.name + tool.args) for tool in step.tools)
    prompt, completion = len(asked) // CHARACTERS_PER_TOKEN, max(1, said // CHARACTERS_PER_TOKEN)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "completion_tokens_details": {"reasoning_tokens": len(step.reasoning) // CHARACTERS_PER_TOKEN},
    }


def _envelope(kind: str) -> dict[str, Any]:
    name = f"chatcmpl-{os.urandom(8).hex()}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": MODEL}


def _tool_calls(step: Step) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{os.urandom(8).hex()}",
            "type": "function",
            "function": {"name": tool.name, "arguments": tool.args},
        }
        for tool in step.tools
    ]


def _finish(step: Step) -> str:
    return "tool_calls" if step.tools else "stop"


def completion(request: Mapping[str, Any], step: Step) -> dict[str, Any]:
    """Return the answer as one object; without choices if the step says `nochoices`."""
    body = _envelope("chat.completion")
    if step.malformed == "nochoices":
        return body
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.tools:
        message["tool_calls"] = _tool_calls(step)
    choice = {"index": 0, "message": message, "finish_reason": _finish(step)}
    return body | {"choices": [choice], "usage": usage(request, step)}


def _pieces(text: str) -> Iterator[str]:
    size = max(CHUNK, len(text) // 200)
    return (text[at : at + size] for at in range(0, len(text), size))


def _deltas(step: Step) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in _pieces(step.reasoning):
        yield {"reasoning_content": piece}
    for piece in _pieces(step.text):
        yield {"content": piece}
    for index, call in enumerate(_tool_calls(step)):
        function = call["function"]
        yield {"tool_calls": [call | {"index": index, "function": function | {"arguments": ""}}]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]}


def chunks(request: Mapping[str, Any], step: Step) -> Iterator[dict[str, Any]]:
    """Yield the streamed answer; usage comes last, where `stream_options.include_usage` asks for it."""
    head = _envelope("chat.completion.chunk")
    if step.malformed == "nochoices":
        yield head | {"choices": []}
        return
    for delta in _deltas(step):
        yield head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(step)}]}
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield head | {"choices": [], "usage": usage(request, step)}
