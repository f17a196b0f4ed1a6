"""Examines an endpoint: where it is, what it lists, and whether it chats, streams and calls tools as Hermes needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.doctor import way as ways
from orchestrator.doctor.check import Check, Trouble, fail, ok, skipped, timed, warn
from orchestrator.doctor.parsers import form_of, parser_flags
from orchestrator.doctor.speech import TOOL, Said
from orchestrator.doctor.target import Target, ToolsRefused, ask
from orchestrator.errors import HermuxError
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.health.endpoint import ASSUMED_CONTEXT, probe
from orchestrator.health.engines import LEAST_CONTEXT, context_of, fix
from orchestrator.health.listing import read_listing
from orchestrator.health.url import normalise_url
from orchestrator.hermes.model import FROM_HERMES

LISTING = 10.0
"""Seconds for the model list and the engine's own routes."""
STEPS = ("connection", "models", "context", "chat", "stream", "tools")


class Examination:
    """The checks of one endpoint, in turn. `target` is what is known of it so far."""

    def __init__(self, target: Target, env: Mapping[str, str], *, verbatim: bool = False) -> None:
        """`verbatim`: the base URL is used as it stands, as a worker that runs already uses it."""
        self.target = target
        self.env = env
        self.verbatim = verbatim
        self._way: ways.Way | None = None
        self._told: int | None = None

    def checks(self, steps: Sequence[str] = STEPS) -> Iterator[Check]:
        """Yield a check for each of `steps`; after one without which the next make no sense, the rest are skipped."""
        looks: dict[str, Callable[[], Check]] = {
            "connection": self._connection,
            "models": self._models,
            "context": self._context,
            "chat": self._chat,
            "stream": self._stream,
            "tools": self._tools,
        }
        stop = ""
        for name in steps:
            if stop:
                yield skipped(name, f"not asked, since {stop!r} failed")
                continue
            found = timed(name, looks[name])
            found = replace(found, seen=self.target.hidden(found.seen), next=self.target.hidden(found.next))
            yield found
            if found.failed and name in ("connection", "models", "chat"):
                stop = name

    def _connection(self) -> Check:
        endpoint = self.target.endpoint
        base, changes = (endpoint.base_url, ()) if self.verbatim else normalise_url(endpoint.base_url)
        self._know(replace(endpoint, base_url=base))
        self._way = ways.plan(base, self.env)
        seen = ways.walk(self._way, timeout=min(ways.STEP, self.target.limit))
        notes = "; ".join((*changes, *self._way.notes))
        return ok("connection", seen + (f" ({notes})" if notes else ""))

    def _models(self) -> Check:
        endpoint = self.target.endpoint
        try:
            listing = read_listing(
                endpoint.base_url, self.target.talk(LISTING), chat_only=bool(endpoint.model)
            )
        except HermuxError as error:
            raise self._blamed(error) from None
        base = endpoint.base_url if self.verbatim else listing.base
        declared = max(endpoint.context_length, LEAST_CONTEXT)  # its own check looks at that
        said = probe(
            listing.base,
            self.target.key,
            model=endpoint.model,
            context=declared,
            timeout=LISTING,
            key_env=endpoint.key_env,
            env=self.env,
        )
        self.target = replace(self.target, engine=said.engine, models=said.models)
        if not said.ok:
            return fail("models", said.problem, self._choose(said.models, said.hint))
        if not said.model:
            some = ", ".join(said.models[:6])
            return fail(
                "models",
                f"{listing.base} has {len(said.models)} models: {some}",
                f"hermux endpoint set {listing.base} -m {said.models[0]}",
            )
        self._know(replace(endpoint, base_url=base, model=said.model))
        entry = next((m for m in listing.models if m["id"] in (said.model, f"{said.model}:latest")), {})
        self._told = context_of(
            {"id": said.model, **entry}, listing.engine, self.target.talk(LISTING).beside(listing.base)
        )
        who = f" ({said.engine})" if said.engine else ""
        listed = f"{len(said.models)} listed" if said.models else "none listed"
        seen = f"{listing.base}/models: {listed}{who}; asked for: {said.model}"
        if said.models and not entry:
            return warn("models", f"{seen}, which is not among them", self._choose(said.models, ""))
        if self.verbatim and listing.base != endpoint.base_url:
            return fail(
                "models",
                f"the models are below {listing.base}, but requests go to {endpoint.base_url}",
                f"hermux endpoint set {listing.base} -m {said.model}",
            )
        open_key = next((note for note in said.notes if "unencrypted" in note), "")
        return (
            warn("models", f"{seen}; {open_key}", "use https:// if the server has it")
            if open_key
            else ok("models", seen)
        )

    def _context(self) -> Check:
        declared, told = self.target.endpoint.context_length, self._told
        mine = f"configured: {declared:,}" if declared else "none configured"
        if told is None and not declared:
            return warn(
                "context",
                f"the server does not say its context length; {ASSUMED_CONTEXT:,} tokens are assumed",
                "if it has less, say so: export HERMUX_CONTEXT_LENGTH=65536",
            )
        if told is None:
            short = declared < LEAST_CONTEXT
            seen = f"{mine} tokens, the server does not say" + (
                f"; Hermes needs {LEAST_CONTEXT:,}" if short else ""
            )
            return fail("context", seen, fix(self.target.engine)) if short else ok("context", seen)
        if told < LEAST_CONTEXT:
            return fail(
                "context",
                f"the server gives {told:,} tokens ({mine}); Hermes needs {LEAST_CONTEXT:,}",
                fix(self.target.engine),
            )
        if declared > told:
            return fail(
                "context",
                f"{declared:,} tokens are configured, the server gives {told:,}: long talks will be refused",
                f"export HERMUX_CONTEXT_LENGTH={told}, or {fix(self.target.engine)}",
            )
        return ok("context", f"{told:,} tokens ({mine}), {LEAST_CONTEXT:,} are needed")

    def _chat(self) -> Check:
        try:
            said = ask(self.target)
        except Trouble as trouble:
            raise self._blamed(trouble) from None
        return _spoken("chat", said)

    def _stream(self) -> Check:
        said = ask(self.target, stream=True)
        if said.tokens is None:
            return warn(
                "stream",
                "streams, but counts no tokens (stream_options.include_usage is ignored)",
                "update the server; until then `hermux ls` shows no tokens",
            )
        return _spoken("stream", said)

    def _tools(self) -> Check:
        target, model = self.target, self.target.endpoint.model
        try:
            said = ask(target, stream=True, tools=True)
        except ToolsRefused as error:
            return fail("tools", f"tools are refused: {error}", parser_flags(target.engine, model))
        return judge_tools(target, said)

    def _know(self, endpoint: Endpoint) -> None:
        self.target = replace(self.target, endpoint=endpoint)

    def _choose(self, models: tuple[str, ...], hint: str) -> str:
        return (
            hint
            or f"hermux endpoint set {self.target.endpoint.base_url} -m {models[0] if models else 'MODEL'}"
        )

    def _blamed(self, error: HermuxError) -> HermuxError:
        """Return the error, or a better one: it is the proxy's, or plain HTTP was spoken to a TLS port."""
        way, base = self._way, self.target.endpoint.base_url
        if way is None:
            return error
        if way.proxy is not None:
            status = ways.direct_status(f"{base}/models", self.target.key)
            if status in (200, 401, 403):
                return Trouble(
                    f"the proxy {way.proxy.shown} ({way.proxy.variable}) is in the way: {error}; past it: HTTP {status}",
                    hint=f"export NO_PROXY={way.host}, or unset {way.proxy.variable}",
                )
        elif not way.tls and ways.speaks_tls(way.host, way.port):
            right = base.replace("http://", "https://", 1)
            return Trouble(
                f"{way.where} is a TLS port, and http:// was spoken to it",
                hint=f"hermux endpoint set {right} -m {self.target.endpoint.model or 'MODEL'}",
            )
        return error


