"""The doctor with the real Hermes and tmux: a healthy machine, a broken turn, two workers at once, one suspect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.cli.schemas import undocumented
from orchestrator.rehearsal.record import hidden
from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.sandbox import Sandbox, sandbox
from tests.unit.engine import Engine, running
from tests.until import until

KEY = "sk-doctor-e2e-0123456789abcdef"
LONG = 600
"""Seconds for a doctor on a machine on which everything takes ten times as long."""
CACHE = "cache/hermux/hermes.json"
pytestmark = pytest.mark.timeout(LONG)


def doctor(
    box: Sandbox, *args: str, code: int, env: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Run `hermux doctor --json` and return the checks by name; its document is the documented one."""
    done = box.run("doctor", "--json", *args, env=env, timeout=LONG)
    assert done.returncode == code, done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert undocumented("doctor", document) == []
    assert document["ok"] is (code == 0)
    checks: dict[str, dict[str, Any]] = {check["name"]: check for check in document["checks"]}
    assert all(check["next"] or check["state"] in ("ok", "skipped") for check in checks.values())
    return checks


def files(box: Sandbox) -> list[str]:
    """Return every file of the home but the cache of Hermes' version."""
    found = (path.relative_to(box.home).as_posix() for path in box.home.rglob("*") if not path.is_dir())
    return sorted(path for path in found if path != CACHE)


@contextmanager
def leaves_nothing(box: Sandbox) -> Iterator[None]:
    """Check that files and processes of the home are afterwards as they were."""
    before, running_before = files(box), {process.pid for process in box.processes()}
    yield
    until(
        lambda: {process.pid for process in box.processes()} <= running_before, 10, what="no process is left"
    )
    after = [path for path in files(box) if not path.endswith((".tmp", "-journal", "-wal", "-shm"))]
    assert set(after) <= set(before), sorted(set(after) - set(before))


def test_a_healthy_machine(fleet: Sandbox) -> None:
    own = fleet.home / ".hermes" / "config.yaml"
    own.parent.mkdir()
    own.write_text("model:\n  provider: openrouter\n")
    stamp = own.stat().st_mtime_ns
    with RehearsalServer() as server, leaves_nothing(fleet):
        env = {"HERMUX_ENDPOINT": server.url, "HERMUX_KEY_ENV": "GPU_KEY", "GPU_KEY": KEY}
        checks = doctor(fleet, code=0, env=env)
        requests = server.requests
    assert own.stat().st_mtime_ns == stamp
    assert {check["state"] for check in checks.values()} <= {"ok", "warn"}
    for name in (
        "tmux",
        "tmux server",
        "hermes",
        "connection",
        "models",
        "context",
        "chat",
        "stream",
        "tools",
    ):
        assert checks[name]["state"] == "ok", checks[name]
    assert "0.19.0" in checks["hermes"]["seen"] and "site-packages" in checks["hermes"]["seen"]
    assert "key in $GPU_KEY" in checks["endpoint"]["seen"]
    assert re.search(r"= \d+ more worker", checks["memory"]["seen"])
    assert "prompt stood after" in checks["hermes start"]["seen"]
    assert "one real turn took" in checks["hermes turn"]["seen"]
    assert {request.headers["authorization"] for request in requests} == {
        hidden("authorization", f"Bearer {KEY}")
    }
    turn = requests[-1]
    assert len(turn.tools) > 5 and turn.stream, "the last request came from the real Hermes"


def test_without_an_endpoint_and_interrupted(fleet: Sandbox) -> None:
    """It runs with the rehearsal model, in 80 columns; Ctrl-C in the middle of the real Hermes cleans up."""
    for _ in range(3):
        status = interrupted(fleet)
        if status != 0:  # 0: it was through before the key came
            break
    assert status == 130


