"""Which user messages got no answer, so that a script in them is not played again.

Hermes sends a message that failed or was interrupted once more, in front of the next one:
"first\\n\\nsecond" (agent/agent_runtime_helpers.py, repair_message_sequence, 0.19.0). An interrupted
Hermes leaves its connection open, so a request that is still being answered counts as unanswered too.
"""

from __future__ import annotations

from threading import Lock

KEPT = 64
"""Unanswered messages that are remembered."""
JOINT = "\n\n"


class Unanswered:
    """The messages without a complete answer, by conversation. Safe for threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = {}
        self._lock = Lock()

    def fresh(self, conversation: str, text: str) -> str:
        """Return the part of `text` behind the longest unanswered message that it begins with.

        From now on `text` is unanswered itself.
        """
        with self._lock:
            fronts = [
                len(known) + len(JOINT)
                for where, known in self._known
                if where == conversation and text.startswith(known + JOINT)
            ]
            self._known[conversation, text] = None
            if len(self._known) > KEPT:
                del self._known[next(iter(self._known))]
        return text[max(fronts, default=0) :]

    def answered(self, conversation: str, text: str) -> None:
        """Note that `text`, with all that was merged into it, got its answer."""
        with self._lock:
            for where, known in list(self._known):
                if where == conversation and text.startswith(known):
                    del self._known[where, known]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
