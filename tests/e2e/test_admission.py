"""A worker is not started when the memory for it would go below the headroom; it starts when there is room."""

from __future__ import annotations

from tests.e2e.sandbox import Sandbox, ended
from tests.until import until


def test_pending_with_the_arithmetic_until_there_is_room(fleet: Sandbox) -> None:
    settings = fleet.home / "config" / "hermux" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("memory:\n  headroom_mb: 100000000\n")
    spawning = fleet.begin("spawn", "--name", "one", "--role", "coder")
    entry = fleet.shows("one", "pending")
    why = until(lambda: fleet.worker("one").get("why", ""), 10, what="a reason")
    assert why.startswith("waits for memory: ")
    assert "for this worker" in why and "stay free" in why
    assert entry["pid"] == 0
    said = fleet.out("why", "one")
    assert "waits for memory" in said
    assert not fleet.processes("one")
    settings.write_text("memory:\n  headroom_mb: 1\n  worker_mb: 1\n")
    done = ended(spawning)
    assert done.returncode == 0, done.stderr
    assert "one is pending: waits for memory: " in done.stderr
    assert fleet.worker("one")["word"] == "ready"
