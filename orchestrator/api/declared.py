"""What the workers of a `fleet.yaml` are ordered as: paths seen from the file, variables by reference, prompts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.api.order import Isolation, Order, check_cwd, check_text, read_text
from orchestrator.errors import UsageError
from orchestrator.fleet.resolve import Asked
from orchestrator.fleet.spec import RestartPolicy
from orchestrator.store.env import check_variable, parse_env_file
from orchestrator.store.fleetfile import Declared, FleetFile
from orchestrator.store.roles import restart_fields
from orchestrator.store.yamlfile import Place

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def orders(file: FleetFile, env: Mapping[str, str]) -> dict[str, Order]:
    """Return an order for each worker, in start order. Raises UsageError with all faults of the file."""
    found = {name: _order(file, worker, env) for name, worker in file.workers.items()}
    file.check()
    there = Counter(order.cwd for order in found.values() if order.isolation is Isolation.AUTO)
    return {
        name: replace(order, beside=there[order.cwd] - 1) if order.isolation is Isolation.AUTO else order
        for name, order in found.items()
    }


def _order(file: FleetFile, worker: Declared, env: Mapping[str, str]) -> Order:
    fields = worker.fields
    place = "repo" if fields.get("repo") else "cwd"
    if fields.get("repo") and fields.get("cwd"):
        file.fault(
            file.place(worker, "cwd"), "cwd and repo exclude each other: repo is a cwd in a git repository"
        )
    key_env = str(fields.get("key_env") or "")
    if key_env and not env.get(key_env):
        file.fault(
            file.place(worker, "key_env"), f"the variable {key_env} is not set here: export {key_env}=…"
        )
    tree = fields.get("worktree")
    where = str(_directory(file, worker, place))
    return Order(
        count=1,
        roles=(worker.role.name,),
        name=worker.name,
        isolation=Isolation.AUTO if tree is None else Isolation.WORKTREE if tree else Isolation.SHARED,
        variables=_variables(file, worker, env),
        asked=Asked(str(fields.get("endpoint") or ""), str(fields.get("model") or ""), key_env),
        prompt=_prompt(file, worker),
        toolsets=tuple(fields.get("toolsets") or ()),
        max_turns=int(fields.get("max_turns") or 0),
        restart=_restart(worker),
        after=worker.after,
        source=str(file.path),
        cwd=where if place == "cwd" else "",
        repo=where if place == "repo" else "",
    )


def _seen_from(file: FleetFile, text: str) -> Path:
    return file.path.parent / Path(text).expanduser()


def _directory(file: FleetFile, worker: Declared, field: str) -> Path:
    path = _seen_from(file, str(worker.fields.get(field) or "."))
    try:
        return check_cwd(str(path))
    except UsageError as error:
        file.fault(file.place(worker, field), f"{error}" + (f"; {error.hint}" if error.hint else ""))
        return path


def _variables(file: FleetFile, worker: Declared, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env_file` and, over them, of `env`. No fault holds a value."""
    found: dict[str, str] = {}
    if named := worker.fields.get("env_file"):
        try:
            found = parse_env_file(_seen_from(file, str(named)))
        except UsageError as error:
            file.fault(file.place(worker, "env_file"), str(error))
    for name, text in worker.fields["env"].items():
        own = (*worker.place("env"), name)
        place: Place = own if own in file.located.lines else ("defaults", "env", name)
        try:
            check_variable(name, text)
        except UsageError as error:
            file.fault(place, f"{error}; {error.hint}")
        for reference in REFERENCE.findall(text):
            if reference not in env:
                file.fault(place, f"the variable {reference} is not set here: export {reference}=…")
        found[name] = REFERENCE.sub(lambda match: env.get(match[1], ""), text)
    return found


def _prompt(file: FleetFile, worker: Declared) -> str:
    text, named = str(worker.fields.get("prompt") or ""), worker.fields.get("prompt_file")
    place = worker.place("prompt_file" if named else "prompt")
    if text and named:
        file.fault(place, "prompt and prompt_file exclude each other")
    try:
        text = read_text(str(_seen_from(file, str(named)))) if named else text
        if text or named:
            check_text(text)
    except UsageError as error:
        file.fault(place, str(error))
    return text


def _restart(worker: Declared) -> RestartPolicy | None:
    """Return the role's policy with the fields that the file gives."""
    given = worker.fields.get("restart")
    return (
        replace(worker.role.restart, **restart_fields(given.model_dump(exclude_unset=True)))
        if given is not None
        else None
    )
