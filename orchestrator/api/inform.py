"""What `hermux endpoint` shows, saves, tests and removes."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.api.endpoint import choose, find
from orchestrator.errors import HermuxError, UsageError
from orchestrator.fleet.resolve import REHEARSAL, Asked, check_endpoint_name, is_name, origins, rehearsal
from orchestrator.fleet.roll import Target
from orchestrator.fleet.spec import Endpoint, EndpointKind

WITHIN = 15.0
"""Seconds that all saved endpoints get for their answers, asked at once; each has 5."""


@dataclass(frozen=True, slots=True)
class EndpointReport:
    """An endpoint, where it is saved, who says what of it, and what was said about it."""

    endpoint: Endpoint
    engine: str = ""
    saved: str = ""
    """The file that holds the saved endpoints, "" if there are none."""
    notes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Who says `url`, `model`, `key` and `context`."""
    fallback: tuple[Endpoint, ...] = ()
    default: bool = False
    """It is the one that new workers get when nothing else is named."""
    key: str = field(default="", repr=False)
    """The key's value, for handing on; never shown."""

    @property
    def target(self) -> Target:
        """What workers are to have when the fleet is rolled."""
        plain = replace(self.endpoint, given=())
        return Target(plain, self.key, self.fallback, self.default)


@dataclass(frozen=True, slots=True)
class Listed:
    """One saved endpoint in the list."""

    name: str
    endpoint: Endpoint
    fallback: tuple[Endpoint, ...] = ()
    default: bool = False
    answers: bool | None = None
    """None = it was not asked."""
    said: str = ""
    """Its engine, or what is wrong."""


def current(env: Mapping[str, str] | None = None, name: str = "") -> EndpointReport:
    """Return the endpoint that a new worker would get, or a saved one; no server is asked."""
    from orchestrator.store.endpoints import load_endpoint, load_fallback

    env = os.environ if env is None else env
    asked = Asked()
    if name:
        found, said = load_endpoint(env, _saved_word(name)), list[str]()
        assert found is not None
        told = dict.fromkeys(("url", "model", "context", *(["key"] if found.key_env else [])), found.source)
    else:
        found, said = find(env, asked)
        told = origins(found, asked, env)
    fallback = load_fallback(env, found)
    return EndpointReport(
        found,
        saved=_file(env),
        notes=tuple(said),
        origins=told,
        fallback=fallback,
        default=_is_default(env, found),
    )


def save(
    url: str,
    model: str,
    key_env: str,
    env: Mapping[str, str] | None = None,
    *,
    name: str = "",
    fallback: Sequence[str] = (),
) -> EndpointReport:
    """Ask the server, and save the endpoint; raises NotReady, UsageError, and then nothing is saved.

    Without a name it is saved as `default`, and is the default.
    """
    from orchestrator.store.endpoints import load_endpoint, load_fallback, save_endpoint

    env = os.environ if env is None else env
    if name:
        check_endpoint_name(name)
    _check_url(url)
    if url.strip().lower() == REHEARSAL:
        _refuse_beside_rehearsal(model, key_env, fallback)
        report = EndpointReport(rehearsal("asked for by hermux endpoint set"), engine="rehearsal model")
    else:
        report = test(url, model, key_env, env)
    others = _fallback(report, fallback, env)
    save_endpoint(report.endpoint, env, name=name, fallback=others)
    stored = load_endpoint(env, name)
    assert stored is not None
    return replace(
        report,
        endpoint=stored,
        origins={},
        saved=_file(env),
        notes=(*report.notes, *_overridden(env)),
        fallback=load_fallback(env, stored),
        default=_is_default(env, stored),
    )


def test(
    url: str = "", model: str = "", key_env: str = "", env: Mapping[str, str] | None = None
) -> EndpointReport:
    """Ask the endpoint that is given, or that a new worker would get; raises NotReady, UsageError."""
    env = os.environ if env is None else env
    asked = Asked(url, model, key_env)
    found, _ = find(env, asked)
    chosen = choose(env, asked)
    engine = "rehearsal model" if chosen.endpoint.kind is EndpointKind.REHEARSAL else chosen.engine
    return EndpointReport(
        chosen.endpoint,
        engine=engine,
        notes=chosen.said,
        origins=origins(found, asked, env),
        fallback=chosen.fallback,
        default=_is_default(env, chosen.endpoint),
        key=chosen.key,
    )


