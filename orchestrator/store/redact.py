"""Takes the values of keys out of every text that is written or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from orchestrator.store.env import read_env
from orchestrator.store.files import BadFile
from orchestrator.store.paths import FleetPaths

KEY_VARIABLE = "OPENAI_API_KEY"
"""The name under which Hermes gets the key: one that it strips from its tools' environment."""
SHORTEST = 8
"""Characters; a shorter value would be found in ordinary words."""
SHOWN = "[redacted]"


def keys_of(paths: FleetPaths, workers: Iterable[str]) -> frozenset[str]:
    """Return the values of these workers' keys, as they are and as they stand in JSON."""
    found = set()
    for name in workers:
        try:
            found.add(read_env(paths.worker(name)).get(KEY_VARIABLE, ""))
        except (OSError, BadFile, ValueError):
            continue
    long = {key for key in found if len(key) >= SHORTEST}
    return frozenset(long | {json.dumps(key, ensure_ascii=False)[1:-1] for key in long})


def redact(text: str, keys: Iterable[str]) -> str:
    """Return the text without the keys, also where a screen has wrapped one over two rows."""
    for key in keys:
        if key in text:
            text = text.replace(key, SHOWN)
        elif key[: SHORTEST // 2] in text and "\n" in text:
            text = re.sub(r"(?:\s*\n[\s│]*)?".join(map(re.escape, key)), SHOWN, text)
    return text
