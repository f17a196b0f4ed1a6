"""What an HTTP status of a chat request means, and what to type next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from orchestrator.doctor.check import Trouble
from orchestrator.health.engines import Engine
from orchestrator.health.http import Reply
from orchestrator.health.listing import Talk, said
from orchestrator.health.url import bases, normalise_url

_NO_MODEL = re.compile(r"model.{0,80}(?:not (?:found|exist|available|loaded|supported)|does ?n.t exist|unknown)|"
                       r"(?:unknown|invalid|no such|not.a.valid) model|model_not_found|try pulling it", re.IGNORECASE)  # fmt: skip
_NO_TOOLS = re.compile(r"tool|function.?call|jinja", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|maximum context|too many tokens|max_tokens", re.IGNORECASE
)


def refusal(
    reply: Reply,
    base: str,
    talk: Talk,
    *,
    model: str = "",
    models: Sequence[str] = (),
    engine: Engine = Engine.UNKNOWN,
) -> Trouble:
    """Return what an answer with another status than 200 says, told apart by status and text."""
    status, where = reply.status, urlsplit(base).netloc
    told = f": {text}" if (text := said(reply)) else ""
    if status in (401, 403):
        return _no_key(status, where, told, talk)
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(told)):
        return _not_found(reply, base, talk, model, models)
    if 300 <= status < 400:
        to = reply.headers.get("location", "")[:120]
        return Trouble(
            f"{where} sends chat requests elsewhere (HTTP {status}, to {to or 'nowhere'})",
            hint="Hermes posts to one address: use the one it is sent to with hermux endpoint set URL -m MODEL",
        )
    if status == 429:
        wait = reply.headers.get("retry-after", "")
        after = f"in {wait} s" if wait.isdigit() else "later"
        return Trouble(
            f"{where} is over its limit (HTTP 429){told}",
            hint=f"try again {after}, raise the plan, or run fewer workers: hermux scale 1",
        )
    if status in (400, 413, 422) and _TOO_LONG.search(told):
        return Trouble(
            f"{where} finds the request too long (HTTP {status}){told}", hint="give the server more context"
        )
    if status >= 500:
        what = "is not ready or overloaded" if status in (502, 503, 504) else "fails"
        return Trouble(
            f"{where} {what} (HTTP {status}){told}",
            hint="wait until its model is loaded, then look into its log"
            if status in (502, 503, 504)
            else "look into the server's log: the fault is there",
        )
    return Trouble(f"{where} refuses the request (HTTP {status}){told}", hint="look into the server's log")


def right_base(base: str, talk: Talk, model: str) -> str:
    """Return the base URL below which a chat route is, where `base` itself has none; "" = none is found.

    Tried: with `/v1`, without it, and with a doubled `/v1` made one.
    """
    tried = [base]
    for candidate in (*bases(base), *bases(normalise_url(base)[0])):
        if candidate in tried:
            continue
        tried.append(candidate)
        reply = talk.ask(f"{candidate}/chat/completions", {"model": model, "messages": [], "max_tokens": 1})
        if reply.status not in (404, 405, 410, 501) and not reply.html and reply.json() is not None:
            return candidate
    return ""


def _no_key(status: int, where: str, told: str, talk: Talk) -> Trouble:
    if not talk.key:
        return Trouble(
            f"{where} needs a key (HTTP {status}){told}",
            hint="put it into a variable and name that: export MY_KEY=… ; hermux endpoint set URL -m MODEL --key-env MY_KEY",
        )
    named = f" in {talk.key_env}" if talk.key_env else ""
    if status == 403:
        return Trouble(
            f"{where} knows the key{named} but forbids this (HTTP 403){told}",
            hint="give the key the right to use this model, or use another: hermux endpoint set URL -m MODEL --key-env VAR",
        )
    name = talk.key_env or "MY_KEY"
    return Trouble(
        f"{where} refuses the key{named} (HTTP 401){told}",
        hint=f"put the right one there: export {name}=…  then for held workers: hermux restart '*'",
    )


def _not_found(reply: Reply, base: str, talk: Talk, model: str, models: Sequence[str]) -> Trouble:
    """Tell an unknown model from a wrong path: `/v1` missing, or there twice."""
    told = said(reply)
    known = model in models or f"{model}:latest" in models
    if not known and (models or _NO_MODEL.search(told)):
        near = get_close_matches(model, models, n=1, cutoff=0.4)
        name = near[0] if near else (models[0] if len(models) == 1 else "MODEL")
        some = f"; it has: {', '.join(models[:6])}" if models else ""
        return Trouble(
            f"the model {model!r} is not known there (HTTP {reply.status}){some}",
            hint=f"hermux endpoint set {base} -m {name}",
        )
    better = right_base(base, talk, model)
    path = urlsplit(f"{base}/chat/completions").path
    if better:
        twice = len(better) < len(base) and base.startswith(better)
        what = "/v1 is there twice" if twice and better.endswith("/v1") else "/v1 is missing"
        what = "/v1 is one too many" if twice and not better.endswith("/v1") else what
        return Trouble(
            f"there is no {path} (HTTP 404): {what}", hint=f"hermux endpoint set {better} -m {model}"
        )
    return Trouble(
        f"there is no {path} (HTTP {reply.status})" + (f": {told}" if told else ""),
        hint="the URL is what stands before /chat/completions: hermux endpoint set URL -m MODEL",
    )


def refuses_tools(reply: Reply) -> bool:
    """Whether an error is about tools, and not about something that any request would meet."""
    return reply.status in (400, 404, 422, 500, 501) and bool(_NO_TOOLS.search(said(reply)))