def use(name: str, env: Mapping[str, str] | None = None, *, ask: bool = False) -> EndpointReport:
    """Make a saved endpoint the default. Raises UsageError for an unknown name; with `ask` it has to answer."""
    from orchestrator.store.endpoints import use_endpoint

    env = os.environ if env is None else env
    asked = test(_saved_word(name), env=env) if ask else EndpointReport(rehearsal("not asked"))
    use_endpoint(_saved_word(name), env)
    found = current(env, name)
    notes = (*asked.notes, *found.notes, *_overridden(env))
    return replace(found, engine=asked.engine, key=asked.key, notes=notes)


def remove(name: str, env: Mapping[str, str] | None = None) -> bool:
    """Forget a saved endpoint; workers that have it keep it. Return whether it was the default."""
    from orchestrator.store.endpoints import forget_endpoint, load_endpoints

    env = os.environ if env is None else env
    was_default = load_endpoints(env).default == name
    forget_endpoint(env, _saved_word(name))
    return was_default


def listed(env: Mapping[str, str] | None = None, *, ask: bool = False) -> list[Listed]:
    """Return all saved endpoints, in the order in which they were saved; with `ask` all are asked at once."""
    from orchestrator.store.endpoints import load_endpoints

    env = os.environ if env is None else env
    saved = load_endpoints(env)
    found = [
        Listed(name, each, saved.fallback.get(name, ()), name == saved.default)
        for name, each in saved.endpoints.items()
    ]
    return _asked(found, env) if ask else found


def overridden(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return a line when the environment names an endpoint, which then comes before the saved ones."""
    return _overridden(os.environ if env is None else env)


def _asked(found: Sequence[Listed], env: Mapping[str, str]) -> list[Listed]:
    answers: dict[str, Listed] = {}

    def ask(each: Listed) -> None:
        try:
            report = test(each.name, env=env)
            answers[each.name] = replace(each, answers=True, said=report.engine)
        except HermuxError as error:
            answers[each.name] = replace(each, answers=False, said=str(error))

    threads = [threading.Thread(target=ask, args=(each,), daemon=True) for each in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN)
    return [answers.get(each.name, replace(each, answers=False, said="no answer")) for each in found]


def _fallback(report: EndpointReport, models: Sequence[str], env: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the fallback models, each known to the server; raises NotReady for one that is not."""
    from orchestrator.health.endpoint import check

    asked = [replace(report.endpoint, model=model, context_length=0) for model in dict.fromkeys(models)]
    for each in asked:
        if each.model == report.endpoint.model:
            raise UsageError(
                f"--fallback {each.model} is the model itself", hint="name another model of this server"
            )
    return tuple(check(each, env)[0] for each in asked)


def _check_url(url: str) -> None:
    """Raise UsageError for a bare word: it would be taken for a host's name."""
    if is_name(url):
        raise UsageError(
            f"{url!r} is no URL",
            hint=f"hermux endpoint set http://HOST:PORT/v1 --name {url.lower()}; "
            f"to make a saved one the default: hermux endpoint use {url.lower()}",
        )


def _refuse_beside_rehearsal(model: str, key_env: str, fallback: Sequence[str]) -> None:
    for flag, value in (("-m", model), ("--key-env", key_env), ("--fallback", fallback)):
        if value:
            raise UsageError(f"{flag} means nothing to the rehearsal model", hint=f"leave {flag} out")


def _saved_word(name: str) -> str:
    if not is_name(name):
        raise UsageError(
            f"{name[:60]!r} is not the name of a saved endpoint", hint="hermux endpoint ls shows the names"
        )
    return name.strip().lower()


def _overridden(env: Mapping[str, str]) -> tuple[str, ...]:
    for name in ("HERMUX_ENDPOINT", "OPENAI_API_BASE", "OPENAI_BASE_URL", "HCA_ENDPOINT"):
        if env.get(name, "").strip():
            return (f"{name} is set here, and comes before the saved default",)
    return ()


def _is_default(env: Mapping[str, str], endpoint: Endpoint) -> bool:
    from orchestrator.store.endpoints import load_endpoints

    return bool(endpoint.name) and load_endpoints(env).default == endpoint.name


def _file(env: Mapping[str, str]) -> str:
    from orchestrator.store.endpoints import saved_path

    path = saved_path(env)
    return str(path) if path.exists() else ""
