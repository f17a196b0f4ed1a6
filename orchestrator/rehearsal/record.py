"""What the rehearsal model was asked: the newest requests, for tests and for a log file."""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from threading import Lock
from typing import Any

from orchestrator.errors import NotReady
from orchestrator.rehearsal.script import text_of

KEPT = 2000
"""Requests that are remembered."""
NOTED = frozenset({"model", "stream", "messages", "tools"})
"""Fields of a body that have a place of their own in `Request`."""
SECRET_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Request:
    """One chat request. Messages are whole; what requests of a conversation repeat is one object."""

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
    options: Mapping[str, Any] = field(default_factory=dict)
    """The request's other fields: `max_tokens`, `temperature` …"""


def hidden(name: str, value: str) -> str:
    """Return a header's value, or `12 characters, sha256 0123456789ab` (without `Bearer `) for a secret."""
    if name not in SECRET_HEADERS:
        return value
    secret = value.removeprefix("Bearer ")
    digest = hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{len(secret)} characters, sha256 {digest}"


def _conversation(messages: Sequence[dict[str, Any]]) -> str:
    system = [text_of(message) for message in messages if message.get("role") == "system"]
    first = next((text_of(message) for message in messages if message.get("role") == "user"), "")
    opening = json.dumps([system, first.partition("\n\n")[0]])
    return hashlib.sha256(opening.encode()).hexdigest()[:12]


def _tool_names(tools: object) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict):
            yield str(function.get("name", ""))


class Record:
    """The newest KEPT requests and, if `log` is given, all of them as JSON lines (mode 0600, without bound).

    Safe for threads. Raises NotReady if the log cannot be written; a line that fails later is left out.
    """

    def __init__(self, log: Path | None = None) -> None:
        self._kept: deque[Request] = deque(maxlen=KEPT)
        self._newest: dict[str, tuple[dict[str, Any], ...]] = {}
        self._count = 0
        self._log = log
        self._lock = Lock()
        try:
            if log:
                log.touch(mode=0o600)
        except OSError as error:
            raise NotReady(f"the log of the rehearsal model cannot be written: {error}") from error

    def add(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Request:
        """Note a request; `body` is its decoded JSON."""
        conversation = _conversation(body["messages"])
        with self._lock:
            self._count += 1
            request = Request(
                number=self._count,
                time=time.time(),
                conversation=conversation,
                model=str(body.get("model", "")),
                stream=bool(body.get("stream")),
                messages=self._share(conversation, body["messages"]),
                tools=tuple(_tool_names(body.get("tools"))),
                headers={name.lower(): hidden(name.lower(), value) for name, value in headers.items()},
                options={name: value for name, value in body.items() if name not in NOTED},
            )
            self._kept.append(request)
            self._write(request)
        return request

    def _share(self, conversation: str, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Return the messages, with the objects kept from the conversation's last request where equal."""
        known = self._newest.pop(conversation, ())
        again = [old if old == new else new for old, new in zip(known, messages, strict=False)]
        self._newest[conversation] = shared = (*again, *messages[len(again) :])
        if len(self._newest) > KEPT:
            del self._newest[next(iter(self._newest))]
        return shared

    def _write(self, request: Request) -> None:
        if self._log:
            with suppress(OSError), self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(as_json(request)) + "\n")

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
            self._newest.clear()
            self._count = 0


def as_json(request: Request) -> dict[str, Any]:
    """Return the request as an object for JSON; the messages are shared, not copied."""
    return {each.name: getattr(request, each.name) for each in fields(request)}
