"""`--hermes-profile`: a worker on a profile that the user had before; one worker a profile, and no other Hermes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import UsageError
from orchestrator.fleet.resolve import MODEL, given
from orchestrator.fleet.role import Role
from orchestrator.fleet.spec import WorkerSpec
from orchestrator.store.desired import load_desired
from orchestrator.store.files import BadFile, read_json
from orchestrator.store.paths import FleetPaths

if TYPE_CHECKING:
    from orchestrator.api.casting import Cast
    from orchestrator.api.order import Order
    from orchestrator.api.remove import Removed
    from orchestrator.hermes.own import OwnProfile

Ask = Callable[[str], bool]
"""Asks a person a question that is answered with yes or no."""


def cast_own(paths: FleetPaths, root: Path, role: Role, order: Order) -> Cast:
    """Return the role on the user's profile. Raises UsageError when it is not there, or not free."""
    from orchestrator.api.casting import Cast
    from orchestrator.hermes.own import find_own

    own = find_own(root, order.hermes_profile)
    check_free(paths, own.home, own.name, but=order.name if order.replace else "")
    model = order.asked.model
    endpoint = given(replace(own.endpoint, model=model), MODEL) if model else own.endpoint
    return Cast(role, endpoint, said=(_said(own),))


def _said(own: OwnProfile) -> str:
    return f"{own.name} keeps its own model, approvals and persona: nothing of hermux but its plugin is put into {own.home}"


def check_free(paths: FleetPaths, home: Path, name: str, *, but: str = "") -> None:
    """Raise UsageError when a worker of any fleet has the profile, or a Hermes runs on it."""
    from orchestrator.hermes.own import running_on

    for fleet, worker, spec in _workers(paths):
        if (fleet, worker) != (paths.fleet, but) and spec.get("user_profile") and _home(spec) == home:
            option = "" if fleet == "default" else f" -F {fleet}"
            raise UsageError(
                f"the Hermes profile {name} belongs to the worker {worker} of fleet {fleet}: one at a time",
                hint=f"hermux stop {worker}{option} && hermux rm {worker}{option}",
            )
    running = None if but else running_on(home)
    if running is not None:
        raise UsageError(
            f"a Hermes runs on the profile {name} (pid {running.pid}, {running.what}): two write over each other",
            hint="end it first (/exit), then spawn again",
        )


def _workers(paths: FleetPaths) -> list[tuple[str, str, Mapping[str, object]]]:
    """Return the fleet, name and spec of every worker of this home."""
    found: list[tuple[str, str, Mapping[str, object]]] = []
    for file in sorted(paths.root.parent.glob("*/desired.json")):
        try:
            workers = (read_json(file) or {}).get("workers") or {}
        except BadFile:
            continue
        for name, entry in workers.items() if isinstance(workers, dict) else ():
            spec = entry.get("spec") if isinstance(entry, dict) else None
            if isinstance(spec, dict):
                found.append((file.parent.name, str(name), spec))
    return found


def _home(spec: Mapping[str, object]) -> Path:
    from orchestrator.hermes.home import profile_dir

    return profile_dir(Path(str(spec.get("hermes_root") or "")), str(spec.get("hermes_profile") or ""))


@contextmanager
def plugged(root: Path, order: Order, ask: Ask | None) -> Iterator[list[str]]:
    """Put our plugin into the user's profile after a yes; yields what a person should hear.

    `ask` is None where nobody can be asked: that is a no. It is taken away again when what follows fails.
    """
    from orchestrator.hermes.enabling import has_plugin, put_plugin, take_plugin
    from orchestrator.hermes.home import profile_dir

    name = order.hermes_profile
    home = profile_dir(root, name)
    if not name or has_plugin(home):
        yield []
        return
    question = (
        f"May hermux put its plugin into {home / 'plugins'} and its name into plugins.enabled of config.yaml there?"
        " It only reports what Hermes does; `hermux rm --unplug` takes it away again."
    )
    if not (order.yes or (ask is not None and ask(question))):
        yield [f"without the plugin in {home}, this worker is followed by its screen alone; with it: --yes"]
        return
    put_plugin(home)
    try:
        yield [f"the plugin is in {home / 'plugins' / 'hermux'}; to take it away: hermux rm --unplug WORKER"]
    except BaseException:
        take_plugin(home)
        raise


def check_unplug(paths: FleetPaths, names: Sequence[str]) -> None:
    """Raise UsageError unless all these workers are on a profile that the user had before."""
    wanted = load_desired(paths).workers
    others = [name for name in names if name in wanted and not wanted[name].spec.user_profile]
    if others:
        raise UsageError(
            f"--unplug is for workers on a Hermes profile of yours, and {', '.join(others)} is on none",
            hint=f"hermux rm {' '.join(others)}",
        )


def with_profile(removed: Removed, spec: WorkerSpec, root: Path, *, unplug: bool) -> Removed:
    """Return what came of a worker with a line about the user's profile that it worked on."""
    from orchestrator.hermes.enabling import has_plugin, take_plugin
    from orchestrator.hermes.home import profile_dir

    if not spec.user_profile:
        return removed
    home = profile_dir(root, spec.hermes_profile)
    left = take_plugin(home) if unplug else ""
    text = f"your Hermes profile {spec.hermes_profile} is as it was"
    if left:
        text = f"the plugin stays in your Hermes profile {spec.hermes_profile}: {left}"
    elif unplug:
        text += ", and the plugin is out of it"
    elif has_plugin(home):
        text += ", with the plugin in it"
    return replace(removed, profile=text)
