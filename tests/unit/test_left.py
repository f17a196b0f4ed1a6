"""Who ends Hermes, as the plugin tells it from within; and a start that a killed supervisor did not note."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from orchestrator.fleet.worker import Operation, OpKind, Phase, Want, Worker
from orchestrator.hermes.plugin.hooks import ended_by
from orchestrator.supervise.adopt import adopt
from orchestrator.terminal.pane import PaneRow
from tests.unit.world import NAME, spec


@pytest.mark.parametrize(("armed", "by"), [(True, "signal"), (False, "person"), (None, "")])
def test_who_ends_it(armed: bool | None, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = ModuleType("cli")
    if armed is not None:
        cli.__dict__["_signal_watchdog_armed"] = armed
    monkeypatch.setitem(sys.modules, "cli", cli)
    master, slave = pty.openpty()
    try:
        assert ended_by(slave) == by
        os.close(master)
        assert ended_by(slave) == "hangup", "a terminal that has gone is no person"
    finally:
        os.close(slave)


@pytest.mark.parametrize("words", [[], ["--resume", "s1"]])
def test_a_start_that_was_not_noted_is_looked_at_for_its_session(words: list[str], tmp_path: Path) -> None:
    script = tmp_path / "launch.sh"
    script.write_text("echo up; read line\n")
    with subprocess.Popen(
        ["/bin/sh", str(script), "2", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        row = PaneRow(NAME, "%1", process.pid, False, None, None, False, 0, 0, 120, 40, 0, 0, 0)
        op = Operation(OpKind.RECOVER, "launch", 0.0, 30.0)
        worker = Worker(
            spec(), Want.RUN, 1, attempt=2, op=op, session="s1", resume="s1", phase=Phase.STARTING
        )
        found = adopt(worker, [row], script)
        process.stdin.close() if process.stdin else None
    assert found.life is not None
    assert (found.anew is None, found.resume) == (bool(words), "s1" if words else "")
