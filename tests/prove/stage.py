"""A fleet for a proof: real Hermes, the rehearsal model with a log, and the plugins that stall."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import yaml

from orchestrator.api import Fleet
from orchestrator.api.order import Order
from orchestrator.hermes.home import profile_dir
from orchestrator.hermes.install import hermes_root
from tests.e2e.sandbox import Sandbox
from tests.prove.plan import Side

ROLE = """\
description: A worker that is killed over and over
toolsets: [terminal]
restart: {max_restarts: 1000, period: 1.0, backoff: 0.05, backoff_cap: 0.2, healthy: 1.0}
"""
BOOT_LIMIT = 180.0
STALL = Path(__file__).with_name("stall.py")


def request_log(box: Sandbox) -> Path:
    """Return the file in which the rehearsal model notes every request."""
    return box.home / "requests.jsonl"


def build(box: Sandbox, workers: int) -> Fleet:
    """Return a fleet of ready workers `w-1`, `w-2`, … that survive any number of kills."""
    role = box.home / "config" / "hermux" / "roles" / "w"
    role.mkdir(parents=True)
    (role / "role.yaml").write_text(ROLE)
    (role / "SOUL.md").write_text("You take notes.\n")
    fleet = Fleet.open(box.fleet, env=box.env)
    fleet.paths.make()
    told = {"schema": 1, "port": _free_port(), "log": str(request_log(box))}
    fleet.paths.rehearsal.write_text(json.dumps(told))
    fleet.spawn_order(Order(count=workers, roles=("w",), cwd=str(box.home)), wait=False)
    fleet.stop(fleet.names(), grace=0)  # their profiles are there now, for plugins of ours
    for name in fleet.names():
        _add_plugins(fleet, name)
    fleet.start(fleet.names(), wait=False)
    fleet.wait_ready(fleet.names(), timeout=BOOT_LIMIT)
    return fleet


def _add_plugins(fleet: Fleet, name: str) -> None:
    home = profile_dir(hermes_root(fleet.env), str(fleet.worker(name).state()["hermes_profile"]))
    (fleet.paths.worker(name).dir / "stall").mkdir(exist_ok=True)
    for side in Side:
        folder = home / "plugins" / side
        folder.mkdir(exist_ok=True)
        (folder / "plugin.yaml").write_text(f"name: {side}\nversion: 0.1.0\ndescription: stalls on request\n")
        (folder / "__init__.py").write_text(STALL.read_text())
    config = yaml.safe_load((home / "config.yaml").read_text())
    config["plugins"]["enabled"] += [str(side) for side in Side]
    (home / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
