"""Which endpoint a new worker gets: the first source that names one. Pure.

Order: flags; HERMUX_ENDPOINT; OPENAI_API_BASE or OPENAI_BASE_URL; HCA_ENDPOINT; the saved endpoint;
the model block of the user's Hermes profile; last the rehearsal model.

A key goes only where it belongs: OPENAI_API_KEY is sent to OPENAI_API_BASE or OPENAI_BASE_URL, and to
any other server only when `--key-env` or HERMUX_KEY_ENV says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.errors import UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind

REHEARSAL = "rehearsal"
"""The word that asks for the rehearsal model in place of a URL."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The flags of one command: `--endpoint`, `-m`, `--key-env`; "" = not given."""

    url: str = ""
    model: str = ""
    key_env: str = ""


def resolve(
    flags: Asked,
    env: Mapping[str, str],
    *,
    saved: Endpoint | None = None,
    hermes: Endpoint | None = None,
) -> Endpoint:
    """Return the endpoint to use, before it has been asked anything.

    `model` may be "" and `context_length` 0: the server is to say. Kind REHEARSAL comes with
    base_url "": the caller fills it in. `-m` and `--key-env` without `--endpoint` change whichever
    source is found; raises UsageError when that would be the rehearsal model.
    """
    found = _from_flags(flags) or _from_env(env) or saved or hermes
    if found is None:
        found = rehearsal("no endpoint is set")
        if flags.model:
            raise UsageError(
                f"no endpoint for the model {flags.model!r} is set",
                hint="add --endpoint URL, or save one: hermux endpoint set URL -m MODEL",
            )
    if found.kind is EndpointKind.REHEARSAL:
        return found
    return _changed(found, flags, env)


def rehearsal(why: str) -> Endpoint:
    """Return the rehearsal model as an endpoint whose address is not known yet."""
    return Endpoint("", "", 0, kind=EndpointKind.REHEARSAL, source=f"rehearsal model ({why})")


def _changed(found: Endpoint, flags: Asked, env: Mapping[str, str]) -> Endpoint:
    """Return the endpoint with what was asked for beside the URL."""
    model = flags.model or _value(env, "HERMUX_MODEL")
    key_env = flags.key_env or _value(env, "HERMUX_KEY_ENV")
    context = _value(env, "HERMUX_CONTEXT_LENGTH")
    return replace(
        found,
        model=model or found.model,
        key_env=key_env or found.key_env,
        context_length=_context(context) if context else found.context_length,
    )


def _from_flags(flags: Asked) -> Endpoint | None:
    if not flags.url:
        return None
    return _endpoint(flags.url, "", "", "flags")


def _from_env(env: Mapping[str, str]) -> Endpoint | None:
    if url := _value(env, "HERMUX_ENDPOINT"):
        key = "HERMUX_API_KEY" if _value(env, "HERMUX_API_KEY") else ""
        return _endpoint(url, "", key, "environment (HERMUX_ENDPOINT)")
    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        if url := _value(env, variable):
            key = "OPENAI_API_KEY" if _value(env, "OPENAI_API_KEY") else ""
            return _endpoint(url, _value(env, "HERMES_MODEL"), key, f"environment ({variable})")
    if url := _value(env, "HCA_ENDPOINT"):
        key = "HCA_API_KEY" if _value(env, "HCA_API_KEY") else ""
        return _endpoint(url, _value(env, "HCA_MODEL_NAME"), key, "environment (HCA_ENDPOINT)")
    return None


def _endpoint(url: str, model: str, key_env: str, source: str) -> Endpoint:
    if url.strip().lower() == REHEARSAL:
        return rehearsal(f"asked for by {source}")
    return Endpoint(url.strip(), model, 0, key_env=key_env, source=source)


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _context(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"HERMUX_CONTEXT_LENGTH is {text!r}", hint="it is a number of tokens, such as 131072"
        )
    return int(text)
