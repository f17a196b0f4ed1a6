"""The programming interface: what the commands, and scripts of users, import.

    fleet = Fleet.open("default")
    worker = fleet.spawn("coder")
    print(worker.ask("Who are you?").text)

Importing it is cheap; whatever is heavy is imported by the call that needs it.
"""

from __future__ import annotations

from orchestrator.api.fleet import Fleet
from orchestrator.api.follow import Answer
from orchestrator.api.worker import Worker

__all__ = ["Answer", "Fleet", "Worker"]
