"""Asks an OpenAI-compatible server who it is before a worker depends on it.

`check` is what commands use: the endpoint as it was asked for goes in, the one that works comes out.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from urllib.parse import urlsplit

from orchestrator.errors import HermuxError, NotReady, UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.health.engines import LEAST_CONTEXT, LISTS_ALL, Engine, context_of, fix
from orchestrator.health.http import is_loopback
from orchestrator.health.listing import Listing, Talk, read_listing
from orchestrator.health.url import normalise_url as normalise_url
from orchestrator.hermes.model import FROM_HERMES, hermes_key
from orchestrator.hermes.model import read_hermes_model as read_hermes_model

LOCAL_PORTS = (8000, 30000, 8080, 11434, 1234)
"""Defaults of vLLM, SGLang, llama.cpp, Ollama and LM Studio."""
ASSUMED_CONTEXT = 131_072
"""Tokens, where neither the server nor the user says."""
_NO_CHAT = re.compile(r"embed|rerank|whisper|tts", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Probe:
    """What a server said; `problem` and `hint` say in a line each why it cannot be used."""

    ok: bool
    url: str
    """The base URL that works, or the one that was asked."""
    models: tuple[str, ...] = ()
    model: str = ""
    """The model that will be asked: the wanted one, or the only one; "" when there are several."""
    context_length: int | None = None
    engine: Engine = Engine.UNKNOWN
    notes: tuple[str, ...] = ()
    """What was repaired or assumed."""
    problem: str = ""
    hint: str = ""


def probe(
    url: str,
    key: str | None = None,
    *,
    model: str = "",
    context: int = 0,
    timeout: float = 5.0,
    key_env: str = "",
    env: Mapping[str, str] | None = None,
) -> Probe:
    """Ask the server at `url` for its models, within `timeout` seconds in all; never raises.

    `context` is what the user declares and outweighs the server's word; `key_env` only names the
    variable in hints; proxies are those of `env`, by default this process's.
    """
    talk = Talk(key or "", time.monotonic() + timeout, key_env, env)
    base = ""
    notes: tuple[str, ...] = ()
    try:
        base, notes = normalise_url(url)
        listing = read_listing(base, talk, chat_only=bool(model))
        if listing.base != base:
            notes = (*notes, f"the base URL became {listing.base}")
        found = _chosen(listing, model)
        return _sized(found, listing, context, talk, notes)
    except HermuxError as error:
        problem, hint = (_hidden(text, key) for text in (str(error), error.hint))
        return Probe(False, base, notes=notes, problem=problem, hint=hint)


def check(asked: Endpoint, env: Mapping[str, str], *, timeout: float = 5.0) -> tuple[Endpoint, Probe]:
    """Return the endpoint with its URL repaired, its model and context known, and what was said.

    The rehearsal model is passed through unasked. Raises NotReady with the next step, UsageError for
    an unusable URL or key name.
    """
    if asked.kind is EndpointKind.REHEARSAL:
        return asked, Probe(True, asked.base_url, model=asked.model, engine=Engine.REHEARSAL)
    normalise_url(asked.base_url)
    said = probe(
        asked.base_url,
        key_value(asked, env),
        model=asked.model,
        context=asked.context_length,
        timeout=timeout,
        key_env=asked.key_env,
        env=env,
    )
    if not said.ok:
        raise NotReady(f"endpoint ({asked.source or 'given'}): {said.problem}", hint=said.hint)
    if not said.model:
        raise NotReady(
            f"{said.url} has {len(said.models)} models", hint=f"choose one with -m: {_some(said.models)}"
        )
    context = said.context_length or ASSUMED_CONTEXT
    return replace(asked, base_url=said.url, model=said.model, context_length=context), said


def key_value(endpoint: Endpoint, env: Mapping[str, str]) -> str:
    """Return the key that `endpoint.key_env` names, "" for none.

    Raises UsageError for a name that is none (and does not repeat it: it may be a key), NotReady when
    there is no value or one that cannot be sent.
    """
    name = endpoint.key_env
    if not name:
        return ""
    if name.startswith(FROM_HERMES):
        value = hermes_key(name, env)
    elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
        raise UsageError(
            "the key's variable has no valid name",
            hint="--key-env takes the name of a variable that holds the key, not the key",
        )
    else:
        value = env.get(name, "").strip()
    if not value:
        raise NotReady(f"the variable {name} holds no key", hint=f"export {name}=… , or another --key-env")
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise NotReady(f"the key in {name} has blanks or other characters that cannot be sent")
    return value


def offer_local(
    ports: Sequence[int] = LOCAL_PORTS, *, host: str = "127.0.0.1", timeout: float = 0.5
) -> list[Probe]:
    """Return the servers on this machine that say which engine they are, within `timeout` seconds.

    No key is sent. Rehearsal models are left out.
    """
    found: dict[int, Probe] = {}
    end = time.monotonic() + timeout

    def ask(port: int) -> None:
        try:
            listing = read_listing(f"http://{host}:{port}", Talk("", end))
        except HermuxError:
            return
        if listing.engine not in (Engine.UNKNOWN, Engine.REHEARSAL):
            found[port] = Probe(True, listing.base, _chat_ids(listing), engine=listing.engine)

    threads = [threading.Thread(target=ask, args=(port,), daemon=True) for port in ports]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return [found[port] for port in ports if port in found]


def _chosen(listing: Listing, wanted: str) -> str:
    """Return the model to ask for, "" when several are there; raises NotReady when there is none."""
    every = [str(model["id"]) for model in listing.models]
    if wanted:
        latest = f"{wanted}:latest"  # Ollama lists a bare name with its tag
        if wanted not in every and latest not in every and listing.engine in LISTS_ALL:
            near = get_close_matches(wanted, every, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise NotReady(f"no model {wanted!r} at {listing.base}", hint=f"{hint}it has: {_some(every)}")
        return wanted
    chat = _chat_ids(listing)
    if not chat:
        raise NotReady(f"{listing.base} lists no model", hint="load one there, or name one: -m MODEL")
    return chat[0] if len(chat) == 1 else ""


def _sized(model: str, listing: Listing, context: int, talk: Talk, notes: tuple[str, ...]) -> Probe:
    """Return the verdict on the model's context; that of no model in particular is not judged."""
    models = tuple(str(m["id"]) for m in listing.models)
    if not model:
        return Probe(True, listing.base, models=models, engine=listing.engine, notes=notes)
    entry = next((m for m in listing.models if m["id"] in (model, f"{model}:latest")), {"id": model})
    told = context_of(entry, listing.engine, talk.beside(listing.base))
    tokens = context or told
    notes = (*notes, *listing.notes, *_doubts(model, listing, told, context), *_in_the_open(listing, talk))
    problem = hint = ""
    if tokens is not None and tokens < LEAST_CONTEXT:
        problem = f"{model!r} has a context of {tokens:,} tokens; Hermes needs {LEAST_CONTEXT:,}"
        hint = (
            fix(listing.engine)
            if told == tokens
            else "declare what the model has: HERMUX_CONTEXT_LENGTH=131072"
        )
    return Probe(
        not problem,
        listing.base,
        models=models,
        model=model,
        context_length=tokens,
        engine=listing.engine,
        notes=notes,
        problem=problem,
        hint=hint,
    )


def _doubts(model: str, listing: Listing, told: int | None, context: int) -> list[str]:
    """Return what could not be checked, and where the user's word outweighs the server's."""
    doubts = []
    ids = [m["id"] for m in listing.models]
    if ids and model not in ids and f"{model}:latest" not in ids:
        doubts.append(f"the server does not list the model {model!r}: it is taken on trust")
    if told and context > told:
        doubts.append(f"the server says {told:,} tokens of context, {context:,} are declared")
    if not told and not context:
        doubts.append(f"the server does not say its context: {ASSUMED_CONTEXT:,} tokens are assumed")
    return doubts


def _in_the_open(listing: Listing, talk: Talk) -> list[str]:
    parts = urlsplit(listing.base)
    if not talk.key or parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return []
    return [f"the key goes to {parts.netloc} unencrypted (http)"]


def _chat_ids(listing: Listing) -> tuple[str, ...]:
    return tuple(str(m["id"]) for m in listing.models if not _NO_CHAT.search(str(m["id"])))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown}, … ({len(names)} in all)" if len(names) > 8 else shown or "none"


def _hidden(text: str, key: str | None) -> str:
    """Return text without the key, which a server may repeat in its error."""
    return text.replace(key, "[redacted]") if key and len(key) >= 4 else text
