"""Which toolsets the installed Hermes has, read from its source: starting it would take 1.5 s."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.hermes.install import HermesInstall

ALL = frozenset(("all", "*"))
"""Hermes' own words for every toolset."""
_REGISTERED = re.compile(rb"\btoolset=[\"']([A-Za-z0-9_.:-]+)[\"']")


def known_toolsets(install: HermesInstall) -> frozenset[str]:
    """Return the names that `hermes -t` takes; empty where the source cannot be read: nothing is known then.

    They are the keys of `TOOLSETS` in toolsets.py and what the tools register (0.19.0 and 0.22.2). Takes
    0.08 s of CPU, of which the keys are 0.01 s.
    """
    named = _named(install)
    return named | _registered(install) if named else named


def check_toolsets(
    names: Iterable[str], install: HermesInstall, *, also: Collection[str] = (), where: str
) -> None:
    """Raise UsageError that names every toolset which Hermes does not have, with the nearest right word.

    `also`: names of MCP servers, each of which is a toolset too. Hermes itself would only print a warning
    and go on without.
    """
    named = _named(install)
    doubtful = [name for name in dict.fromkeys(names) if named and name not in named and name not in also]
    if not doubtful:
        return
    known = known_toolsets(install) | frozenset(also)
    wrong = [name for name in doubtful if name not in known]
    if wrong:
        raise UsageError(
            f"{where}: Hermes {install.version} has no toolset {'; '.join(_told(w, known) for w in wrong)}",
            hint="see them all with: hermes tools list",
        )


def _told(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name.lower(), sorted(known), n=1, cutoff=0.5)
    return f"{name!r}; did you mean {near[0]!r}?" if near else repr(name)


def _named(install: HermesInstall) -> frozenset[str]:
    found = _literal_keys(install.site_packages / "toolsets.py") if install.site_packages else frozenset()
    return found | ALL if found else found


def _literal_keys(path: Path) -> frozenset[str]:
    """Return the string keys of the dictionary TOOLSETS, none when there is no such thing."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(value, ast.Dict) and any(getattr(t, "id", "") == "TOOLSETS" for t in targets):
            return frozenset(str(k.value) for k in value.keys if isinstance(k, ast.Constant))
    return frozenset()


def _registered(install: HermesInstall) -> frozenset[str]:
    found: set[str] = set()
    for path in (install.site_packages / "tools").glob("*.py") if install.site_packages else ():
        try:
            found.update(name.decode() for name in _REGISTERED.findall(path.read_bytes()))
        except OSError:
            continue
    return frozenset(found)
