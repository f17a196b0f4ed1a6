"""A Hermes plugin of the proof: stalls Hermes inside a hook when a file asks for it.

It is copied into a profile under two names: Hermes calls plugins in the order of their names, so one
stalls before hermux's own plugin has the hook and one after. `<worker>/stall/<name>.<hook>` asks, and
is renamed to `<worker>/stall/inside` when Hermes is in that hook.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOOKS = ("pre_llm_call", "pre_api_request", "post_api_request", "post_llm_call", "on_session_end")
SECONDS = 0.4


def register(ctx: Any) -> None:
    """Register one callback a hook, in workers of hermux only."""
    folder = os.environ.get("HERMUX_DIR")
    for hook in HOOKS if folder else ():
        ctx.register_hook(hook, _stall(Path(str(folder)) / "stall", hook))


def _stall(folder: Path, hook: str) -> Callable[..., None]:
    wish = folder / f"{Path(__file__).parent.name}.{hook}"

    def stall(**_: Any) -> None:
        try:
            wish.rename(folder / "inside")
        except OSError:
            return
        time.sleep(SECONDS)

    return stall
