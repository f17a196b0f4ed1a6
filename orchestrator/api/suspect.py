"""`hermux doctor --worker W`: one worker's own request, alone and in company, and whose fault it is."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.doctor.check import Check, Trouble, fail, timed, warn
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store.redact import KEY_VARIABLE

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet

FEWEST = 2
"""Requests at once, where no more workers run."""
MOST = 16
"""Requests at once at most: the doctor is no load test."""


_SET = re.compile(r"(hermux endpoint set \S+ -m \S+)(?! --roll)")


def examine_worker(fleet: Fleet, name: str, *, limit: float) -> Generator[Check, None, None]:
    """Yield the checks of one worker, the verdict last. Advice to change the endpoint changes workers that run, too."""
    for check in _examined(fleet, name, limit):
        yield replace(check, next=_SET.sub(r"\1 --roll", check.next))


def _examined(fleet: Fleet, name: str, limit: float) -> Iterator[Check]:
    from orchestrator.doctor import single
    from orchestrator.store.desired import load_desired

    spec = load_desired(fleet.paths).workers[name].spec
    picture = fleet.picture()
    entry = picture.workers.get(name) or {}
    root, key = _root(spec, fleet.env), _key(fleet, name)
    facts = [
        timed("worker", lambda: _state(name, entry, picture.warning)),
        timed("settings", lambda: single.setting_of(spec, root, fleet.name)),
        timed("environment", lambda: single.surroundings(spec, _environ(fleet, name, entry), key, root)),
        timed("context", lambda: single.fullness(spec, _used(fleet, name))),
    ]
    if spec.user_profile and (login := _login(spec, root)) is not None:
        facts.append(login)
    yield from facts
    yield from _requests(fleet, spec, key, entry, facts, limit)


def _requests(
    fleet: Fleet, spec: WorkerSpec, key: str, entry: Mapping[str, Any], facts: list[Check], limit: float
) -> Iterator[Check]:
    from orchestrator.doctor import single
    from orchestrator.doctor.endpoint import Examination, judge_tools
    from orchestrator.doctor.target import Target, several

    env = {**fleet.env, **_network(fleet, spec.name)}
    examination = Examination(Target(spec.endpoint, key, env, limit), env, verbatim=True)
    for check in examination.checks(("connection", "models", "context")):
        if check.name == "context":
            check = replace(check, name="server context")
        facts.append(check)
        yield check
    target = examination.target
    answers: list[Any] = []

    def ask_alone() -> Check:
        answers.append(single.alone(target))
        if isinstance(answers[0], Trouble):
            raise answers[0]
        return replace(judge_tools(target, answers[0]), name="alone")

    lone = timed("alone", ask_alone)
    yield lone
    crowd = None
    if not isinstance(answers[0], Trouble) and _is_suspect(entry, facts):
        crowd = timed("together", lambda: single.together(several(target, _company(fleet, spec)), target))
        yield crowd
    other = single.other_model(target) if isinstance(answers[0], Trouble) else ""
    if not isinstance(answers[0], Trouble) and lone.failed:
        yield fail("verdict", f"it is the model, or how it is served: {lone.seen}", lone.next)
        return
    yield single.verdict(spec.name, answers[0], crowd, facts, other=other, model=spec.endpoint.model)


def _is_suspect(entry: Mapping[str, Any], facts: list[Check]) -> bool:
    """Whether something went wrong that company may explain: its last turn, a hold, or a failure now."""
    failed = (entry.get("last_turn") or {}).get("outcome") == "failed"
    return failed or entry.get("word") in ("held", "failed") or any(fact.failed for fact in facts)


def _company(fleet: Fleet, spec: WorkerSpec) -> int:
    """Return how many workers of the fleet run on the same server, within bounds."""
    running = [
        worker
        for worker in fleet.picture().workers.values()
        if worker.get("phase") in ("up", "starting")
        and (worker.get("endpoint") or {}).get("base_url") == spec.endpoint.base_url
    ]
    return min(MOST, max(FEWEST, len(running)))


def _state(name: str, entry: Mapping[str, Any], warning: str) -> Check:
    from orchestrator.doctor.single import state_of

    if not entry:
        return fail("worker", f"the fleet knows nothing of {name} yet", f"hermux start {name}")
    found = state_of(name, entry)
    if warning and found.state == "ok":
        said, _, next_step = warning.partition(" → ")
        return warn("worker", said, next_step or f"hermux why {name}")
    return found


def _login(spec: WorkerSpec, root: Path) -> Check | None:
    from orchestrator.doctor.foreign import logins
    from orchestrator.hermes.home import profile_dir

    return logins([profile_dir(root, spec.hermes_profile)], used=True)


def _root(spec: WorkerSpec, env: Mapping[str, str]) -> Path:
    from orchestrator.hermes.install import hermes_root

    return Path(spec.hermes_root) if spec.hermes_root else hermes_root(env)


def _variables(fleet: Fleet, name: str) -> Mapping[str, str]:
    from orchestrator.store.env import read_env

    return read_env(fleet.paths.worker(name))


def _key(fleet: Fleet, name: str) -> str:
    return _variables(fleet, name).get(KEY_VARIABLE, "")


def _network(fleet: Fleet, name: str) -> dict[str, str]:
    """Return the proxies and certificates that the worker was made with."""
    from orchestrator.fleet.proxy import BYPASS, CERTIFICATES, PROXIES

    return {k: v for k, v in _variables(fleet, name).items() if k in (*PROXIES, *BYPASS, *CERTIFICATES)}


def _environ(fleet: Fleet, name: str, entry: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the variables of its Hermes, {} when none runs."""
    import psutil

    from orchestrator.hermes.launch import read_pid

    pid = read_pid(fleet.paths.worker(name).attempt(int(entry.get("attempt") or 0)))
    if not pid or entry.get("phase") not in ("up", "starting"):
        return {}
    with suppress(psutil.Error, OSError):
        found = psutil.Process(pid).environ()
        return found if found.get("HERMUX_WORKER") == name else {}
    return {}


def _used(fleet: Fleet, name: str) -> int:
    """Return the tokens of the newest request of the main conversation, 0 = none was made."""
    from orchestrator.fleet.events import EventName
    from orchestrator.hermes.feed import iter_events

    used = 0
    for event in iter_events(fleet.paths.worker(name).dir):
        if event.name is EventName.RESPONSE and event.main:
            usage = event.data.get("usage") or {}
            used = int(usage.get("in") or 0) + int(usage.get("cache_read") or 0)
    return used
