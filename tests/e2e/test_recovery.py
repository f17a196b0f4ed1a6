"""Killed workers and killed supervisors: the conversation goes on and nothing comes twice."""

from __future__ import annotations

import os
import signal
from collections import Counter

import psutil

from tests.e2e.play import conversation, said, script, shell, user_texts
from tests.e2e.sandbox import Sandbox, ended
from tests.until import until

STEPS = ("take", "typing", "typed", "entered", "accepted")


def again(box: Sandbox, worker: str, attempt: int) -> None:
    """Wait until a later attempt is ready."""
    until(lambda: box.worker(worker)["attempt"] == attempt, 60, every=0.05, what=f"attempt {attempt}")
    until(lambda: box.worker(worker)["phase"] == "up", 90, every=0.05, what=f"attempt {attempt} is up")


def kill_supervisor_at(box: Sandbox, worker: str, message: str, step: str) -> None:
    """Kill the supervisor when a message's delivery is at a step, or over."""

    def reached() -> bool:
        running = box.worker(worker).get("operation") or {}
        at = running.get("message") == message and running.get("step") == step
        return at or box.place(worker, message) in ("done", "failed")

    until(reached, 60, every=0.005, what=f"the delivery is at {step}")
    os.kill(box.supervisor(), signal.SIGKILL)
    until(lambda: not box.supervisor(), 10)


def test_killed_idle_it_resumes_its_conversation(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the idle plum")
    before = box.worker(worker)
    box.hermes(worker).kill()
    again(box, worker, 2)
    assert box.out("ask", worker, script(said("plum"), say="which fruit?")) == "plum"
    after = box.worker(worker)
    assert after["session"] == before["session"]
    assert (after["restarts"], after["role"]) == (1, before["role"])
    texts = conversation(box, "idle plum")
    assert texts[0] == "remember the idle plum"
    assert len(texts) == 2, "an idle worker is not told to go on"
    assert texts[1].startswith("which fruit?")


def test_killed_in_a_turn_it_goes_on(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the busy fig")
    before = box.worker(worker)
    asking = box.begin("ask", worker, script(shell("touch begun; exec sleep 300"), said("never"), say="long"))
    until((box.home / "begun").exists, 60, what="the tool runs")
    tools = [p for p in box.processes(worker) if "sleep" in " ".join(p.cmdline())]
    assert tools
    box.hermes(worker).kill()
    done = ended(asking)
    assert done.returncode == 0, done.stderr
    again(box, worker, 2)
    after = box.worker(worker)
    assert after["session"] == before["session"]
    assert after["restarts"] == 1
    texts = conversation(box, "busy fig")
    assert sum(text.startswith("long ") for text in texts) == 1
    assert len(texts) == 3, "told once to go on"
    assert not any(process.is_running() for process in tools), "the tool of the dead attempt was swept"
    logged = box.out("logs", worker)
    assert "signalled(9)" in logged
    assert f"starting attempt 2 in session {before['session']}" in logged


def test_killed_launch_script(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the script's lime")
    before, hermes = box.worker(worker), box.hermes(worker)
    psutil.Process(before["pid"]).kill()
    again(box, worker, 2)
    assert not hermes.is_running()
    assert box.out("ask", worker, script(said("lime"))) == "lime"
    assert box.worker(worker)["session"] == before["session"]
    assert conversation(box, "script's lime")[0] == "remember the script's lime"
    hermes_of = [p for p in box.processes(worker) if "--cli" in p.cmdline()]
    assert len(hermes_of) == 1


def test_killed_supervisor_adopts_what_runs(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    before, hermes = box.worker(worker), box.hermes(worker).pid
    os.kill(box.supervisor(), signal.SIGKILL)
    until(lambda: not box.supervisor(), 10)
    assert "supervisor" in box.run("ls").stderr
    assert box.out("ask", worker, script(said("as ever"))) == "as ever"
    after = box.worker(worker)
    assert box.hermes(worker).pid == hermes
    assert (after["pid"], after["attempt"]) == (before["pid"], before["attempt"])
    assert box.supervisor()


def test_supervisor_killed_while_it_delivers(shared_fleet: Sandbox, worker: str) -> None:
    """Each message comes to the model once, in its order, wherever in its delivery the supervisor died."""
    box = shared_fleet
    texts = [f"numbered {n:02d}" for n in range(12)]
    sent = [box.out("send", "-q", worker, text) for text in texts]
    for number, message in enumerate(sent[:8]):
        kill_supervisor_at(box, worker, message, STEPS[number % len(STEPS)])
        box.out("start", worker)
    box.out("wait", worker, "--timeout", "90")
    assert {box.place(worker, each) for each in sent} == {"done"}
    seen_by_model = [text for text in conversation(box, texts[-1]) if text.startswith("numbered")]
    assert seen_by_model == texts
    assert box.worker(worker)["attempt"] == 1


def test_worker_and_supervisor_killed_together(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the twin pears")
    before = box.worker(worker)
    os.kill(box.supervisor(), signal.SIGKILL)
    box.hermes(worker).kill()
    until(lambda: not box.supervisor(), 10)
    sent = box.out("send", "-q", worker, "to whoever comes back")
    until(lambda: box.place(worker, sent) == "done", 90, every=0.1)
    box.out("wait", worker, "--timeout", "60")
    after = box.worker(worker)
    assert (after["session"], after["attempt"]) == (before["session"], 2)
    texts = conversation(box, "twin pears")
    assert Counter(texts)["to whoever comes back"] == 1


def test_the_rehearsal_model_is_kept_alive(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    pid = int(box.tmux("display-message", "-p", "-t", "=rehearsal:", "#{pane_pid}"))
    os.kill(pid, signal.SIGKILL)
    assert box.out("ask", worker, script(said("there again")), timeout=60) == "there again"
    requests = box.rehearsal("requests")["requests"]
    assert user_texts(requests[-1]["messages"])
