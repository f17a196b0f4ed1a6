"""Which engine answers, how much context it gives, and how one gives it more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from orchestrator.health.http import Reply

LEAST_CONTEXT = 64_000
"""Tokens: Hermes refuses to start with less (0.19 and 0.22, measured)."""

Ask = Callable[..., Reply | None]
"""`ask(route)` or `ask(route, post={…})` below the server's root; None = no answer."""


class Engine(StrEnum):
    """Servers that say who they are."""

    UNKNOWN = ""
    VLLM = "vLLM"
    SGLANG = "SGLang"
    LLAMA_CPP = "llama.cpp"
    OLLAMA = "Ollama"
    LM_STUDIO = "LM Studio"
    REHEARSAL = "hermux rehearsal"


LISTS_ALL = frozenset({Engine.VLLM, Engine.SGLANG, Engine.OLLAMA, Engine.LM_STUDIO})
"""Engines whose list is complete: a model that is not in it is an error. Gateways hide some."""

_OWNERS = {
    "vllm": Engine.VLLM,
    "sglang": Engine.SGLANG,
    "llamacpp": Engine.LLAMA_CPP,
    "organization_owner": Engine.LM_STUDIO,
    "hermux": Engine.REHEARSAL,
}
_CONTEXT = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")
_FIX = {
    Engine.VLLM: "start vLLM with --max-model-len 65536 or more",
    Engine.SGLANG: "start SGLang with --context-length 65536 or more",
    Engine.LLAMA_CPP: "start llama-server with -c 65536 for each slot: with -np 4 that is -c 262144",
    Engine.OLLAMA: "start it with OLLAMA_CONTEXT_LENGTH=65536 ollama serve, or set num_ctx in the Modelfile",
    Engine.LM_STUDIO: "load the model in LM Studio with a context length of 65536 or more",
}


def identify(models: list[Mapping[str, Any]], reply: Reply, ask: Ask) -> Engine:
    """Return the engine that a model list came from; UNKNOWN when it does not say."""
    for model in models:
        if engine := _OWNERS.get(str(model.get("owned_by", "")).lower()):
            return engine
    if "llama.cpp" in reply.headers.get("server", "").lower():
        return Engine.LLAMA_CPP
    if all(":" in model["id"] for model in models):  # Ollama's names have a tag; it may also list none
        hello = ask("/")
        if hello is not None and b"Ollama is running" in hello.body:
            return Engine.OLLAMA
    return Engine.UNKNOWN


def context_of(model: Mapping[str, Any], engine: Engine, ask: Ask) -> int | None:
    """Return the tokens of context that `model` really gets, or None when the server does not say."""
    if engine is Engine.OLLAMA:
        return _ollama(str(model.get("id", "")), ask)
    if engine is Engine.LLAMA_CPP:
        settings = _object(ask("/props")).get("default_generation_settings")
        if tokens := _tokens(settings, "n_ctx"):
            return tokens
    if engine is Engine.LM_STUDIO:
        return _lm_studio(str(model.get("id", "")), ask)
    for holder in (model, model.get("meta"), model.get("top_provider")):
        for name in _CONTEXT:
            if tokens := _tokens(holder, name):
                return tokens
    if engine is Engine.SGLANG:
        return _tokens(_object(ask("/get_server_info")), "context_length")
    return None


def fix(engine: Engine) -> str:
    """Return how one gives the engine enough context for Hermes."""
    return _FIX.get(engine, f"use a model with at least {LEAST_CONTEXT:,} tokens of context")


def entries(content: Any) -> list[Mapping[str, Any]] | None:
    """Return the models of a `/models` answer (an object with `data`, or a bare list), else None."""
    data = content.get("data") if isinstance(content, dict) else content
    if data is None and isinstance(content, dict) and content.get("object") == "list":
        data = []  # Ollama without a model says "data": null
    if not isinstance(data, list):
        return None
    return [item for item in data if isinstance(item, dict) and isinstance(item.get("id"), str)]


def _ollama(model: str, ask: Ask) -> int | None:
    """The context of the loaded model, else what its Modelfile sets; the trained maximum is not what it gets."""
    running = _object(ask("/api/ps"))
    for item in _objects(running.get("models")):
        if model in (item.get("name"), item.get("model")) and (tokens := _tokens(item, "context_length")):
            return tokens
    parameters = _object(ask("/api/show", post={"model": model})).get("parameters")
    for line in str(parameters or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx":
            return _tokens({"num_ctx": value.strip()}, "num_ctx")
    return None


def _lm_studio(model: str, ask: Ask) -> int | None:
    for item in _objects(_object(ask("/api/v0/models")).get("data")):
        if item.get("id") == model:
            return _tokens(item, "loaded_context_length")
    return None


def _tokens(holder: Any, name: str) -> int | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 < value < 1e9 else None


def _object(reply: Reply | None) -> Mapping[str, Any]:
    content = reply.json() if reply is not None and reply.status == 200 else None
    return content if isinstance(content, dict) else {}


def _objects(items: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else iter(())
