"""Takes the values of keys out of every text that is written or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from orchestrator.fleet.proxy import passwords
from orchestrator.store.env import read_env
from orchestrator.store.files import BadFile
from orchestrator.store.keys import KEY_VARIABLE as KEY_VARIABLE
from orchestrator.store.keys import staged_keys
from orchestrator.store.paths import FleetPaths, WorkerPaths

FURTHER = re.compile(r"AUXILIARY_HERMUX_\w+_API_KEY")
"""Variables that hold the keys of fallback models and inherited tools."""
SHORTEST = 8
"""Characters; a shorter value would be found in ordinary words."""
SHOWN = "[redacted]"


def keys_of(paths: FleetPaths, workers: Iterable[str]) -> frozenset[str]:
    """Return the values of these workers' keys and proxy passwords, as they are and as they stand in JSON."""
    found = set[str]()
    for name in workers:
        found |= _secrets(paths.worker(name))
    long = {key for key in found if len(key) >= SHORTEST}
    return frozenset(long | {json.dumps(key, ensure_ascii=False)[1:-1] for key in long})


def _secrets(worker: WorkerPaths) -> set[str]:
    try:
        variables = read_env(worker)
        held = {value for name, value in variables.items() if name == KEY_VARIABLE or FURTHER.fullmatch(name)}
        return {*held, *staged_keys(worker), *passwords(variables)}
    except (OSError, BadFile, ValueError):
        return set()


def redact(text: str, keys: Iterable[str]) -> str:
    """Return the text without the keys, also where a screen has wrapped one over two rows."""
    for key in keys:
        if key in text:
            text = text.replace(key, SHOWN)
        elif key[: SHORTEST // 2] in text and "\n" in text:
            text = re.sub(r"(?:\s*\n[\s│]*)?".join(map(re.escape, key)), SHOWN, text)
    return text
