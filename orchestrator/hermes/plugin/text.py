"""Short, clean, secret-free text: everything that is written goes through here."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

REDACTED = "[redacted]"
SUMMARY_KEYS = ("command", "path", "file_path", "query", "pattern", "url", "goal", "question", "code", "name")
"""Tool arguments that say best what a call does, in this order; else its JSON."""
RESULT_KEYS = ("error", "user_response", "output", "content", "summary", "message", "result")
"""Fields of a tool's result that say best what came of it, in this order; else its JSON."""
LARGEST_RESULT = 1 << 20
"""Characters; a larger result is not parsed, its beginning stands for it."""


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without any of the `secrets`."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return text


def one_line(text: str, limit: int) -> str:
    """Return at most `limit` characters on one line, blanks run together."""
    short = " ".join(text[: limit * 4].split())
    return short if len(short) <= limit and len(text) <= limit * 4 else short[: limit - 1] + "…"


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters, lines kept."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def sha256(text: str) -> str:
    """Return the digest that receipts compare; a lone surrogate (not UTF-8) counts as "?"."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def plain(content: Any) -> str:
    """Return the text of a message: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)


def summarise(arguments: Any) -> str:
    """Return what a tool call does, from its arguments; not cut yet."""
    if not isinstance(arguments, Mapping):
        return plain(arguments)
    for key in SUMMARY_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return value
    tasks = arguments.get("tasks")
    if isinstance(tasks, list):
        return f"{len(tasks)} tasks"
    return json.dumps(arguments, ensure_ascii=False, default=str) if arguments else ""


def outcome(result: Any) -> str:
    """Return what a tool gave back, as text; not cut yet. Hermes hands over JSON as a string (0.19.0).

    Of an object the fields that say most; "" where it gave nothing back.
    """
    text = plain(result)
    if not text.startswith("{") or len(text) > LARGEST_RESULT:
        return text
    try:
        fields = json.loads(text)
    except ValueError:
        return text
    answers = fields.get("responses")  # clarify of 0.22
    if isinstance(answers, list) and all(isinstance(each, Mapping) for each in answers):
        return "; ".join(plain(each.get("user_response")) for each in answers)
    said = [plain(fields[key]).strip() for key in RESULT_KEYS if fields.get(key) not in (None, "", [], {})]
    code = fields.get("exit_code")
    if not isinstance(code, int):
        return said[0] if said else text
    return (f"exit {code}: " if code else "") + said[0] if said else f"exit {code}, no output"


def file_safe(turn: str) -> str:
    """Return the name of a turn's file, without a folder: letters, digits, `-`, `_` and `.`."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", turn)[:160]
    return (safe or "no-turn") + ".json"
