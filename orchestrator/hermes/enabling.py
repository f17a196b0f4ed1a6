"""Our plugin in a profile of the user's: put there after a yes, and taken away again.

config.yaml is not written anew, as Hermes itself would do it: one word is put into its text, at the place
that a YAML reader names, and the result is read back and compared before it replaces the file. So
comments, order and quotes stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from orchestrator.errors import UsageError
from orchestrator.hermes.config import PLUGIN
from orchestrator.hermes.home import copy_plugin, write_file

NOTE = ".hermux"
"""Beside the plugin's files: what was put there, so that only that is taken away."""


def has_plugin(home: Path) -> bool:
    """Whether our plugin is in a profile and enabled."""
    return (home / "plugins" / PLUGIN / "__init__.py").is_file() and PLUGIN in _enabled(_text(home))


def was_put(home: Path) -> bool:
    """Whether hermux put the plugin there, and nobody has changed its files since."""
    return bool(_note(home)) and _digests(home / "plugins" / PLUGIN) == _note(home).get("files")


def put_plugin(home: Path) -> None:
    """Put the plugin into a profile and enable it. Raises UsageError where that cannot be done; then nothing is."""
    folder = home / "plugins" / PLUGIN
    if folder.exists() and not was_put(home):
        raise UsageError(
            f"{folder} is there already, and hermux did not put it there as it is now",
            hint=f"move it away, or go on without: mv {folder} {folder}.old",
        )
    before = _text(home)
    after = before if PLUGIN in _enabled(before) else with_plugin(before)
    if after is None:
        raise UsageError(
            f"{home / 'config.yaml'} is written in a way that hermux does not change",
            hint=f"enable it by hand: plugins: {{enabled: [{PLUGIN}]}}, and spawn again",
        )
    copy_plugin(folder)
    note = {"schema": 1, "files": _digests(folder), "before": _digest(before), "after": _digest(after)}
    if after != before:
        note["inserted"] = _inserted(before, after)
        _replace(home / "config.yaml", after)
    write_file(folder / NOTE, json.dumps(note).encode() + b"\n")


def refresh_put(home: Path) -> None:
    """Bring a plugin that hermux put there to this version; one that was changed is left alone."""
    folder = home / "plugins" / PLUGIN
    if was_put(home):
        note = dict(_note(home))
        copy_plugin(folder)
        if note["files"] != _digests(folder):
            write_file(folder / NOTE, json.dumps({**note, "files": _digests(folder)}).encode() + b"\n")


def take_plugin(home: Path) -> str:
    """Take the plugin away if hermux put it there unchanged; return "", or why it stays."""
    folder = home / "plugins" / PLUGIN
    if not folder.exists():
        return ""
    if not was_put(home):
        return f"{folder} was not put there by hermux, or was changed since"
    text, note = _text(home), _note(home)
    if "inserted" in note and PLUGIN in _enabled(text):
        after = _restored(text, note) or without_plugin(text)
        if after is None:
            return f"{home / 'config.yaml'} is written in a way that hermux does not change"
        _replace(home / "config.yaml", after)
    for file in (*note["files"], NOTE):
        (folder / file).unlink(missing_ok=True)
    for cache in folder.glob("__pycache__/*.pyc"):
        cache.unlink()
    for empty in (folder / "__pycache__", folder, folder.parent):
        with suppress(OSError):
            empty.rmdir()
    return ""


def with_plugin(text: str) -> str | None:
    """Return a config.yaml with our plugin first in `plugins.enabled`, None where the text is too unusual."""
    made = _with(text)
    return made if made is not None and _loads(made) == _wanted(_loads(text)) else None


def without_plugin(text: str) -> str | None:
    """Return a config.yaml without our plugin in `plugins.enabled`, None where the text is too unusual."""
    listed = _node(text, "plugins", "enabled")
    if not isinstance(listed, yaml.SequenceNode):
        return None
    place = next((n for n, item in enumerate(listed.value) if item.value == PLUGIN), None)
    if place is None:
        return None
    made = _without(text, listed, place)
    return made if _enabled(made) == [name for name in _enabled(text) if name != PLUGIN] else None


