"""`state.json` as the supervisor draws it: made anew where something changed, else only said to be still true."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.fleet.memory import dump
from orchestrator.fleet.picture import picture
from orchestrator.fleet.worker import Worker
from orchestrator.store.paths import FleetPaths
from orchestrator.store.state import StateFile


@dataclass(frozen=True, slots=True)
class _Drawn:
    worker: Worker
    text: str
    """Its entry as JSON, keys redacted."""


class Picture:
    """Remembers each worker's part of the text, which holds for as long as the worker is the same value."""

    def __init__(self, paths: FleetPaths, redact: Callable[[str], str]) -> None:
        self._file = StateFile(paths.state)
        self._redact = redact
        self._parts: dict[str, _Drawn] = {}
        self._head = ""

    def write(self, head: Mapping[str, Any], fleet: Mapping[str, Worker], now: float) -> None:
        """Have the file say how the fleet stands; raises OSError when it cannot be written."""
        parts = {name: self._part(worker) for name, worker in fleet.items()}
        text = self._redact(_json(head))
        same = text == self._head and parts.keys() == self._parts.keys()
        if same and all(part is self._parts[name] for name, part in parts.items()) and self._file.touch(now):
            return
        self._parts, self._head = parts, ""
        workers = ",".join(f"{_json(name)}:{part.text}" for name, part in parts.items())
        self._file.write(f'{text[:-1]},"time":{now!r},"workers":{{{workers}}}}}\n', now)
        self._head = text

    def forget(self) -> None:
        """Draw all of it anew the next time: the keys that are redacted changed."""
        self._parts = {}

    def _part(self, worker: Worker) -> _Drawn:
        known = self._parts.get(worker.name)
        if known is not None and known.worker is worker:
            return known
        return _Drawn(worker, self._redact(_json({**picture(worker), "memory": dump(worker)})))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
