"""Turns that wait: for a person, for children, for the keyboard."""

from __future__ import annotations

import json

from tests.e2e.play import conversation, said, script, shell, tool
from tests.e2e.sandbox import Sandbox, ended
from tests.until import until

DANGER = "rm -rf precious"


def dialog(box: Sandbox, worker: str) -> str:
    """Return the prompt line's zone of a worker's screen."""
    return box.tmux("capture-pane", "-p", "-t", f"={worker}:")


def choices(box: Sandbox, worker: str) -> list[str]:
    """Return the choices of a worker's dialog, as far as they were read."""
    return list((box.worker(worker)["waiting"] or {}).get("choices") or ())


def test_approval(shared_fleet: Sandbox, worker: str) -> None:
    """Exit 5 with its text; nothing is typed into it; a queued message waits, and comes after it."""
    box = shared_fleet
    (box.home / "precious").mkdir()
    done = box.run("ask", worker, script(shell(DANGER), said("as you like"), say="dangerous"))
    assert (done.returncode, done.stdout) == (5, "")
    assert f"{worker} waits for a person (approval, {worker}#1, " in done.stderr
    assert f" left): {DANGER}" in done.stderr
    assert until(lambda: choices(box, worker), 30)[0].startswith("Allow once")
    assert box.shows(worker, "waiting")["waiting"]["kind"] == "approval"
    before = dialog(box, worker)
    sent = box.out("send", "-q", worker, "1 and then 2")
    why = box.out("why", worker)
    assert DANGER in why
    assert sent in why
    assert f"hermux attach {worker}" in why
    assert box.run("wait", worker, "--timeout", "1").returncode == 5
    assert box.place(worker, sent) == "new"
    assert DANGER in before
    assert "1 and then 2" not in dialog(box, worker)
    assert (box.home / "precious").is_dir()
    box.out("keys", worker, "4")
    until(
        lambda: box.place(worker, sent) == "done", 60, every=0.1, what="the message that waited is delivered"
    )
    box.out("wait", worker, "--timeout", "60")
    assert (box.home / "precious").is_dir()
    assert conversation(box, "dangerous")[-1] == "1 and then 2"


def test_question(shared_fleet: Sandbox, worker: str) -> None:
    choices = ["the red one", "the blue one"]
    asking = script(tool("clarify", question="Which wire?", choices=choices), said("cut"))
    done = shared_fleet.run("ask", worker, asking)
    assert (done.returncode, done.stdout) == (5, "")
    assert "Which wire?" in done.stderr
    assert "1. the red one" in done.stderr
    waiting = shared_fleet.shows(worker, "waiting")["waiting"]
    assert waiting["kind"] == "question"
    assert waiting["text"] == "Which wire?"
    shared_fleet.out("keys", worker, "2")
    shared_fleet.out("wait", worker, "--timeout", "60")
    answer = json.dumps(shared_fleet.rehearsal("requests?newest=1"))
    assert "the blue one" in answer


def test_open_question(shared_fleet: Sandbox, worker: str) -> None:
    done = shared_fleet.run("ask", worker, script(tool("clarify", question="What name?"), said("noted")))
    assert done.returncode == 5
    assert "What name?" in done.stderr
    assert shared_fleet.shows(worker, "waiting")["waiting"]["kind"] == "open_question"
    refused = shared_fleet.json("interrupt", worker)["messages"][0]["id"]
    until(
        lambda: shared_fleet.place(worker, refused) == "failed", 30, every=0.1, what="an interrupt is refused"
    )
    assert shared_fleet.worker(worker)["word"] == "waiting"
    shared_fleet.out("keys", worker, "B", "o", "Enter")
    shared_fleet.out("wait", worker, "--timeout", "60")
    assert shared_fleet.worker(worker)["attempt"] == 1


def test_delegation_is_over_when_its_children_are(shared_fleet: Sandbox, worker: str) -> None:
    goals = [script({"delay": 1, "text": f"fruit of child {n}"}, say=f"child {n}") for n in (1, 2)]
    tasks = [{"goal": goal, "context": "none"} for goal in goals]
    turn = script(
        tool("delegate_task", tasks=tasks), said("they are at it"), said("both are done"), say="share"
    )
    asking = shared_fleet.begin("ask", worker, turn, "--json")
    assert shared_fleet.shows(worker, "background")["background"] >= 1
    answer = json.loads(ended(asking).stdout)
    assert answer["text"] == "both are done"
    assert answer["delegations"] == 1
    told = conversation(shared_fleet, "[ASYNC DELEGATION")[-1]
    assert "fruit of child 1" in told
    assert "fruit of child 2" in told
    assert shared_fleet.shows(worker, "ready")["background"] == 0