def _with(text: str) -> str | None:
    root = _compose(text)
    if root is None:
        return f"{_ended(text)}plugins:\n  enabled:\n  - {PLUGIN}\n"
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return None
    plugins = _node(text, "plugins")
    if plugins is None:
        return f"{_ended(text)}plugins:\n  enabled:\n  - {PLUGIN}\n"
    listed = _node(text, "plugins", "enabled")
    if isinstance(listed, yaml.SequenceNode):
        mark = listed.start_mark
        if listed.flow_style:
            comma = ", " if listed.value else ""
            return f"{text[: mark.index + 1]}{PLUGIN}{comma}{text[mark.index + 1 :]}"
        start = mark.index - mark.column
        return f"{text[:start]}{' ' * mark.column}- {PLUGIN}\n{text[start:]}"
    if listed is None and isinstance(plugins, yaml.MappingNode) and not plugins.flow_style:
        mark = plugins.start_mark
        start, indent = mark.index - mark.column, " " * mark.column
        return f"{text[:start]}{indent}enabled:\n{indent}- {PLUGIN}\n{text[start:]}"
    if listed is None and isinstance(plugins, yaml.MappingNode):
        at, comma = plugins.start_mark.index + 1, ", " if plugins.value else ""
        return f"{text[:at]}enabled: [{PLUGIN}]{comma}{text[at:]}"
    return None


def _without(text: str, listed: yaml.SequenceNode, place: int) -> str:
    item = listed.value[place]
    if not listed.flow_style:
        start = item.start_mark.index - item.start_mark.column
        end = text.find("\n", item.end_mark.index)
        return text[:start] + (text[end + 1 :] if end >= 0 else "")
    if place + 1 < len(listed.value):
        return text[: item.start_mark.index] + text[listed.value[place + 1].start_mark.index :]
    start = listed.value[place - 1].end_mark.index if place else item.start_mark.index
    return text[:start] + text[item.end_mark.index :]


def _inserted(before: str, after: str) -> list[int]:
    """Return where the text grew, and by how much."""
    at = next(
        (n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before)
    )
    return [at, len(after) - len(before)]


def _restored(text: str, note: Mapping[str, Any]) -> str | None:
    """Return the text as it was before ours, where nobody has changed it since."""
    if _digest(text) != note.get("after"):
        return None
    at, length = note["inserted"]
    before = text[:at] + text[at + length :]
    return before if _digest(before) == note.get("before") else None


def _node(text: str, *keys: str) -> yaml.Node | None:
    node = _compose(text)
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == key), None)
    return node


def _compose(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return yaml.SequenceNode("", [])


def _loads(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _wanted(config: Any) -> Any:
    """Return the configuration with our plugin enabled."""
    whole = dict(config or {})
    plugins = dict(whole.get("plugins") or {})
    return {**whole, "plugins": {**plugins, "enabled": [PLUGIN, *(plugins.get("enabled") or [])]}}


def _enabled(text: str) -> list[str]:
    config = _loads(text)
    plugins = config.get("plugins") if isinstance(config, dict) else None
    names = plugins.get("enabled") if isinstance(plugins, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _text(home: Path) -> str:
    try:
        return (home / "config.yaml").read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{home / 'config.yaml'} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise UsageError(f"{home / 'config.yaml'} is not UTF-8") from None


def _replace(path: Path, text: str) -> None:
    """Replace a file of the user's: through a link, and with the rights that it has."""
    target = path.resolve()
    mode = target.stat().st_mode & 0o777
    write_file(target, text.encode(), sync=True)
    target.chmod(mode)


def _note(home: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((home / "plugins" / PLUGIN / NOTE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _digests(folder: Path) -> dict[str, str]:
    files = (
        sorted(path for path in folder.iterdir() if path.suffix in (".py", ".yaml"))
        if folder.is_dir()
        else []
    )
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
