"""Scripts for the rehearsal model, and what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.e2e.sandbox import Sandbox

Request = Mapping[str, Any]


def script(*steps: Mapping[str, Any], say: str = "") -> str:
    """Return a message that scripts its turn, a step a model call; `say` comes before it."""
    return f"{say} {json.dumps({'steps': list(steps)}, ensure_ascii=False)}".strip()


def tool(tool_name: str, **args: Any) -> dict[str, Any]:
    """Return a step that calls one tool."""
    return {"tools": [{"name": tool_name, "args": args}]}


def shell(command: str, **args: Any) -> dict[str, Any]:
    """Return a step that runs a command in the worker's terminal tool."""
    return tool("terminal", command=command, **args)


def said(text: str) -> dict[str, Any]:
    """Return a step that answers."""
    return {"text": text}


def user_texts(messages: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the user messages of a request."""
    found = []
    for message in messages:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, list):
            content = "\n".join(part.get("text", "") for part in content)
        found.append(content or "")
    return found


def conversation(box: Sandbox, mark: str) -> list[str]:
    """Return the user messages of the newest request to the rehearsal model that holds `mark` in one."""
    for request in reversed(box.rehearsal("requests?newest=1")["requests"]):
        texts = user_texts(request["messages"])
        if any(mark in text for text in texts):
            return texts
    return []
