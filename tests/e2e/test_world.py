"""The world around the supervisor: its successor, and one of another version."""

from __future__ import annotations

import json

import psutil

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, ended
from tests.e2e.test_recovery import STEPS
from tests.until import until


def replace(box: Sandbox) -> int:
    """Have a new supervisor take the place of the one that runs; return its pid."""
    before = box.supervisor()
    box.out("supervise", "--replace", "--detach")
    after = box.supervisor()
    assert after and after != before
    until(lambda: not psutil.pid_exists(before), 5, what="the one before has ended")
    return after


def test_a_successor_takes_over_while_workers_run(shared_fleet: Sandbox, worker: str) -> None:
    """Handed over in a turn and at each step of a delivery: nothing restarts, each message comes once, in order."""
    box = shared_fleet
    hermes = box.hermes(worker).pid
    go = box.home / "go"
    asking = box.begin("ask", worker, script(shell(f"until test -e {go}; do sleep 0.1; done"), said("held")))
    box.shows(worker, "busy")
    replace(box)
    go.touch()
    assert ended(asking).stdout.strip() == "held"
    texts = [f"counted {n:02d}" for n in range(len(STEPS))]
    sent = [box.out("send", "-q", worker, text) for text in texts]
    for message, step in zip(sent, STEPS, strict=True):

        def reached(message: str = message, step: str = step) -> bool:
            running = box.worker(worker).get("operation") or {}
            at = running.get("message") == message and running.get("step") == step
            return at or box.place(worker, message) in ("done", "failed")

        until(reached, 60, every=0.005, what=f"the delivery is at {step}")
        replace(box)
    box.out("wait", worker, "--timeout", "90")
    assert {box.place(worker, each) for each in sent} == {"done"}
    seen = [text for text in conversation(box, texts[-1]) if text.startswith("counted")]
    assert seen == texts
    assert box.hermes(worker).pid == hermes
    assert (box.worker(worker)["attempt"], box.worker(worker)["restarts"]) == (1, 0)


def test_one_of_another_version_is_refused_before_anything_changes(
    shared_fleet: Sandbox, worker: str
) -> None:
    box = shared_fleet
    lock = box.dir / "supervisor.lock"
    signature = json.loads(lock.read_text())
    with lock.open("r+") as file:  # in place: the lock is the file's
        file.write(json.dumps(signature | {"version": "0.0.0"}) + "\n")
        file.truncate()
    wanted = (box.dir / "desired.json").read_bytes()
    for words in (["send", worker, "x"], ["restart", worker], ["stop", worker], ["spawn"], ["scale", "3"]):
        refused = box.run(*words)
        assert refused.returncode == 1, (words, refused.stdout)
        assert "is hermux 0.0.0" in refused.stderr and "hermux supervise --replace" in refused.stderr, words
    assert (box.dir / "desired.json").read_bytes() == wanted
    assert not list((box.dir / "workers" / worker / "inbox" / "new").iterdir())
    listed = box.run("ls")
    assert listed.returncode == 0 and worker in listed.stdout and "is hermux 0.0.0" in listed.stderr
    replace(box)
    assert box.out("ask", worker, script(said("as ever"))) == "as ever"
    assert box.worker(worker)["attempt"] == 1
