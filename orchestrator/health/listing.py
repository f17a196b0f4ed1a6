"""Finds the base URL below which a server lists its models; says in words why it cannot."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from orchestrator.errors import NotReady
from orchestrator.health.engines import Ask, Engine, entries, identify
from orchestrator.health.http import Reply, fetch
from orchestrator.health.url import bases, server_root

_ELSEWHERE = frozenset({404, 405, 410, 501})
"""Statuses that mean: not below this base."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation with one server, against one deadline (monotonic seconds)."""

    key: str
    deadline: float
    key_env: str = ""
    """The variable's name, for hints."""
    env: Mapping[str, str] | None = None
    """Names the proxies; None = this process's."""

    def ask(self, url: str, post: Mapping[str, Any] | None = None) -> Reply:
        """Return the answer; raises NotReady when none comes in the time that is left."""
        left = max(0.05, self.deadline - time.monotonic())
        return fetch(url, self.key, timeout=left, post=post, env=self.env)

    def beside(self, base: str) -> Ask:
        """Return an `Ask` for the engine's own routes; no answer there is no error."""

        def ask(route: str, post: Mapping[str, Any] | None = None) -> Reply | None:
            try:
                return self.ask(server_root(base) + route, post)
            except NotReady:
                return None

        return ask


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server lists, and below which base URL."""

    base: str
    models: tuple[Mapping[str, Any], ...]
    engine: Engine = Engine.UNKNOWN
    notes: tuple[str, ...] = ()


def read_listing(base: str, talk: Talk, *, chat_only: bool = False) -> Listing:
    """Return the model list of the server at a normalised URL, with or without `/v1`.

    With `chat_only` a server that lists nothing but has a chat route will do.
    Raises NotReady: no answer, a key is needed or refused, a redirect, an error, or another protocol.
    """
    seen: list[tuple[str, Reply]] = []
    for candidate in bases(base):
        reply = talk.ask(f"{candidate}/models")
        if 300 <= reply.status < 400:
            candidate, reply = _redirected(candidate, reply, talk)
        if reply.status == 200 and (found := entries(reply.json())) is not None:
            engine = identify(found, reply, talk.beside(candidate))
            return Listing(candidate, tuple(found), engine)
        if reply.status not in (200, *_ELSEWHERE):
            raise _refusal(candidate, reply, talk)
        seen.append((candidate, reply))
    for candidate, reply in seen:
        if chat_only and reply.status != 200 and _has_chat(candidate, talk):
            return Listing(candidate, (), notes=("the server lists no models: the name is taken on trust",))
    raise _no_api(base, seen)


def said(reply: Reply) -> str:
    """Return a server's own error text in one bounded line, or ""."""
    content = reply.json()
    error = content.get("error", content) if isinstance(content, dict) else None
    text = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return " ".join(str(text).split())[:200] if isinstance(text, str) else ""


def _redirected(base: str, reply: Reply, talk: Talk) -> tuple[str, Reply]:
    """Follow one redirect on the same host; refuse to carry a key to another."""
    target = urljoin(f"{base}/models", reply.headers.get("location", "")).partition("?")[0].rstrip("/")
    moved = target.removesuffix("/models")
    if urlsplit(target).hostname != urlsplit(base).hostname or not target.endswith("/models"):
        raise NotReady(
            f"{base} sends elsewhere (HTTP {reply.status}, to {urlsplit(target).netloc[:100]})",
            hint=f"if you trust that address, give it as the URL: {moved[:200]}",
        )
    return moved, talk.ask(target)


def _has_chat(base: str, talk: Talk) -> bool:
    """Whether a chat route exists: an empty request to it is refused, but not as unknown."""
    reply = talk.ask(f"{base}/chat/completions", {})
    return reply.status in (200, 400, 401, 403, 415, 422) and reply.json() is not None


def _refusal(base: str, reply: Reply, talk: Talk) -> NotReady:
    where, status = urlsplit(base).netloc, reply.status
    told = f": {text}" if (text := said(reply)) else ""
    if reply.via and status in (502, 503, 504):
        return NotReady(
            f"{where}, asked through the proxy in {reply.via}, answers HTTP {status}{told}",
            hint=f"does the proxy reach it? to go past the proxy: export NO_PROXY={urlsplit(base).hostname}",
        )
    if status in (401, 403) and talk.key:
        name = f" in {talk.key_env}" if talk.key_env else ""
        return NotReady(f"{where} refuses the key{name} (HTTP {status}){told}", hint="check the key's value")
    if status in (401, 403):
        return NotReady(
            f"{where} needs a key (HTTP {status})",
            hint="put it into a variable and name that: --key-env MY_KEY",
        )
    if status == 429:
        return NotReady(f"{where} is over its limit (HTTP 429){told}", hint="wait, or check the plan")
    if status == 503:
        return NotReady(f"{where} is not ready yet (HTTP 503){told}", hint="wait until the model is loaded")
    return NotReady(f"{where} answers HTTP {status}{told}", hint="look into the server's log")


def _no_api(base: str, seen: list[tuple[str, Reply]]) -> NotReady:
    where = urlsplit(base).netloc
    tried = " and ".join(f"{urlsplit(candidate).path}/models" for candidate, _ in seen)
    hint = "the URL is the part before /chat/completions, for example http://127.0.0.1:8000/v1"
    for _, reply in seen:
        if reply.html:
            title = re.search(rb"<title[^>]*>([^<]{1,200})", reply.body[:20_000], re.IGNORECASE)
            words = html.unescape(title[1].decode("utf-8", "replace")) if title else ""
            named = f" ({' '.join(words.split())[:60]!r})" if words.strip() else ""
            return NotReady(f"{where} is a web page{named}, not an OpenAI-compatible API", hint=hint)
    if all(reply.status in _ELSEWHERE for _, reply in seen):
        return NotReady(f"{where} answers, but has no {tried} (HTTP {seen[0][1].status})", hint=hint)
    return NotReady(f"{where} answers {tried} with something that is no model list", hint=hint)
