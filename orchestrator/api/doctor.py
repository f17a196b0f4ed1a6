"""`hermux doctor`: every check in its order, each handed out as it is made."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.api.endpoint import find
from orchestrator.doctor.check import Check as Check
from orchestrator.doctor.check import skipped, timed
from orchestrator.errors import UsageError
from orchestrator.fleet.resolve import Asked
from orchestrator.fleet.spec import Endpoint, EndpointKind

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.doctor.target import Target

LIMIT = 30.0
"""Seconds for one answer of the model."""
ROOM = 5.0
"""A whole turn gets this many times the limit, with its long prompt, tools and retries."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one call of the doctor is to look at."""

    full: bool = False
    worker: str = ""
    limit: float = LIMIT
    size: os.terminal_size | None = None
    """Of the caller's terminal; None = it has none."""


def examine(fleet: Fleet, wanted: Wanted) -> Generator[Check, None, None]:
    """Yield each check when it is made. Closing the iterator early removes what was made, as its end does.

    Raises UsageError for a worker that does not exist, and for two questions at once.
    """
    if wanted.full and wanted.worker:
        raise UsageError("--full and --worker are two questions", hint="ask one: hermux doctor --full")
    if wanted.worker:
        from orchestrator.api.suspect import examine_worker

        name = fleet.worker(wanted.worker).name
        return examine_worker(fleet, name, limit=wanted.limit)
    return _everything(fleet, wanted)


def _everything(fleet: Fleet, wanted: Wanted) -> Generator[Check, None, None]:
    from orchestrator.doctor.place import place

    with ExitStack() as stack:
        folder = stack.enter_context(place(fleet.env))
        yield from _all(fleet, wanted, folder, stack)


def _all(fleet: Fleet, wanted: Wanted, folder: Path, stack: ExitStack) -> Iterator[Check]:
    from orchestrator.doctor import foreign, host, install, tmux

    env = fleet.env
    tmux_found = timed("tmux", lambda: tmux.tmux(env))
    yield tmux_found
    name = f"doctor-{secrets.token_hex(3)}"
    yield _after(tmux_found, "tmux server", lambda: tmux.server(_folder(folder / "tmux"), name, env))
    hermes_found = timed("hermes", lambda: install.hermes(env))
    yield hermes_found
    yield _after(hermes_found, "hermes quirks", lambda: install.quirks(env))
    yield from host.checks(env, size=wanted.size)
    yield timed("environment", lambda: foreign.environment(env))
    yield timed("fleet", lambda: _fleet(fleet))
    said: list[Check] = []
    target = yield from _endpoint(fleet, wanted, folder, stack, said)
    login = foreign.logins(
        foreign.login_homes(env), used=target is None or target.endpoint.kind is EndpointKind.REHEARSAL
    )
    if login is not None:
        yield login
    broken = _first_failed([hermes_found, *said])
    yield from _turn(fleet, wanted, folder, target, broken)
    if wanted.full:
        from orchestrator.api.trial import NAMES, trial

        broken = _first_failed([tmux_found, hermes_found, *said])
        if broken or target is None:
            yield from (skipped(each, f"not tried, since {broken or 'endpoint'!r} failed") for each in NAMES)
        else:
            yield from trial(target, env, _folder(folder / "trial"), limit=ROOM * wanted.limit)


