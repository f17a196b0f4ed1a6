"""The server and model that are examined, and one chat request to them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from orchestrator.doctor.check import Trouble
from orchestrator.doctor.refusal import refusal, refuses_tools
from orchestrator.doctor.speech import Said, chat_body, read_completion, read_stream
from orchestrator.errors import NotReady
from orchestrator.fleet.spec import Endpoint
from orchestrator.health.engines import Engine
from orchestrator.health.http import Reply, fetch
from orchestrator.health.listing import Talk

LIMIT = 30.0
"""Seconds for one answer of a model, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint with its key. The key is sent, and in no text that comes from here."""

    endpoint: Endpoint
    key: str = field(default="", repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    """Names the proxies; None = this process's."""
    limit: float = LIMIT
    engine: Engine = Engine.UNKNOWN
    models: tuple[str, ...] = ()
    """What the server lists; () = nothing, or not asked."""

    @property
    def where(self) -> str:
        return urlsplit(self.endpoint.base_url).netloc

    @property
    def rehearsal(self) -> bool:
        """Whether scripted answers come from there, whatever the endpoint's kind."""
        return self.engine is Engine.REHEARSAL or self.endpoint.kind.value == "rehearsal"

    def talk(self, seconds: float) -> Talk:
        """Return a conversation with the server that may last `seconds`."""
        return Talk(self.key, time.monotonic() + seconds, self.endpoint.key_env, self.env)

    def hidden(self, text: str) -> str:
        """Return text without the key, which servers repeat in errors."""
        return text.replace(self.key, "[redacted]") if len(self.key) >= 4 else text


def ask(target: Target, *, stream: bool = False, tools: bool = False, model: str = "") -> Said:
    """Make one chat request and return what was said; raises Trouble, without the key in it."""
    try:
        return _ask(target, model or target.endpoint.model, stream=stream, tools=tools)
    except NotReady as error:
        raise Trouble(target.hidden(str(error)), hint=target.hidden(error.hint)) from None
    except Trouble as trouble:
        hint = getattr(trouble, "hint", "")
        fresh = ToolsRefused if isinstance(trouble, ToolsRefused) else Trouble
        raise fresh(target.hidden(str(trouble)), hint=target.hidden(hint)) from None


class ToolsRefused(Trouble):
    """The server refuses a request because there are tools in it."""


def _ask(target: Target, model: str, *, stream: bool, tools: bool) -> Said:
    base = target.endpoint.base_url
    body = chat_body(model, stream=stream, tools=tools, rehearsal=target.rehearsal)
    reply = _posted(target, f"{base}/chat/completions", body)
    if reply.status == 200:
        return read_stream(reply) if stream else read_completion(reply)
    found = refusal(
        reply, base, target.talk(10), model=model, models=target.models or (), engine=target.engine
    )
    if tools and refuses_tools(reply):
        raise ToolsRefused(str(found), hint=found.hint)
    raise found


def _posted(target: Target, url: str, body: Mapping[str, Any]) -> Reply:
    begun = time.monotonic()
    try:
        return fetch(url, target.key, timeout=target.limit, post=body, env=target.env)
    except NotReady:
        if time.monotonic() - begun < target.limit:
            raise
        raise Trouble(
            f"{target.where} takes the request, but does not answer within {target.limit:g} s: timeout",
            hint="is the model still loading, or the queue full? give it longer: hermux doctor --timeout 180",
        ) from None


def several(target: Target, count: int) -> list[Said | Trouble]:
    """Make the same request, streamed and with tools, `count` times at once; return each outcome."""
    import threading

    found: list[Said | Trouble] = [Trouble("no answer")] * count

    def one(place: int) -> None:
        try:
            found[place] = ask(target, stream=True, tools=True)
        except Trouble as trouble:
            found[place] = trouble

    threads = [threading.Thread(target=one, args=(place,), daemon=True) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(target.limit + 15)
    return found


def failures(outcomes: Sequence[Said | Trouble]) -> list[Trouble]:
    """Return those that failed."""
    return [each for each in outcomes if isinstance(each, Trouble)]
