"""hermux: launches, watches and drives a fleet of Hermes Agents in tmux.

`from orchestrator import Fleet` is the whole programming interface; it is imported on first use, so that
`import orchestrator` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.api import Answer, Fleet, Worker

__all__ = ["Answer", "Fleet", "Worker"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from orchestrator import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
