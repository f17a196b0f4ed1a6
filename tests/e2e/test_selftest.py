"""The short form of `hermux selftest`: one fault of each kind on the real Hermes, and how it ends early."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.e2e.sandbox import Sandbox, ended
from tests.until import until

SHORT = (
    "kill-worker",
    "kill-supervisor",
    "kill-tmux",
    "kill-endpoint",
    "deaf-orphan",
    "disk-full",
    "user-types",
    "clock-jump",
)


def running(folder: str) -> list[int]:
    """Return the processes that live below a folder of a selftest."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("XDG_STATE_HOME", "").startswith(folder):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.timeout(400)
def test_faults_are_survived(fleet: Sandbox) -> None:
    done = fleet.run("selftest", "--faults", ",".join(SHORT), "--seed", "1", "--json", timeout=380)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    verdicts = {each["fault"]: each["verdict"] for each in told["faults"]}
    assert verdicts == {name: "not provoked" if name == "clock-jump" else "survived" for name in SHORT}
    assert not any(
        each["lost"] or each["doubled"] or each["left"] or each["foreign"] for each in told["faults"]
    )
    assert not list(Path(fleet.env["TMPDIR"]).iterdir())


@pytest.mark.timeout(200)
def test_ended_early_it_leaves_nothing(fleet: Sandbox) -> None:
    begun, folder = fleet.begin("selftest", "--faults", "kill-worker", "--rounds", "50"), fleet.env["TMPDIR"]
    until(lambda: len(running(folder)) > 4, 60, what="a fleet runs")
    begun.send_signal(signal.SIGTERM)
    assert ended(begun).returncode == 130
    assert running(folder) == [] and not list(Path(folder).iterdir())


@pytest.mark.timeout(200)
def test_a_killed_one_is_cleaned_up_by_the_next(fleet: Sandbox) -> None:
    begun, folder = fleet.begin("selftest", "--faults", "kill-worker", "--rounds", "50"), fleet.env["TMPDIR"]
    until(lambda: len(running(folder)) > 4, 60, what="a fleet runs")
    begun.kill()
    ended(begun)
    assert running(folder)
    fleet.run("selftest", "--faults", "clock-jump", timeout=180)
    assert running(folder) == [] and not list(Path(folder).iterdir())


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--faults", "kill-wroker"], "no fault 'kill-wroker'\n  → did you mean: kill-worker"),
        (["--rounds", "0"], "--rounds"),
        (["--workers", "99"], "--workers"),
    ],
)
def test_wrong_usage_makes_nothing(fleet: Sandbox, args: list[str], told: str) -> None:
    done = fleet.run("selftest", *args)
    assert done.returncode == 2 and told in done.stderr
    assert not list(Path(fleet.env["TMPDIR"]).iterdir())
