"""What the rehearsal model was asked: the newest requests, for tests and for a log file."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from orchestrator.rehearsal.script import text_of, users

KEPT = 2000
"""Requests that are remembered."""
SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Request:
    """One chat request. Messages are whole; equal messages of several requests are one object."""

    number: int
    """1, 2, 3 … since the start or the last reset."""
    time: float
    """Unix seconds."""
    conversation: str
    """The same for the requests of one conversation: a digest of its system prompt and of the first
    paragraph of its first message (what Hermes merges into that message later comes behind it)."""
    model: str
    stream: bool
    messages: tuple[dict[str, Any], ...]
    tools: tuple[str, ...]
    """Names of the tools that were offered."""
    headers: Mapping[str, str]
    """Lower-case names; of a secret only its length and a digest of it."""


def hidden(name: str, value: str) -> str:
    """Return a header's value, or `12 characters, sha256 0123456789ab` (without `Bearer `) for a secret."""
    if name not in SECRET_HEADERS:
        return value
    secret = value.removeprefix("Bearer ")
    digest = hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{len(secret)} characters, sha256 {digest}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _conversation(messages: Sequence[dict[str, Any]]) -> str:
    system = [text_of(message) for message in messages if message.get("role") == "system"]
    first = next((text_of(message) for message in messages if message.get("role") == "user"), "")
    return _digest([system, first.partition("\n\n")[0]])[:12]


class Record:
    """The newest KEPT requests and, if `log` is given, all of them as JSON lines. Safe for threads."""

    def __init__(self, log: Path | None = None) -> None:
        self._kept: deque[Request] = deque(maxlen=KEPT)
        self._shared: dict[str, dict[str, Any]] = {}
        self._count = 0
        self._log = log
        self._lock = Lock()

    def add(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Request:
        """Note a request; `body` is its decoded JSON."""
        names = (tool.get("function", {}).get("name", "") for tool in body.get("tools") or ())
        with self._lock:
            self._count += 1
            request = Request(
                number=self._count,
                time=time.time(),
                conversation=_conversation(body["messages"]),
                model=str(body.get("model", "")),
                stream=bool(body.get("stream")),
                messages=tuple(self._share(message) for message in body["messages"]),
                tools=tuple(names),
                headers={name.lower(): hidden(name.lower(), value) for name, value in headers.items()},
            )
            self._kept.append(request)
            self._write(request)
        return request

    def _share(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the object kept for an equal message: a conversation's requests repeat all before."""
        if len(self._shared) > 20 * KEPT:
            self._shared = {_digest(m): m for request in self._kept for m in request.messages}
        return self._shared.setdefault(_digest(message), message)

    def _write(self, request: Request) -> None:
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(request)) + "\n")

    def since(self, number: int = 0, *, newest: bool = False) -> list[Request]:
        """Return the requests after `number`, oldest first; `newest`: only the last of each conversation."""
        with self._lock:
            found = [request for request in self._kept if request.number > number]
        if newest:
            found = sorted({r.conversation: r for r in found}.values(), key=lambda r: r.number)
        return found

    def clear(self) -> None:
        """Forget all requests and count from 1 again; the log file is left alone."""
        with self._lock:
            self._kept.clear()
            self._shared.clear()
            self._count = 0


def occurrences(request: Request, text: str) -> int:
    """Return in how many user messages of `request` the text stands."""
    return sum(text in said for _, said in users(request.messages))
