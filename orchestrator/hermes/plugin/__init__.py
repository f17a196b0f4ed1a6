"""The plugin that hermux puts into a worker's Hermes profile: it reports, and keeps dialogs half a second apart.

Hermes imports this folder as `hermes_plugins.hermux` and calls `register(ctx)`. It uses public hooks
and the standard library, imports nothing of hermux, returns None from every hook, and no error of it
reaches Hermes. Outside a worker (no `HERMUX_DIR`, or a Hermes that the worker's own tools started)
it registers nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .feed import FeedWriter
from .gap import Gap
from .hooks import HANDLERS, hermes_version, known_hooks
from .owner import Owner, find_owner
from .recorder import Recorder

VERSION = "0.1.0"


def register(ctx: Any) -> None:
    """Register one callback a hook that this Hermes knows, and report `plugin_loaded`."""
    with suppress(Exception):
        owner = find_owner()
        if owner is not None:
            install(ctx, owner)


def install(ctx: Any, owner: Owner) -> None:
    """Register the callbacks for `owner`; separate from `register` so that a test can hand one in."""
    recorder = Recorder(FeedWriter(owner), owner)
    recorder.report(
        "plugin_loaded",
        {},
        {"version": VERSION, "hermes_version": hermes_version(), "python": platform.python_version()},
    )
    gap = Gap()
    for name in HANDLERS:
        if name in known_hooks():
            ctx.register_hook(name, _callback(recorder, gap, name))


def _callback(recorder: Recorder, gap: Gap, name: str) -> Any:
    """Return the function that Hermes calls with keywords; it returns None whatever happens."""

    def hermux_hook(**kwargs: Any) -> None:
        with suppress(Exception):
            fields = _named(kwargs)
            gap.after(name, fields)
            gap.before(name, fields)
            recorder.hook(name, fields)

    return hermux_hook


def _named(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in kwargs.items()}
