"""The programming interface: what the commands, and scripts of users, import.

    fleet = Fleet.open("default")
    worker = fleet.spawn("coder")
    print(worker.ask("Who are you?").text)

The classes are imported on first use: a reader of the picture alone pays for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api.fleet import Fleet
    from orchestrator.api.follow import Answer
    from orchestrator.api.worker import Worker

__all__ = ["Answer", "Fleet", "Worker"]
_MODULES = {"Answer": "follow", "Fleet": "fleet", "Worker": "worker"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"orchestrator.api.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
