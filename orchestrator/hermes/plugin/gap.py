"""A short gap between two dialogs: a key that was pressed for the first finds no second one there.

Whoever answers looks at the screen before the key is pressed; a person in the pane, or the dialog's own time
limit, may end it in between, and Hermes would show the next dialog within a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

SECONDS = 0.5
OPENS = ("pre_approval_request", "pre_tool_call")
ENDS = ("post_approval_response", "post_tool_call")


class Gap:
    """Waits in the hook that Hermes calls before it shows a dialog; 0.22 gives a hook 30 s."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._ended = float("-inf")

    def before(self, hook: str, kwargs: Mapping[str, Any]) -> None:
        """Wait for the rest of the gap when a dialog is about to open."""
        if hook in OPENS and _dialog(hook, kwargs):
            rest = self._ended + self._seconds - time.monotonic()
            if rest > 0:
                time.sleep(min(rest, self._seconds))

    def after(self, hook: str, kwargs: Mapping[str, Any]) -> None:
        """Note the end of a dialog."""
        if hook in ENDS and _dialog(hook, kwargs):
            self._ended = time.monotonic()


def _dialog(hook: str, kwargs: Mapping[str, Any]) -> bool:
    if "approval" in hook:
        return kwargs.get("surface") == "cli"
    return kwargs.get("tool_name") == "clarify"