def judge_tools(target: Target, said: Said) -> Check:
    """Return what an answer to the request with tools shows of the server's tool calling."""
    model = target.endpoint.model
    if said.calls:
        call = said.calls[0]
        if call.name != TOOL:
            return warn("tools", f"calls a tool {call.name!r} that was not offered", "try a larger model")
        if not isinstance(call.arguments, str):
            return fail(
                "tools",
                "gives a tool call's arguments as an object; the chat API has them as a JSON text",
                "update the server or gateway",
            )
        try:
            json.loads(call.arguments or "{}")
        except ValueError:
            return fail(
                "tools",
                f"cuts or breaks a tool call's arguments: {call.arguments[:50]!r}",
                parser_flags(target.engine, model),
            )
        return ok("tools", f"calls tools ({TOOL}), streamed as Hermes asks")
    for text in (said.text, said.reasoning):
        if form := form_of(text):
            return fail(
                "tools",
                f"prints a tool call as text, nobody parses it: {form!r}",
                parser_flags(target.engine, model, text),
            )
    return warn(
        "tools",
        f"the model answered in words where a tool was asked for: {' '.join(said.text.split())[:40]!r}",
        f"if workers only talk: {parser_flags(target.engine, model)}; or use a model trained for tools",
    )


def described(endpoint: Endpoint, notes: list[str]) -> Check:
    """Return the first line about an endpoint: what, and who says so."""
    if endpoint.kind is EndpointKind.REHEARSAL:
        more = f"; {notes[0]}" if notes else ""
        return warn(
            "endpoint",
            f"{endpoint.source}: scripted answers, no language model{more}",
            "for a real one: hermux endpoint set URL -m MODEL",
        )
    key = f"key in ${endpoint.key_env}" if endpoint.key_env else "no key"
    if endpoint.key_env.startswith(FROM_HERMES):
        key = "its key"
    model = endpoint.model or "the server's only model"
    return ok("endpoint", f"{endpoint.base_url}, {model}, {key}; from {endpoint.source or 'nowhere'}")


def _spoken(name: str, said: Said) -> Check:
    """Return the verdict on an answer of plain text."""
    if said.calls or not (said.text.strip() or said.reasoning.strip()):
        return warn(
            name, "the answer has choices, but no text in them", "try another model, or its chat template"
        )
    if not said.text.strip():
        return ok(name, f"choices and message are there; it thought {len(said.reasoning)} characters long")
    counted = f"{said.tokens[0]} + {said.tokens[1]} tokens" if said.tokens else ""
    if not counted:
        return warn(
            name, "answers, but counts no tokens (usage)", "update the server: tokens cannot be shown"
        )
    return ok(name, f"choices, message and usage are there ({counted})")
