"""YAML files that people write, read strictly and with the line of every field.

Differs from plain PyYAML: duplicate keys, anchors, tags and a second document are errors, only `true`
and `false` are booleans (`no`, `on`, `12:30` and `2026-01-01` stay text), and a fault does not hide
those that come after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import UsageError

LARGEST = 1 << 20
"""Bytes: a file that people write is smaller."""
DEEPEST = 50

Place = tuple[str | int, ...]
"""The way to a field: keys and list positions."""


class _Loader(yaml.CSafeLoader):
    """CSafeLoader with the scalars of YAML 1.2 (core schema) instead of 1.1."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own way: a subclass starts from none)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        [*_first, ""] if _tag == "null" else list(_first),
    )


@dataclass(frozen=True, slots=True)
class Located:
    """The content of a YAML file: plain dicts, lists and scalars, and where each stood."""

    path: Path
    data: Any
    lines: dict[Place, int] = field(repr=False)
    faults: tuple[tuple[int, str], ...] = ()
    """The line of each fault, and it in words that begin with file and line."""
    bad: frozenset[Place] = frozenset()
    """Fields whose content is not known because of a fault."""

    def line(self, place: Place) -> int:
        """Return the line (from 1) of a field, or of the nearest thing around it that exists."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def at(self, place: Place) -> str:
        """Return "file:line: field" for an error message."""
        return f"{self.path}:{self.line(place)}: {dotted(place)}".removesuffix(": ")


def dotted(place: Place) -> str:
    """Return a place as people write it: `approvals.timeout`, `toolsets[1]`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def load(path: Path) -> Located:
    """Read a YAML file. Raises UsageError that names every fault with file and line."""
    found = read(path)
    if found.faults:
        raise UsageError("\n".join(text for _, text in found.faults))
    return found


def read(path: Path) -> Located:
    """Read a YAML file with its faults: what they leave readable is in `data`.

    Raises UsageError where nothing is: a file that cannot be opened, is no UTF-8, or is no YAML at all.
    """
    text = _text(path)
    walk = _Walk(path)
    try:
        node = _compose(path, text, walk)
    except UsageError:
        spaced = _spaced(text, walk)
        if spaced is None:
            raise
        node = _compose_again(path, spaced, walk)
    data = None if node is None else walk.value(node, ())
    return Located(path, data, walk.lines, tuple(sorted(walk.faults)), frozenset(walk.bad))


def _spaced(text: str, walk: _Walk) -> str | None:
    """Return the text with blanks for the tabs that begin its lines, each noted; None if there is none."""
    lines = text.splitlines()
    tabbed = [n for n, line in enumerate(lines) if re.match(r" *\t", line) and line.strip()]
    for n in tabbed:
        walk.fault(n + 1, (), "begins with a tab: YAML takes only blanks there")
        lines[n] = re.sub(r"^[ \t]+", lambda match: match[0].replace("\t", "  "), lines[n])
    return "\n".join(lines) + "\n" if tabbed else None


def _compose_again(path: Path, text: str, walk: _Walk) -> yaml.Node | None:
    """Look behind the tabs; where they hid the structure itself, they are all that can be said."""
    tabs = list(walk.faults)
    try:
        return _compose(path, text, walk)
    except UsageError:
        raise UsageError("\n".join(said for _, said in tabs)) from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > LARGEST:
        raise UsageError(f"{path}: larger than {LARGEST} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8 (byte {raw[error.start]:#04x})") from error


def _compose(path: Path, text: str, walk: _Walk) -> yaml.Node | None:
    try:
        _check_events(path, text, walk)
        loader = _Loader(text)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{where}: not valid YAML: {what}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    return node


def _check_events(path: Path, text: str, walk: _Walk) -> None:
    """Note anchors; raise before the composer, which recurses in C, meets a file that would end the process."""
    depth = 0
    opens = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
    closes = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            walk.fault(line, (), "anchors and aliases (& and *) are not used here: write it out")
        if isinstance(event, opens):
            depth += 1
        elif isinstance(event, closes):
            depth -= 1
        if depth > DEEPEST:
            raise UsageError(f"{path}:{line}: nested more than {DEEPEST} deep")


class _Walk:
    """Turns nodes into plain values and notes lines and faults on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Place, int] = {}
        self.faults: list[tuple[int, str]] = []
        self.bad: set[Place] = set()
        self._met: set[int] = set()

    def value(self, node: yaml.Node, place: Place) -> Any:
        line = node.start_mark.line + 1
        if id(node) in self._met:  # an alias, which is a fault already: never followed, it may lead back
            self.bad.add(place)
            return None
        self._met.add(id(node))
        self.lines.setdefault(place, line)
        if node.tag.removeprefix(_CORE) not in _KINDS[type(node)]:
            self.fault(line, place, f"the tag {node.tag} is not used here")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.fault(line, place, "a key is a single word")
                continue
            key: str = key_node.value
            inner = (*place, key)
            if key in found:
                self.fault(line, inner, f"is there twice (first on line {self.lines[inner]})")
                continue
            self.lines[inner] = line
            found[key] = self.value(value_node, inner)
        return found

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        try:
            return _SCALARS[node.tag.removeprefix(_CORE)](node.value)
        except ValueError as error:
            self.fault(node.start_mark.line + 1, place, str(error))
            return None

    def fault(self, line: int, place: Place, what: str) -> None:
        if place:
            self.bad.add(place)
        told = (line, f"{self.path}:{line}: {dotted(place)}: {what}".replace(": : ", ": "))
        if told not in self.faults:  # a file with tabs is looked at twice
            self.faults.append(told)


_CORE = "tag:yaml.org,2002:"
_SCALARS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "bool": lambda text: text.lower() == "true",
    "null": lambda text: None,
    "int": int,
    "float": float,
}
_KINDS: dict[type[yaml.Node], Collection[str]] = {
    yaml.MappingNode: ("map",),
    yaml.SequenceNode: ("seq",),
    yaml.ScalarNode: _SCALARS,
}