def interrupted(fleet: Sandbox) -> int | None:
    """Run the doctor, press Ctrl-C when its Hermes runs, and return its exit status."""
    with leaves_nothing(fleet):
        terminal = fleet.terminal("doctor", columns=80)
        terminal.expect("warn +endpoint", timeout=LONG)
        terminal.expect("tools ", timeout=LONG)
        before = terminal.before.decode()
        assert "scripted answers" in before and "hermux endpoint set URL -m MODEL" in before
        assert all(len(line.rstrip()) <= 80 for line in before.splitlines())
        until(lambda: fleet.processes("doctor"), 60, what="Hermes runs")
        terminal.sendintr()
        until(lambda: not terminal.isalive(), 30, what="the doctor has ended")
        terminal.close()
        return int(terminal.exitstatus) if terminal.exitstatus is not None else None


def test_what_fails_stops_what_depends_on_it(fleet: Sandbox) -> None:
    with RehearsalServer() as gone:
        url = gone.url
    with leaves_nothing(fleet):
        checks = doctor(fleet, "--full", code=1, env={"HERMUX_ENDPOINT": url})
    assert checks["connection"]["state"] == "fail" and "refused" in checks["connection"]["seen"]
    for name in (
        "models",
        "tools",
        "hermes start",
        "hermes turn",
        "two workers",
        "two files",
        "two requests",
    ):
        assert checks[name]["state"] == "skipped" and "'connection' failed" in checks[name]["seen"]
    assert checks["tmux server"]["state"] == "ok", "what does not depend on it is looked at"


def test_a_server_that_takes_small_requests_only(fleet: Sandbox) -> None:
    """Only the real turn, with all of Hermes' tools, shows it."""
    with running(Engine(most_tools=3)) as engine, leaves_nothing(fleet):
        checks = doctor(fleet, code=1, env={"HERMUX_ENDPOINT": engine.url})
    assert checks["tools"]["state"] == "ok"
    assert checks["hermes start"]["state"] == "ok"
    assert checks["hermes turn"]["state"] == "fail", checks["hermes turn"]
    assert "maximum context length" in checks["hermes turn"]["seen"]
    assert "longer context" in checks["hermes turn"]["next"]


def test_full_beside_a_running_fleet(fleet: Sandbox) -> None:
    fleet.hire("w", "--toolsets", "terminal")
    pid = fleet.hermes("w").pid
    with RehearsalServer() as server, leaves_nothing(fleet):
        env = {"HERMUX_ENDPOINT": server.url, "HERMUX_KEY_ENV": "GPU_KEY", "GPU_KEY": KEY}
        checks = doctor(fleet, "--full", code=0, env=env)
        asked = [request for request in server.requests if "doctor.txt" in str(request.messages)]
    assert "both ready" in checks["two workers"]["seen"]
    assert "two files are on disk" in checks["two files"]["seen"]
    flight = checks["two requests"]
    assert flight["state"] == "ok", flight
    assert "2 in flight at once" in flight["seen"] and "POST /v1/chat/completions" in flight["seen"]
    assert "model hermux-rehearsal" in flight["seen"] and "key of $GPU_KEY" in flight["seen"]
    assert len({request.conversation for request in asked}) >= 2
    assert psutil.pid_exists(pid) and fleet.worker("w")["attempt"] == 1
    assert not list((fleet.home / "tmux").rglob("*doctor*"))


@dataclass(frozen=True, slots=True)
class Suspect:
    """A worker on a server that a test breaks in the way it wants."""

    box: Sandbox
    engine: Engine
    name: str = "suspect"

    def verdict(self, code: int) -> dict[str, dict[str, Any]]:
        return doctor(self.box, "--worker", self.name, "--timeout", "20", code=code)

    def fail(self, status: int) -> None:
        """Have its next turn fail."""
        self.engine.answer = (status, {"error": {"message": "as the test wants"}})
        done = self.box.run("ask", self.name, "anything", timeout=LONG)
        assert done.returncode == 3, done.stdout + done.stderr
        self.engine.answer = None


