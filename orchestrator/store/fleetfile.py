"""`fleet.yaml`: a whole fleet as a person declares it, read strictly. What a file comes to, not how it is made so.

workers:
  lead: {role: orchestrator, prompt: "Divide the work."}
  coder: {count: 2, after: [lead]}       # coder-1 and coder-2
groups:
  front: [lead, coder-1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import BadName, UsageError
from orchestrator.fleet.expand import MOST
from orchestrator.fleet.role import Role
from orchestrator.fleet.sequence import cycle, in_order
from orchestrator.fleet.spec import check_name
from orchestrator.store.paths import RESERVED
from orchestrator.store.role_faults import faults_of
from orchestrator.store.roles import list_roles, load_role
from orchestrator.store.yamlfile import Located, Place, read

if TYPE_CHECKING:
    from orchestrator.store.fleetfile_schema import FleetFile as Checked
    from orchestrator.store.fleetfile_schema import Worker

NAME = "fleet.yaml"
EXAMPLE = "workers: {coder: {count: 2}}"


@dataclass(frozen=True, slots=True)
class Declared:
    """One worker of the file: the entry's fields over those of `defaults`."""

    name: str
    entry: str
    """The key that it stands under: its name, or its name less the number."""
    role: Role
    fields: Mapping[str, Any] = field(repr=False)
    """The fields that were given, by name; `env` is both mappings in one."""
    after: tuple[str, ...] = ()
    """Names of workers."""

    def place(self, name: str) -> Place:
        """Return where a field stands, or the entry."""
        return ("workers", self.entry, name)


@dataclass(slots=True)
class FleetFile:
    """A file, and all that is wrong with it so far."""

    path: Path
    """Absolute, without symbolic links."""
    located: Located
    workers: dict[str, Declared] = field(default_factory=dict)
    """Each after those that it starts after."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names and globs."""
    faults: list[tuple[int, str]] = field(default_factory=list)
    """The line of each, and it in words that begin with file and line."""

    def fault(self, place: Place, what: str) -> None:
        """Note a fault once."""
        told = (self.located.line(place), f"{self.located.at(place)}: {what}")
        if told not in self.faults:
            self.faults.append(told)

    def place(self, worker: Declared, name: str) -> Place:
        """Return where a worker's field was written: with the worker, or in `defaults`."""
        own = worker.place(name)
        return own if own in self.located.lines else ("defaults", name)

    def check(self) -> None:
        """Raise UsageError with every fault, by line."""
        if self.faults:
            lines = dict.fromkeys(text for _, text in sorted(self.faults, key=lambda fault: fault[0]))
            raise UsageError("\n".join(lines), hint="nothing was changed; put that right and run it again")


def read_fleetfile(path: Path, env: Mapping[str, str]) -> FleetFile:
    """Read a file and its roles. Its faults are noted, for `check` to raise once others have been looked for.

    Raises UsageError where there is nothing to go on with: no file, no YAML, a file of a newer hermux.
    """
    located = read(path)
    file = FleetFile(path.resolve(), located, faults=list(located.faults))
    checked = _checked(file)
    if checked is None:
        file.check()
        raise AssertionError("unreachable")
    _expand(file, checked, env)
    _sequence(file, checked)
    _group(file, checked)
    return file


def _checked(file: FleetFile) -> Checked | None:
    """Return the file's content less what is wrong with it, which is noted; None where that leaves nothing."""
    from pydantic import ValidationError

    from orchestrator.store.fleetfile_schema import SCHEMA, FleetFile

    data = file.located.data
    if not isinstance(data, dict):
        if not file.faults:
            what = "empty" if data is None else "not a list of fields"
            file.fault((), f"{what}; write for example `{EXAMPLE}`")
        return None
    schema = data.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise UsageError(
            f"{file.located.at(('schema',))}: {schema} is of a newer hermux; this one reads {SCHEMA}",
            hint="update hermux, or write the file in the older form",
        )
    for _ in range(2):
        try:
            return FleetFile.model_validate(data)
        except ValidationError as error:
            file.faults += [
                fault for fault in faults_of(file.located, error, FleetFile) if fault not in file.faults
            ]
            for detail in error.errors(include_url=False):
                _drop(data, detail["loc"])
    return None


def _drop(data: Any, place: Sequence[str | int]) -> None:
    """Take a field out of what was read, so that the rest can be looked at."""
    for step in place[:-1]:
        inner = data.get(step) if isinstance(data, dict) else None
        if not isinstance(inner, dict):
            place = [*place[: place.index(step)], step]
            break
        data = inner
    if isinstance(data, dict):
        data.pop(place[-1], None)


