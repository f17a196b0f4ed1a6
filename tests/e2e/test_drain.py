"""drain and pause, with the real Hermes."""

from __future__ import annotations

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, ended
from tests.until import until


def test_drain_lets_the_turn_end_and_keeps_what_waits(shared_fleet: Sandbox, worker: str) -> None:
    box, mark = shared_fleet, shared_fleet.home / worker
    box.out("send", worker, script(shell(f"sleep 4; echo x >> {mark}"), said("done with it"), say="work"))
    box.shows(worker, "busy")
    box.out("send", worker, f"for later, {worker}")
    slow = box.run("drain", worker, "--timeout", "0.5")
    assert slow.returncode == 124
    assert f"hermux stop {worker}" in slow.stderr
    assert (box.worker(worker)["word"], box.worker(worker)["draining"]) == ("busy", True)
    assert box.run("ask", worker, "me too").returncode == 3
    done = box.run("drain", worker)
    assert done.returncode == 0, done.stderr
    assert "it stops after that" in done.stderr
    assert f"1 message waits in its inbox → hermux start {worker}" in done.stderr
    assert mark.read_text() == "x\n"
    last = box.json("transcript", worker)["turns"][-1]
    assert (last["state"], last["answer"]) == ("ok", "done with it")
    assert not box.processes(worker)
    box.out("start", worker)
    box.out("wait", worker, "--timeout", "60")
    told = conversation(box, f"for later, {worker}")
    assert told[-1] == f"for later, {worker}"
    assert len(told) == 2, "nobody told it to go on with a turn that had ended"


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


def test_pause_cuts_the_turn_and_start_goes_on_with_it(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    steps = [shell(f"echo once >> {worker}.txt"), {"delay": 60}, said("went on")]
    box.out("send", worker, script(*steps, say="long work"))
    until((box.home / f"{worker}.txt").exists, 60, what="the tool ran")
    before = box.worker(worker)
    done = box.run("pause", worker)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr.split(" MB of memory freed")[0].split()[-1]) > 50
    paused = box.worker(worker)
    assert (paused["word"], paused["want"], paused["pid"]) == ("paused", "paused", 0)
    assert not box.processes(worker)
    assert "the message waits" in box.run("send", worker, f"after the pause, {worker}").stderr
    assert f"hermux start {worker}" in box.out("why", worker)
    assert box.worker(worker)["word"] == "paused"
    box.out("start", worker)
    box.out("wait", worker, "--timeout", "90")
    after = box.worker(worker)
    assert (after["session"], after["restarts"]) == (before["session"], 0)
    told = conversation(box, f"after the pause, {worker}")
    assert [text.startswith("[hermux] Your process") for text in told] == [False, True, False]
    assert (box.home / f"{worker}.txt").read_text() == "once\n"
