"""hermux' own settings: `$XDG_CONFIG_HOME/hermux/config.yaml`. All of it may be left out.

notify:
  bell: true                     # ring the terminals of whoever is attached
  command: [notify-send, ...]    # run with a JSON object on standard input
  timeout: 30                    # seconds after which the command is ended
memory:
  headroom_mb: 0                 # MB that stay free when a worker is started; 0 = a tenth, 512 to 4,096
  worker_mb: 0                   # MB for a worker that has not been measured; 0 = 500
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError
from orchestrator.store.roles import user_roles

if TYPE_CHECKING:
    from orchestrator.store.yamlfile import Located


@dataclass(frozen=True, slots=True)
class Notify:
    """How people are called to a dialog."""

    bell: bool = True
    command: tuple[str, ...] = ()
    """Program and arguments, no shell; empty = none."""
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Memory:
    """When a worker is started, in MB; 0 = hermux' own rule."""

    headroom_mb: int = 0
    worker_mb: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """`config.yaml`, whole."""

    notify: Notify = Notify()
    memory: Memory = Memory()


def settings_path(env: Mapping[str, str]) -> Path:
    """Return where the settings are; the file need not exist."""
    return user_roles(env).parent / "config.yaml"


def load_settings(env: Mapping[str, str]) -> Settings:
    """Return the settings, or the usual ones where there is no file.

    Raises UsageError naming every fault with file, line and field.
    """
    path = settings_path(env)
    if not path.exists():
        return Settings()
    from orchestrator.store.yamlfile import load  # with pydantic: 0.1 s that a home without the file saves

    found = load(path)
    if found.data is None:
        return Settings()
    return _checked(found)


def _checked(found: Located) -> Settings:
    from pydantic import ValidationError

    from orchestrator.store.settings_schema import SettingsFile

    if not isinstance(found.data, dict):
        raise UsageError(f"{found.path}:1: not a list of fields; write for example `notify: {{bell: false}}`")
    try:
        read = SettingsFile.model_validate(found.data)
    except ValidationError as error:
        faults = [f"{found.at(each['loc'])}: {_what(each)}" for each in error.errors(include_url=False)]
        raise UsageError("\n".join(faults)) from error
    notify = read.notify
    return Settings(
        Notify(notify.bell, tuple(notify.command), notify.timeout), Memory(**read.memory.model_dump())
    )


_KNOWN = {
    "": ["notify", "memory"],
    "notify": ["bell", "command", "timeout"],
    "memory": ["headroom_mb", "worker_mb"],
}
"""Fields by the mapping that they stand in; "" = the file itself."""


def _what(fault: Any) -> str:
    """Return one of pydantic's faults in our words."""
    if fault["type"] == "extra_forbidden":
        known = _KNOWN.get(str(fault["loc"][0]) if len(fault["loc"]) > 1 else "", _KNOWN[""])
        near = get_close_matches(str(fault["loc"][-1]), known, n=1, cutoff=0.5)
        return "unknown field; " + (
            f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        )
    if fault["type"] == "list_type":
        return "must be a list of program and arguments, such as [notify-send, hermux]"
    said = str(fault["msg"]).removeprefix("Input should be ").removeprefix("a valid ")
    return f"must be {said}, not {fault['input']!r:.60}"