@pytest.fixture(scope="module")
def suspect(hermes: Path) -> Iterator[Suspect]:
    with sandbox(hermes) as box, running(Engine(tool_text="talked, not called", key=KEY)) as engine:
        box.env["GPU_KEY"] = KEY
        box.hire("suspect", "--toolsets", "terminal", "--endpoint", engine.url, "--key-env", "GPU_KEY")
        yield Suspect(box, engine)


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> None:
    """Each test finds the suspect's server well."""
    if "suspect" in request.fixturenames:
        engine = request.getfixturevalue("suspect").engine
        engine.answer, engine.slots, engine.delay, engine.tool_text, engine.only = None, 0, 0.0, "", ""


def test_worker_nothing_is_wrong(suspect: Suspect) -> None:
    checks = suspect.verdict(0)
    assert "nothing is wrong" in checks["verdict"]["seen"]
    assert checks["alone"]["state"] == "ok" and "together" not in checks
    assert checks["environment"]["seen"].startswith("it runs with its own Hermes home and key")
    assert suspect.engine.bodies[-1]["tools"][0]["function"]["name"] == "hermux_check"


def test_worker_or_concurrency(suspect: Suspect) -> None:
    suspect.fail(500)
    suspect.engine.slots, suspect.engine.delay = 1, 1.0
    checks = suspect.verdict(1)
    assert checks["alone"]["state"] == "ok"
    assert (
        checks["together"]["state"] == "fail" and "1 of 2 requests at once fail" in checks["together"]["seen"]
    )
    assert "it is the concurrency" in checks["verdict"]["seen"]
    assert "--max-num-seqs" in checks["verdict"]["next"]
    suspect.engine.slots, suspect.engine.delay = 0, 0.0
    checks = suspect.verdict(0)
    assert checks["together"]["state"] == "ok"
    assert "it is the worker (worker): its last turn failed (server)" in checks["verdict"]["seen"]


def test_worker_or_endpoint(suspect: Suspect) -> None:
    suspect.engine.answer = (503, {"error": {"message": "loading model"}})
    checks = suspect.verdict(1)
    assert checks["alone"]["state"] == "fail" and "503" in checks["alone"]["seen"]
    assert "it is the endpoint" in checks["verdict"]["seen"]


def test_worker_or_model(suspect: Suspect) -> None:
    suspect.engine.tool_text = '<tool_call>\n{"name": "hermux_check", "arguments": {}}\n</tool_call>'
    checks = suspect.verdict(1)
    assert "it is the model, or how it is served" in checks["verdict"]["seen"]
    assert "--enable-auto-tool-choice" in checks["verdict"]["next"]


def test_worker_its_profile_was_changed(suspect: Suspect) -> None:
    home = suspect.box.home / ".hermes" / "profiles" / f"hx-{suspect.box.fleet}-suspect"
    config = home / "config.yaml"
    right = config.read_text()
    config.write_text(right.replace(suspect.engine.url, "http://127.0.0.1:9/v1"))
    checks = suspect.verdict(1)
    config.write_text(right)
    assert "somebody changed it" in checks["settings"]["seen"]
    assert "it is the worker (settings)" in checks["verdict"]["seen"]


def test_worker_held_after_a_refused_key(suspect: Suspect) -> None:
    suspect.fail(401)
    suspect.box.shows("suspect", "held")
    checks = suspect.verdict(0)
    assert "it is the worker (worker): held: auth: HTTP 401" in checks["verdict"]["seen"]
    assert checks["verdict"]["next"] == "when it is mended: hermux start suspect"
    assert checks["together"]["state"] == "ok"


def test_questions_that_cannot_be_asked(suspect: Suspect) -> None:
    done = suspect.box.run("doctor", "--worker", "nobody")
    assert done.returncode == 2 and "nobody" in done.stderr
    done = suspect.box.run("doctor", "--worker", "suspect", "--full")
    assert done.returncode == 2 and "two questions" in done.stderr
