"""A turn that fails gives exit 3 and the endpoint's error, and its worker is told apart from a busy one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import said, script
from tests.e2e.sandbox import Sandbox, ended, sandbox
from tests.until import until

FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "missing": ({"status": 404}, "not_found", "HTTP 404"),
    "limited": ({"status": 429}, "rate_limit", "HTTP 429"),
    "broken": ({"status": 500}, "server", "HTTP 500"),
    "empty": ({"malformed": "nochoices"}, "no_answer", "empty stream"),
    "refused": ({}, "connection", "onnect"),
}
"""By worker: what every call of its turn meets, the kind of failure, and what the error says."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Five workers whose turns failed side by side, and one that is busy."""

    box: Sandbox
    asked: dict[str, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def failed(hermes: Path) -> Iterator[Failed]:
    """The waits of Hermes between its tries take up to 25 s: they are waited for once."""
    with sandbox(hermes) as box:
        with RehearsalServer() as gone:
            box.hire("refused", "--endpoint", gone.url)
        for name in FAILURES:
            if name != "refused":
                box.out("spawn", "--name", name, "--no-wait")
        box.hire("busy")
        box.out("send", "busy", script({"delay": 150}, say="API call failed after 3 retries"))
        asking = {
            name: box.begin("ask", name, script(*[step] * 12)) for name, (step, _, _) in FAILURES.items()
        }
        yield Failed(box, {name: ended(each, 150) for name, each in asking.items()})


@pytest.mark.parametrize("name", FAILURES)
def test_ask_fails_with_the_error(failed: Failed, name: str) -> None:
    done, (_, kind, error) = failed.asked[name], FAILURES[name]
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert done.stderr.startswith(f"hermux: the turn of {name} failed: ")
    assert error in done.stderr
    assert f"hermux why {name}" in done.stderr
    last = failed.box.worker(name)["last_turn"]
    assert (last["outcome"], last["kind"]) == ("failed", kind)


@pytest.mark.parametrize("name", FAILURES)
def test_failed_is_told_apart_from_busy(failed: Failed, name: str) -> None:
    assert failed.box.shows(name, "failed")["activity"] == "ready"
    assert failed.box.worker(name)["phase"] == "up"
    assert failed.box.worker("busy")["word"] == "busy"
    assert "failed (" in failed.box.out("why", name)
    done = failed.box.run("wait", name)
    assert done.returncode == 3
    assert FAILURES[name][2] in done.stderr


@pytest.mark.parametrize("name", [name for name in FAILURES if name != "refused"])
def test_the_next_turn_is_a_turn_of_its_own(failed: Failed, name: str) -> None:
    """Hermes merges the message that got no answer with the next one."""
    assert failed.box.out("ask", name, script(said("well again"), say="second try")) == "well again"
    assert failed.box.shows(name, "ready")["last_turn"]["outcome"] == "ok"


def test_a_refused_key_holds_the_worker_until_start(shared_fleet: Sandbox, worker: str) -> None:
    done = shared_fleet.run("ask", worker, script({"status": 401}))
    assert (done.returncode, done.stdout) == (3, "")
    assert "HTTP 401" in done.stderr
    held = shared_fleet.shows(worker, "held")
    assert held["why"].startswith("auth: HTTP 401")
    assert any(worker in alert["text"] for alert in shared_fleet.json("ls")["alerts"])
    refused = shared_fleet.run("ask", worker, "anybody?")
    assert refused.returncode == 3
    assert "held" in refused.stderr
    assert "nothing was sent" in refused.stderr
    sent = shared_fleet.run("send", "-q", worker, "when you can")
    assert sent.returncode == 0
    assert "held" in shared_fleet.out("why", worker)
    assert shared_fleet.place(worker, sent.stdout.strip()) == "new"
    shared_fleet.out("start", worker)
    until(lambda: shared_fleet.place(worker, sent.stdout.strip()) == "done", 60, every=0.1)
    assert shared_fleet.out("ask", worker, script(said("thanks"))) == "thanks"
    assert shared_fleet.worker(worker)["attempt"] == 1
    assert shared_fleet.shows(worker, "ready")


def test_an_endpoint_that_stutters_is_no_failure(shared_fleet: Sandbox, worker: str) -> None:
    shared_fleet.rehearsal("faults", {"count": 1, "status": 429, "retry_after": 1})
    assert shared_fleet.out("ask", worker, script(said("in the end"))) == "in the end"
    assert shared_fleet.worker(worker)["last_turn"]["outcome"] == "ok"
