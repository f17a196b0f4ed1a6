"""Which endpoint a new worker gets: the first source that names one. Pure.

Order: flags; HERMUX_ENDPOINT; OPENAI_API_BASE or OPENAI_BASE_URL; HCA_ENDPOINT; the saved default;
the model block of the user's Hermes profile; last the rehearsal model. Flags and HERMUX_ENDPOINT take a
URL, the name of a saved endpoint, or `rehearsal`.

A key goes only where it belongs: OPENAI_API_KEY is sent to OPENAI_API_BASE or OPENAI_BASE_URL, and to
any other server only when `--key-env` or HERMUX_KEY_ENV says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from orchestrator.errors import BadName, UsageError
from orchestrator.fleet.spec import NAME_RULE, Endpoint, EndpointKind

REHEARSAL = "rehearsal"
"""The word that asks for the rehearsal model in place of a URL."""
NO_NAMES = frozenset((REHEARSAL, "localhost"))
"""Words that mean a server, so no endpoint is saved under them."""
ENDPOINT, MODEL, KEY = "endpoint", "model", "key"
"""The words of `Endpoint.given`."""
_URLS = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "HCA_ENDPOINT")


@dataclass(frozen=True, slots=True)
class Asked:
    """The flags of one command: `--endpoint` (URL or saved name), `-m`, `--key-env`; "" = not given."""

    url: str = ""
    model: str = ""
    key_env: str = ""


def is_name(text: str) -> bool:
    """Whether a text means a saved endpoint: one word, without a dot, colon or slash, that is no server."""
    word = text.strip().lower()
    return bool(re.fullmatch(r"[a-z0-9_-]+", word)) and word not in NO_NAMES


def check_endpoint_name(name: str) -> str:
    """Return a name that an endpoint can be saved under; raise BadName with the rule otherwise."""
    if "://" in name or "." in name or ":" in name:
        raise BadName(
            f"{name[:60]!r} is an address, not a name",
            hint="the address is the argument, the name a word: hermux endpoint set URL --name gpu",
        )
    if not NAME_RULE.fullmatch(name):
        raise BadName(
            f"{name!r} is no name for an endpoint",
            hint="use 1 to 24 of a-z, 0-9 and '-', starting with a letter",
        )
    if name in NO_NAMES:
        raise BadName(f"{name!r} means a server already", hint="choose another name: --name gpu")
    return name


def saved_name(flags: Asked, env: Mapping[str, str]) -> str | None:
    """Return the saved endpoint that is asked for: "" = the default, None = none of them is needed."""
    for text in (flags.url.strip(), _value(env, "HERMUX_ENDPOINT")):
        if text:
            return text.lower() if is_name(text) else None
    return None if any(_value(env, variable) for variable in _URLS) else ""


def resolve(
    flags: Asked,
    env: Mapping[str, str],
    *,
    saved: Endpoint | None = None,
    hermes: Endpoint | None = None,
) -> Endpoint:
    """Return the endpoint to use, before it has been asked anything.

    `saved` is the saved endpoint that `saved_name` says. `model` may be "" and `context_length` 0: the
    server is to say. Kind REHEARSAL comes with base_url "": the caller fills it in. `-m` and `--key-env`
    change whichever source is found; raises UsageError when that would be the rehearsal model.
    """
    found = _from_flags(flags, saved) or _from_env(env, saved) or saved or hermes
    if found is None:
        _refuse_without_endpoint(flags)
        return rehearsal("no endpoint is set")
    if found.kind is EndpointKind.REHEARSAL:
        _refuse_for_rehearsal(flags)
        return found
    return _changed(found, flags, env)


def origins(found: Endpoint, flags: Asked, env: Mapping[str, str]) -> dict[str, str]:
    """Return who says the `url`, `model`, `key` and `context` of an endpoint that `resolve` found, in words."""
    url = found.source or "given"
    if found.kind is EndpointKind.REHEARSAL:
        return {"url": url, "model": "the rehearsal model's own", "key": "", "context": ""}
    variable = url.removeprefix("environment (").partition(")")[0] if url.startswith("environment") else ""
    beside = {"HCA_ENDPOINT": "HCA_MODEL_NAME", "OPENAI_API_BASE": "HERMES_MODEL"}
    beside["OPENAI_BASE_URL"] = beside["OPENAI_API_BASE"]
    names = {
        "model": ("HERMUX_MODEL", beside.get(variable, "")),
        "key": ("HERMUX_KEY_ENV", found.key_env if variable and not found.name else ""),
        "context": ("HERMUX_CONTEXT_LENGTH", ""),
    }
    values = {"model": found.model, "key": found.key_env, "context": found.context_length}
    asked = {"model": ("-m", flags.model), "key": ("--key-env", flags.key_env), "context": ("", "")}
    said = {"url": url}
    for what, (override, paired) in names.items():
        set_ = [name for name in (override, paired) if name and _value(env, name)]
        plain = url if found.name or not variable else "the server says"
        who = asked[what][0] if asked[what][1] else f"environment ({set_[0]})" if set_ else plain
        said[what] = who if values[what] else "" if what == "key" else "the server says"
    return said


def rehearsal(why: str, given: tuple[str, ...] = ()) -> Endpoint:
    """Return the rehearsal model as an endpoint whose address is not known yet."""
    return Endpoint("", "", 0, kind=EndpointKind.REHEARSAL, source=f"rehearsal model ({why})", given=given)


def given(endpoint: Endpoint, *words: str) -> Endpoint:
    """Return the endpoint with it noted that these parts of it were named for this worker."""
    return replace(endpoint, given=tuple(dict.fromkeys((*endpoint.given, *words))))


def same_server(one: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints are on the same scheme, host and port: where one's key may go to the other."""
    return urlsplit(one.base_url)[:2] == urlsplit(other.base_url)[:2]


