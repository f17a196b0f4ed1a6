"""`$PORT`: a number a worker, unique among the workers of all fleets of this home."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import NotReady
from orchestrator.store.files import BadFile, read_json
from orchestrator.store.lock import FileLock
from orchestrator.store.paths import FleetPaths

FIRST, LAST = 21000, 28999
"""Below what Linux (32768 on) and macOS (49152 on) give to outgoing connections."""


@contextmanager
def port_lock(paths: FleetPaths) -> Iterator[None]:
    """Hold what keeps two fleets from giving one port: from the choice until it stands in `desired.json`."""
    with FileLock(paths.root.parent / "ports.lock"):
        yield


def free_port(paths: FleetPaths, worker: str, taken: Collection[int]) -> int:
    """Return a port for a worker that no other has and on which nothing listens now.

    It depends on the names alone where that one is free, so a worker made anew tends to get it again.
    """
    size = LAST - FIRST + 1
    begin = zlib.crc32(f"{paths.fleet}/{worker}".encode()) % size
    for step in range(size):
        port = FIRST + (begin + step) % size
        if port not in taken and _unused(port):
            return port
    raise NotReady(f"no port from {FIRST} to {LAST} is free")


def taken_ports(paths: FleetPaths) -> set[int]:
    """Return the ports of all workers of all fleets of this home."""
    found: set[int] = set()
    for file in paths.root.parent.glob("*/desired.json"):
        found |= _ports_in(file)
    return found


def _ports_in(file: Path) -> set[int]:
    try:
        workers = (read_json(file) or {}).get("workers") or {}
        ports = {(entry.get("spec") or {}).get("port") for entry in workers.values()}
    except (BadFile, AttributeError):
        return set()
    return {port for port in ports if isinstance(port, int)}


def _unused(port: int) -> bool:
    """Whether a server could listen there: on all addresses, as most do, and on the loopback."""
    for address in ("0.0.0.0", "127.0.0.1"):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
