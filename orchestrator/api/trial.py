"""`hermux doctor --full`: two workers at once, in a fleet of their own that is gone afterwards.

State, Hermes profiles and working directories lie in the doctor's own folder; tmux and supervisor are the real
ones. A relay in front of the endpoint counts what is in flight.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.doctor.check import Check, Trouble, fail, ok, timed, warn
from orchestrator.errors import HermuxError
from orchestrator.fleet.resolve import Asked

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.doctor.relay import Relay
    from orchestrator.doctor.target import Target

NAMES = ("two workers", "two files", "two requests")
WORKERS = ("one", "two")
READY = 180.0
"""Seconds for both prompts."""
KEY = "HERMUX_DOCTOR_KEY"
_UNSET = (
    "HERMUX_ENDPOINT",
    "HERMUX_MODEL",
    "HERMUX_KEY_ENV",
    "OPENAI_API_BASE",
    "OPENAI_BASE_URL",
    "HCA_ENDPOINT",
)


def trial(target: Target, env: Mapping[str, str], folder: Path, *, limit: float) -> Iterator[Check]:
    """Yield the three checks; `limit` is the seconds for the two turns. Nothing is left when it ends or is closed."""
    from orchestrator.doctor.relay import Relay

    with ExitStack() as stack:
        relay = stack.enter_context(
            Relay(target.endpoint.base_url, key=target.key, env=env, gate=len(WORKERS), timeout=limit)
        )
        fleet = _fleet(target, env, folder)
        stack.callback(end, fleet, folder)
        words = {name: f"{name} {secrets.token_hex(4)}" for name in WORKERS}
        begun = timed(NAMES[0], lambda: _spawn(fleet, target, relay, folder))
        yield begun
        if begun.failed:
            return
        files = timed(NAMES[1], lambda: _files(fleet, target, folder, words, limit))
        yield replace(files, seen=target.hidden(files.seen))
        yield timed(NAMES[2], lambda: _flight(target, relay))


def end(fleet: Fleet, folder: Path) -> None:
    """Stop the workers, the supervisor and the tmux server of the fleet, and whatever else runs in `folder`."""
    from orchestrator.api.supervisor import running
    from orchestrator.doctor.place import end_all, undisturbed

    with undisturbed():
        with suppress(HermuxError, OSError):
            names = fleet.names()
            if names:
                fleet.stop(names, grace=0, wait=True)
        holder = running(fleet.paths)
        if holder and holder.get("pid"):
            _terminate(int(holder["pid"]))
        with suppress(HermuxError, OSError):
            fleet.server().kill_server()
        end_all(folder)
        shutil.rmtree(fleet.paths.root, ignore_errors=True)


def _terminate(pid: int) -> None:
    import signal

    from orchestrator.terminal.process import Process

    process = Process.of(pid)
    if process is not None and process.signal(signal.SIGTERM) and not process.wait_gone(5):
        process.signal(signal.SIGKILL)
        process.wait_gone(2)


def _fleet(target: Target, env: Mapping[str, str], folder: Path) -> Fleet:
    from orchestrator.api.fleet import Fleet
    from orchestrator.store.paths import make_private

    own = {name: value for name, value in env.items() if name not in _UNSET}
    own |= {
        "XDG_STATE_HOME": str(folder / "state"),
        "HERMES_HOME": str(folder / "hermes"),
        "TMPDIR": str(make_private(folder / "tmp")),  # a killed Hermes leaves files there
        "HERMUX_CONTEXT_LENGTH": str(target.endpoint.context_length or 131072),
    }
    if target.key:
        own[KEY] = target.key
    return Fleet.open(f"doctor-{secrets.token_hex(3)}", env=own)


def _spawn(fleet: Fleet, target: Target, relay: Relay, folder: Path) -> Check:
    from orchestrator.api.order import Order

    begun = time.monotonic()
    for name in WORKERS:
        cwd = folder / "work" / name
        cwd.mkdir(parents=True, mode=0o700)
        asked = Asked(relay.url, target.endpoint.model, KEY if target.key else "")
        order = Order(roles=("general",), name=name, cwd=str(cwd), asked=asked)
        fleet.spawn_order(order, wait=False)
    fleet.wait_ready(WORKERS, timeout=READY)
    took = time.monotonic() - begun
    return ok(NAMES[0], f"in a fleet of their own ({fleet.name}), both ready after {took:.1f} s")


def _files(fleet: Fleet, target: Target, folder: Path, words: Mapping[str, str], limit: float) -> Check:
    """Ask both at once for a file each, and look at the files."""
    for name in WORKERS:
        fleet.worker(name).send(_order(folder / "work" / name / "doctor.txt", words[name], target.rehearsal))
    begun = time.monotonic()
    try:
        fleet.wait(WORKERS, timeout=limit)
    except HermuxError as error:
        raise Trouble(f"two workers at once: {error}", hint=_why(error)) from None
    took = time.monotonic() - begun
    for name in WORKERS:
        path = folder / "work" / name / "doctor.txt"
        if not path.is_file():
            answer = _last_answer(fleet, name)
            return fail(
                NAMES[1],
                f"worker {name} said it was done ({answer!r}), but made no file",
                "the model does not call its tools: see the check 'tools', or use a larger model",
            )
        found = path.read_text(errors="replace").strip()
        if found != words[name]:
            return fail(
                NAMES[1], f"worker {name} wrote {found[:40]!r}, not {words[name]!r}", "use a larger model"
            )
    return ok(NAMES[1], f"two files are on disk with the right content, after {took:.1f} s")


def _flight(target: Target, relay: Relay) -> Check:
    from orchestrator.doctor.relay import one_after_the_other
    from orchestrator.doctor.single import slots

    paths = ", ".join(sorted({each.path for each in relay.passed})) or "no path"
    models = ", ".join(sorted({each.model for each in relay.passed})) or "no model"
    keyed = all(each.with_key for each in relay.passed) if target.key else None
    key = f"key of ${target.endpoint.key_env}" if keyed else "no key" if keyed is None else "ANOTHER KEY"
    how = f"POST {paths}, model {models}, {key}"
    if keyed is False:
        return fail(
            NAMES[2],
            f"requests went without the key of ${target.endpoint.key_env}: {how}",
            "hermux endpoint show",
        )
    if relay.most < len(WORKERS):
        return fail(
            NAMES[2],
            f"never more than {relay.most} request at the endpoint: {how}",
            "look at both workers while they run: hermux ls -w",
        )
    if one_after_the_other(relay.passed):
        return warn(
            NAMES[2],
            f"{relay.most} were sent at once, but the endpoint answers one after the other: {how}",
            slots(target, len(WORKERS)),
        )
    return ok(NAMES[2], f"{relay.most} in flight at once, {len(relay.passed)} in all: {how}")


def _order(path: Path, word: str, rehearsal: bool) -> str:
    text = f"Make the file {path.name} in your working directory. It holds only this line: {word}"
    if rehearsal:
        write = {"name": "write_file", "args": {"path": str(path), "content": f"{word}\n"}}
        text += " " + json.dumps({"steps": [{"delay": 1, "tools": [write]}, {"text": "written"}]})
    return text


def _last_answer(fleet: Fleet, name: str) -> str:
    from orchestrator.fleet.events import EventName
    from orchestrator.hermes.feed import iter_events

    said = [
        event.data.get("preview")
        for event in iter_events(fleet.paths.worker(name).dir)
        if event.name is EventName.TURN_ANSWER and event.main
    ]
    return " ".join(str(said[-1] or "").split())[:60] if said else ""


def _why(error: HermuxError) -> str:
    from orchestrator.doctor.foreign import oauth_error

    return (
        oauth_error(str(error)) or "run one by hand and watch it: hermux spawn --name try ; hermux attach try"
    )