def _refuse_without_endpoint(flags: Asked) -> None:
    """Raise UsageError for flags that belong to an endpoint where none is set. A key's name may be a key."""
    hint = "add --endpoint URL, or save one: hermux endpoint set URL -m MODEL"
    if flags.model:
        raise UsageError(f"no endpoint for the model {flags.model!r} is set", hint=hint)
    if flags.key_env:
        raise UsageError("--key-env names a key, but no endpoint to send it to is set", hint=hint)


def _refuse_for_rehearsal(flags: Asked) -> None:
    word = "-m" if flags.model else "--key-env" if flags.key_env else ""
    if word:
        raise UsageError(
            f"{word} means nothing to the rehearsal model, which is what is set",
            hint=f"leave {word} out, or name a server: --endpoint URL",
        )


def _changed(found: Endpoint, flags: Asked, env: Mapping[str, str]) -> Endpoint:
    """Return the endpoint with what was asked for beside the URL."""
    model = flags.model or _value(env, "HERMUX_MODEL")
    key_env = flags.key_env or _value(env, "HERMUX_KEY_ENV")
    context = _value(env, "HERMUX_CONTEXT_LENGTH")
    other = bool(model) and model != found.model
    words = (*([MODEL] if model else []), *([KEY] if key_env else []))
    changed = replace(
        found,
        model=model or found.model,
        key_env=key_env or found.key_env,
        context_length=_context(context) if context else 0 if other else found.context_length,
    )
    return given(changed, *words) if words else changed


def _from_flags(flags: Asked, saved: Endpoint | None) -> Endpoint | None:
    if not flags.url.strip():
        return None
    return _endpoint(flags.url, "", "", "flags", saved)


def _from_env(env: Mapping[str, str], saved: Endpoint | None) -> Endpoint | None:
    if url := _value(env, "HERMUX_ENDPOINT"):
        key = "HERMUX_API_KEY" if _value(env, "HERMUX_API_KEY") else ""
        return _endpoint(url, "", key, "environment (HERMUX_ENDPOINT)", saved)
    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        if url := _value(env, variable):
            key = "OPENAI_API_KEY" if _value(env, "OPENAI_API_KEY") else ""
            return _endpoint(url, _value(env, "HERMES_MODEL"), key, f"environment ({variable})", None)
    if url := _value(env, "HCA_ENDPOINT"):
        key = "HCA_API_KEY" if _value(env, "HCA_API_KEY") else ""
        return _endpoint(url, _value(env, "HCA_MODEL_NAME"), key, "environment (HCA_ENDPOINT)", None)
    return None


def _endpoint(url: str, model: str, key_env: str, source: str, saved: Endpoint | None) -> Endpoint:
    if url.strip().lower() == REHEARSAL:
        return rehearsal(f"asked for by {source}", (ENDPOINT,))
    if is_name(url) and saved is not None:
        return given(
            replace(saved, key_env=saved.key_env or key_env, source=f"{source}: {saved.source}"), ENDPOINT
        )
    return Endpoint(url.strip(), model, 0, key_env=key_env, source=source, given=(ENDPOINT,))


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _context(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"HERMUX_CONTEXT_LENGTH is {text!r}", hint="it is a number of tokens, such as 131072"
        )
    return int(text)