def test_interrupt(shared_fleet: Sandbox, worker: str) -> None:
    asking = shared_fleet.begin("ask", worker, script({"delay": 100}))
    shared_fleet.shows(worker, "busy")
    shared_fleet.out("interrupt", worker)
    done = ended(asking)
    assert (done.returncode, done.stdout) == (3, "")
    assert "was interrupted" in done.stderr
    assert shared_fleet.shows(worker, "ready")["attempt"] == 1
    idle = shared_fleet.json("interrupt", worker)["messages"][0]["id"]
    until(lambda: shared_fleet.place(worker, idle) == "done", 20, every=0.05)
    assert shared_fleet.out("ask", worker, script(said("still here"))) == "still here"
    assert shared_fleet.worker(worker)["attempt"] == 1


def test_send_interrupt_goes_before_the_running_turn(shared_fleet: Sandbox, worker: str) -> None:
    shared_fleet.out("send", worker, script({"delay": 100}))
    shared_fleet.shows(worker, "busy")
    done = shared_fleet.run("send", "--interrupt", "--wait", "--timeout", "60", worker, "this first")
    assert done.returncode == 0, done.stderr
    shared_fleet.out("wait", worker, "--timeout", "60")
    assert "this first" in conversation(shared_fleet, "this first")[-1]


def test_ask_gives_up_and_the_turn_goes_on(shared_fleet: Sandbox, worker: str) -> None:
    done = shared_fleet.run("ask", worker, script({"delay": 4, "text": "late"}), "--timeout", "2")
    assert (done.returncode, done.stdout) == (124, "")
    assert "within 2 s" in done.stderr
    shared_fleet.out("wait", worker, "--timeout", "60")
    turns = (shared_fleet.dir / "workers" / worker / "turns").glob("*.json")
    assert [json.loads(turn.read_text())["answer"] for turn in turns] == ["late"]


def test_produces(shared_fleet: Sandbox, worker: str) -> None:
    lazy = shared_fleet.run("ask", worker, script(said("I wrote it")), "--produces", "made.txt")
    assert (lazy.returncode, lazy.stdout) == (3, "")
    assert "made.txt is not there; no tool that writes was called" in lazy.stderr
    writing = script(tool("write_file", path="made.txt", content="x\n"), said("now I did"))
    assert shared_fleet.out("ask", worker, writing, "--produces", "made.txt") == "now I did"
    stale = shared_fleet.run("ask", worker, script(shell("true"), said("again")), "--produces", "made.txt")
    assert stale.returncode == 3
    assert "made.txt was not written in this turn" in stale.stderr


def test_a_persons_draft_is_kept(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.tmux("send-keys", "-t", f"={worker}:", "-l", "half a thou")
    box.shows(worker, "draft")
    sent = box.out("send", "-q", worker, "hello behind the draft")
    extra = box.out("send", "-q", worker, "taken back")
    assert "half a thou" in box.out("why", worker)
    assert box.json("why", worker)["intake"] == "paused"
    box.out("unsend", extra)
    again = box.run("unsend", extra)
    assert again.returncode == 2
    assert box.place(worker, sent) == "new"
    box.tmux("send-keys", "-t", f"={worker}:", "-l", "ght")
    box.tmux("send-keys", "-t", f"={worker}:", "Enter")
    until(lambda: box.place(worker, sent) == "done", 60, every=0.1)
    box.out("wait", worker, "--timeout", "60")
    assert conversation(box, "hello behind") == ["half a thought", "hello behind the draft"]


def test_copy_mode(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.tmux("copy-mode", "-t", f"={worker}:")
    until(lambda: box.worker(worker)["intake"] == "paused", 20, every=0.1, what="copy mode is seen")
    sent = box.out("send", "-q", worker, "hello behind copy mode")
    assert "copy mode" in box.out("why", worker)
    assert box.place(worker, sent) == "new"
    box.tmux("send-keys", "-t", f"={worker}:", "-X", "cancel")
    until(lambda: box.place(worker, sent) == "done", 60, every=0.1)
    box.out("wait", worker, "--timeout", "60")
    assert conversation(box, "copy mode") == ["hello behind copy mode"]


def test_over_half_the_context_is_warned_of(shared_fleet: Sandbox, worker: str) -> None:
    shared_fleet.out("keys", worker, "x")
    shared_fleet.shows(worker, "draft")
    done = shared_fleet.run("send", worker, "-", stdin="words " * 50_000)
    assert done.returncode == 0
    assert "more than half of its context of 131,072" in done.stderr
    shared_fleet.out("unsend", done.stdout.split()[0])


def test_an_unknown_message_cannot_be_taken_back(shared_fleet: Sandbox) -> None:
    done = shared_fleet.run("unsend", "m-none-0000")
    assert done.returncode == 2
    assert "no message m-none-0000" in done.stderr