def _expand(file: FleetFile, checked: Checked, env: Mapping[str, str]) -> None:
    """Make workers of the entries."""
    from orchestrator.store.fleetfile_schema import Worker

    roles: dict[str, Role | None] = {}
    for entry, given in checked.workers.items():
        worker = given or Worker()
        fields = _merged(checked, worker)
        for name in _names(file, entry, worker.count):
            role = _role(file, entry, str(fields.get("role") or entry), env, roles)
            if role is not None:
                file.workers[name] = Declared(name, entry, role, fields)
    if len(file.workers) > MOST:
        file.fault(("workers",), f"{len(file.workers)} workers are too many: {MOST} at most")


def _merged(checked: Checked, worker: Worker) -> dict[str, Any]:
    """Return the fields that were given: the worker's over those of `defaults`; `cwd` and `repo` as one."""
    own = {name: getattr(worker, name) for name in worker.model_fields_set}
    shared = {name: getattr(checked.defaults, name) for name in checked.defaults.model_fields_set}
    if "cwd" in own or "repo" in own:
        shared = {name: value for name, value in shared.items() if name not in ("cwd", "repo")}
    if "prompt_file" in own:
        own.setdefault("prompt", "")
    return {**shared, **own, "env": {**shared.get("env", {}), **own.get("env", {})}}


def _names(file: FleetFile, entry: str, count: int | None) -> list[str]:
    """Return the names of an entry's workers, less those that another one has."""
    place: Place = ("workers", entry)
    names = [entry] if count is None else [f"{entry}-{number}" for number in range(1, count + 1)]
    try:
        check_name(names[-1], reserved=RESERVED)
    except BadName as error:
        file.fault(place, f"{error}: {error.hint}")
        return []
    for name in [name for name in names if name in file.workers]:
        other = file.workers[name].entry
        line = file.located.line(("workers", other))
        file.fault(place, f"a worker {name} is declared twice (first on line {line}, as {other!r})")
    return [name for name in names if name not in file.workers]


def _role(
    file: FleetFile, entry: str, name: str, env: Mapping[str, str], known: dict[str, Role | None]
) -> Role | None:
    """Return a role, None after noting what is wrong with it."""
    place: Place = ("workers", entry, "role")
    if place not in file.located.lines:
        place = ("defaults", "role") if ("defaults", "role") in file.located.lines else place[:2]
    if name not in known or known[name] is None:
        try:
            known[name] = load_role(name, env)
        except UsageError as error:
            known[name] = None
            if len(place) == 2 and place[0] == "workers":
                roles = ", ".join(list_roles(env))
                file.fault(place, f"no role is called {name!r}: add `role:`, one of {roles}")
            else:
                file.fault(place, f"{str(error).splitlines()[0]}; {error.hint}")
    return known[name]


def _sequence(file: FleetFile, checked: Checked) -> None:
    """Resolve `after` to names, and put the workers into that order."""
    entries = {worker.entry for worker in file.workers.values()}
    for name, worker in file.workers.items():
        words = worker.fields.get("after", ())
        found = dict.fromkeys(
            each for n, word in enumerate(words) for each in _meant(file, word, (*worker.place("after"), n))
        )
        file.workers[name] = Declared(name, worker.entry, worker.role, worker.fields, tuple(found))
    after = {name: worker.after for name, worker in file.workers.items()}
    if found_cycle := cycle(after):
        first = file.workers[found_cycle[0]]
        file.fault(first.place("after"), f"each waits for the next: {' → '.join(found_cycle)}")
    elif entries:
        file.workers = {name: file.workers[name] for name in in_order(after)}


def _meant(file: FleetFile, word: str, place: Place) -> list[str]:
    """Return the workers of this file that a name, an entry or a glob means; notes where there are none."""
    found = [
        name
        for name, worker in file.workers.items()
        if word in (name, worker.entry) or fnmatchcase(name, word)
    ]
    if not found:
        known = list(dict.fromkeys((*(each.entry for each in file.workers.values()), *file.workers)))
        near = get_close_matches(word, known, n=1, cutoff=0.5)
        told = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
        file.fault(place, f"no worker {word!r} in this file; {told}")
    return found


def _group(file: FleetFile, checked: Checked) -> None:
    for group, words in checked.groups.items():
        place: Place = ("groups", group)
        try:
            check_name(group, what="group")
        except BadName as error:
            file.fault(place, f"{error}: {error.hint}")
        members: dict[str, None] = {}
        for n, word in enumerate(words):
            found = _meant(file, word, (*place, n))
            glob = any(mark in word for mark in "*?[")
            members.update(dict.fromkeys([word] if glob else found))
        file.groups[group] = tuple(members)
