"""A screen read through the control client, beside libtmux and one tmux process a call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from home import FLEET, Home
from row import Row, Series

from orchestrator.store.files import read_json
from orchestrator.terminal.control import Control
from orchestrator.terminal.server import Server


def measure(home: Home, *, quick: bool) -> Row:
    """Alternate the contestants on the pane of one worker of a running fleet."""
    import libtmux

    state = read_json(home.paths.state) or {}
    os.environ["TMUX_TMPDIR"] = home.env["TMUX_TMPDIR"]
    server = Server(f"hermux-{FLEET}", home.paths.tmux_conf, env=home.env)
    pane_id = next(iter(state["workers"].values()))["pane"]
    pane = libtmux.Server(socket_path=str(server.socket_path)).panes.get(pane_id=pane_id)
    assert pane
    control = Control(server)
    control.start()
    ways: dict[str, Callable[[], object]] = {
        "the control client": lambda: control.capture(pane_id),
        "libtmux' capture_pane": pane.capture_pane,
        "a tmux process a call": lambda: home.run(*server.client_argv("capture-pane", "-p", "-t", pane_id)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for _ in range(50 if quick else 200):
            for name, call in ways.items():
                began = time.perf_counter()
                call()
                times[name].append(1000 * (time.perf_counter() - began))
    finally:
        control.close()
    ours, *peers = (Series(name, "ms", tuple(values)) for name, values in times.items())
    return Row("calls", "one capture of a worker's screen", ours, peers)