def _fleet(fleet: Fleet) -> Check:
    """Look at the fleet as it stands, if there is one; nothing in it is changed."""
    from orchestrator.api.supervisor import check_version
    from orchestrator.doctor.check import fail, ok, warn
    from orchestrator.hermes.home import is_ours
    from orchestrator.hermes.install import hermes_root

    root = hermes_root(fleet.env)
    for folder in sorted(root.glob(f"profiles/hx-{fleet.name}-*")):
        if not is_ours(root, folder.name):
            return fail(
                "fleet", f"name conflict: {folder} was not made by hermux", f"mv {folder} {folder}.aside"
            )
    fleet.server().state()  # raises when somebody else's server is on our socket
    picture = fleet.picture()
    if picture.supervisor is not None:
        check_version(picture.supervisor)
    if not picture.workers:
        return ok("fleet", f"{fleet.name}: no workers")
    held = [name for name, worker in picture.workers.items() if worker.get("word") in ("held", "failed")]
    if held:
        told = ", ".join(f"{name} is {picture.workers[name].get('word')}" for name in held)
        return warn("fleet", f"{fleet.name}: {told}", f"hermux doctor --worker {held[0]}")
    if picture.warning:
        said, _, step = picture.warning.partition(" → ")
        return warn("fleet", f"{fleet.name}: {said}", step or "hermux ls")
    return ok("fleet", f"{fleet.name}: {len(picture.workers)} workers, none held or failed")


def _endpoint(
    fleet: Fleet, wanted: Wanted, folder: Path, stack: ExitStack, said: list[Check]
) -> Generator[Check, None, Target | None]:
    """Yield the checks of the endpoint that `spawn` would choose; return it as it was found, None without one."""
    from orchestrator.doctor.endpoint import STEPS, Examination, described
    from orchestrator.doctor.place import rehearsal
    from orchestrator.doctor.target import Target

    found: list[tuple[Endpoint, str]] = []

    def look() -> Check:
        from orchestrator.health.endpoint import key_value
        from orchestrator.health.url import normalise_url

        endpoint, notes = find(fleet.env, Asked())
        if endpoint.kind is EndpointKind.REHEARSAL:
            found.append((replace(stack.enter_context(rehearsal(folder)), source=endpoint.source), ""))
        else:
            normalise_url(endpoint.base_url)  # refuses one with a password in it, unshown
            found.append((endpoint, key_value(endpoint, fleet.env)))
        return described(endpoint, notes)

    said.append(timed("endpoint", look))
    yield said[0]
    if not found:
        yield from (skipped(name, "not asked, since 'endpoint' failed") for name in STEPS)
        return None
    endpoint, key = found[0]
    examination = Examination(Target(endpoint, key, fleet.env, wanted.limit), fleet.env)
    for check in examination.checks():
        said.append(check)
        yield check
    return examination.target


def _turn(fleet: Fleet, wanted: Wanted, folder: Path, target: Target | None, broken: str) -> Iterator[Check]:
    """Yield the checks of a real Hermes outside tmux."""
    from orchestrator.doctor.check import ok
    from orchestrator.doctor.turn import PROMPT_LIMIT, RealHermes
    from orchestrator.hermes.install import find_hermes

    names = ("hermes start", "hermes turn")
    if broken or target is None:
        yield from (skipped(name, f"not tried, since {broken or 'endpoint'!r} failed") for name in names)
        return
    endpoint = replace(target.endpoint, context_length=target.endpoint.context_length or 131072)
    with ExitStack() as stack:
        made: list[RealHermes] = []

        def start() -> Check:
            path = find_hermes(fleet.env).path
            real = RealHermes(_folder(folder / "turn"), path, endpoint, target.key, fleet.env)
            made.append(stack.enter_context(real))
            took = real.wait_prompt(max(PROMPT_LIMIT, wanted.limit))
            return ok(names[0], f"outside tmux, in a throw-away profile: its prompt stood after {took:.1f} s")

        def turn() -> Check:
            took, answer = made[0].one_turn(ROOM * wanted.limit)
            return ok(names[1], f"one real turn took {took:.1f} s: {' '.join(answer.split())[:40]!r}")

        started = timed(names[0], start)
        yield replace(started, seen=target.hidden(started.seen))
        done = _after(started, names[1], turn)
        yield replace(done, seen=target.hidden(done.seen), next=target.hidden(done.next))


def _after(earlier: Check, name: str, look: Callable[[], Check]) -> Check:
    if earlier.failed:
        return skipped(name, f"not tried, since {earlier.name!r} failed")
    return timed(name, look)


def _first_failed(checks: list[Check]) -> str:
    return next((check.name for check in checks if check.failed), "")


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    return path
