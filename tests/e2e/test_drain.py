"""drain and pause, on the real Hermes."""

from __future__ import annotations

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, ended
from tests.until import until


def test_drain_ends_the_turn_first(shared_fleet: Sandbox, worker: str) -> None:
    box, gate = shared_fleet, shared_fleet.home / "gate"
    asked = box.begin(
        "ask", worker, script(shell(f"until [ -e {gate} ]; do sleep 0.1; done"), said("finished"))
    )
    until(lambda: "gate" in box.worker(worker).get("doing", ""), 60, what="the tool runs")
    late = box.run("drain", worker, "--timeout", "0.5")
    assert late.returncode == 124
    sent = box.out("send", "-q", worker, "for the next time")
    assert "draining" in box.out("ls")
    drained = box.begin("drain", worker)
    gate.touch()
    done = ended(drained)
    assert done.returncode == 0, done.stderr
    assert f"1 message waits in its inbox → hermux start {worker}" in done.stderr
    answer = ended(asked)
    assert (answer.returncode, answer.stdout.strip()) == (0, "finished"), answer.stderr
    assert not box.processes(worker)
    assert (box.worker(worker)["word"], box.place(worker, sent)) == ("stopped", "new")
    box.out("start", worker)
    until(lambda: box.place(worker, sent) == "done", 60, every=0.1)


def test_pause_keeps_a_cut_turn(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("send", worker, script(shell("sleep 300"), said("after the pause"), say="the long way"))
    until(lambda: "sleep 300" in box.worker(worker).get("doing", ""), 60, what="the tool runs")
    session = box.worker(worker)["session"]
    done = box.run("pause", worker)
    assert done.returncode == 0, done.stderr
    freed = next(line for line in done.stderr.splitlines() if line.endswith("of memory freed"))
    assert int(freed.split()[0]) > 50, freed
    assert not box.processes(worker)
    paused = box.worker(worker)
    assert (paused["word"], paused["phase"], paused["want"]) == ("paused", "stopped", "paused")
    box.out("wait", worker, "--state", "paused", "--timeout", "5")
    sent = box.out("send", "-q", worker, "and this")
    assert box.place(worker, sent) == "new"
    box.out("start", worker)
    box.out("wait", worker)
    assert box.place(worker, sent) == "done"
    texts = conversation(box, "and this")
    marks = ("the long way", "[hermux] Your process was interrupted", "and this")
    told = [mark for text in texts for mark in marks if mark in text]
    assert told == list(marks), "what goes on with the cut turn comes before what waited"
    assert box.worker(worker)["session"] == session


def test_a_draining_worker_that_asks_a_person_says_so(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    (box.home / f"{worker}.d").mkdir()
    box.out("send", worker, script(shell(f"rm -rf {worker}.d"), said("gone"), say="ask me"))
    box.shows(worker, "waiting")
    draining = box.begin("drain", worker)
    until(lambda: box.worker(worker)["draining"], 30, every=0.1, what="the worker drains")
    box.out("approve", worker)
    done = ended(draining)
    assert done.returncode == 0
    assert f"hermux approve {worker}" in done.stderr
    assert box.worker(worker)["word"] == "stopped"
    assert not (box.home / f"{worker}.d").exists()
