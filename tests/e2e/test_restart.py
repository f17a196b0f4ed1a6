"""What follows from each end of a worker, on the real Hermes: started again, stopped, held, or begun anew."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path
from typing import Any

from tests.e2e.play import conversation, said, script, shell, user_texts
from tests.e2e.sandbox import Sandbox
from tests.until import until

OVERFLOW = (
    "This model's maximum context length is 131072 tokens. However, your messages resulted in 200001 tokens."
)


def again(box: Sandbox, worker: str, attempt: int) -> dict[str, Any]:
    """Wait until a later attempt is up, and return the worker's entry."""

    def up() -> dict[str, Any]:
        entry = box.worker(worker)
        return entry if entry["attempt"] == attempt and entry["phase"] == "up" else {}

    return until(up, 90, every=0.05, what=f"attempt {attempt} is up")


def write_role(box: Sandbox, name: str, text: str) -> str:
    folder = box.home / "config" / "hermux" / "roles" / name
    folder.mkdir(parents=True)
    (folder / "role.yaml").write_text(f"description: x\n{text}")
    (folder / "SOUL.md").write_text("You help.\n")
    return name


def profile(box: Sandbox, worker: str) -> Path:
    return box.home / ".hermes" / "profiles" / str(box.worker(worker)["hermes_profile"])


def test_a_person_leaves_by_exit_and_a_signal_is_no_person(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the quince")
    before = box.worker(worker)
    box.hermes(worker).send_signal(signal.SIGTERM)
    again(box, worker, 2)
    box.tmux("send-keys", "-t", f"={worker}:", "-l", "/exit")
    until(lambda: "❯ /exit" in box.tmux("capture-pane", "-p", "-t", f"={worker}:"), 20, what="it is typed")
    box.tmux("send-keys", "-t", f"={worker}:", "Enter")
    stopped = box.shows(worker, "stopped")
    assert "a person ended it in its pane" in stopped["why"]
    assert stopped["attempt"] == 2
    asked = box.run("ask", worker, "still there?")
    assert asked.returncode == 3
    assert f"hermux start {worker}" in asked.stderr
    assert f"hermux start {worker}" in box.out("why", worker)
    box.out("start", worker)
    after = again(box, worker, 3)
    assert after["session"] == before["session"]


def test_ctrl_d_in_the_pane_of_a_permanent_worker(shared_fleet: Sandbox) -> None:
    box = shared_fleet
    worker = box.hire("forever", "--role", write_role(box, "ever", "restart: permanent\n"))
    box.tmux("send-keys", "-t", f"={worker}:", "C-d")
    assert again(box, worker, 2)["ended_by"] == (
        "left(a person ended it in its pane (/exit, Ctrl-C or Ctrl-D))"
    )
    box.out("stop", worker, "--now")


def test_a_closed_session_is_no_person(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.tmux("kill-session", "-t", f"={worker}")
    again(box, worker, 2)


def test_a_missing_config_holds_and_says_what_to_type(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    config = profile(box, worker) / "config.yaml"
    kept = config.read_text()
    config.unlink()
    box.hermes(worker).kill()
    held = box.shows(worker, "held")
    assert "config.yaml" in held["why"]
    assert held["attempt"] == 2, "no crash loop"
    assert f"hermux start {worker}" in box.out("why", worker)
    config.write_text(kept)
    box.out("start", worker)
    again(box, worker, 3)


def test_a_used_up_conversation(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the tall medlar")
    before = box.worker(worker)
    box.rehearsal("faults", {"count": 1, "status": 400, "error": OVERFLOW})
    box.run("ask", worker, "prune the medlar")
    after = again(box, worker, 2)
    until(lambda: (box.worker(worker)["anew"] or {}).get("worked"), 60, what="the new conversation works")
    after = box.worker(worker)
    assert after["session"] != before["session"]
    assert after["restarts"] == 0, "it spends nothing"
    first = conversation(box, "prune the medlar")
    assert len(first) == 1
    assert first[0].startswith("[hermux] This is a new conversation")
    assert "remember the tall medlar" in first[0]
    shown = box.run("ls")
    assert "NEW CONVERSATION" in shown.stdout
    assert "NEW CONVERSATION" in shown.stderr, "an alert"
    assert "A NEW CONVERSATION" in box.out("why", worker)
    assert "BEGINS A NEW CONVERSATION" in box.out("logs", worker)


def test_a_session_that_cannot_be_resumed(shared_fleet: Sandbox, worker: str) -> None:
    """Once its database is damaged, then a row of it is gone: Hermes says nothing of the first."""
    box = shared_fleet
    box.out("ask", worker, "remember the damson")
    folder = profile(box, worker)
    box.hermes(worker).suspend()
    for path in folder.glob("state.db*"):
        path.write_bytes(b"no database\n" * 400)
    box.hermes(worker).kill()
    until(lambda: (box.worker(worker)["anew"] or {}).get("worked"), 90, what="the new conversation works")
    assert "damaged" in box.worker(worker)["anew"]["why"]
    assert list(folder.glob("state.db.damaged-*")), "it is kept"
    assert "remember the damson" in conversation(box, "the damson")[0]
    second = box.worker(worker)["session"]
    box.out("stop", worker)
    with sqlite3.connect(folder / "state.db") as database:
        database.execute("DELETE FROM messages")
        database.execute("DELETE FROM sessions")
    database.close()
    box.out("start", worker)
    until(lambda: (box.worker(worker)["anew"] or {}).get("worked"), 90, what="once more")
    assert f"session {second} is not in its database" in box.worker(worker)["anew"]["why"]
    assert box.out("ask", worker, script(said("all well"))) == "all well"


def test_a_finished_step_is_not_done_twice(shared_fleet: Sandbox) -> None:
    """Killed after the tool ran: the nudge, in the role's own words, goes on; it doesn't begin again."""
    box = shared_fleet
    words = "Carry on where you were, once."
    worker = box.hire("counts", "--role", write_role(box, "counter", f"nudge: {words}\n"))
    counter = box.home / "counter"
    steps = script(shell(f"echo once >> {counter}"), {"text": "counted", "delay": 300}, say="count")
    box.out("send", worker, steps)
    until(lambda: counter.exists() and box.worker(worker)["doing"] == "thinking", 60, what="the tool has run")
    box.hermes(worker).kill()
    again(box, worker, 2)
    box.out("wait", worker, "--timeout", "60")
    assert counter.read_text() == "once\n"
    assert words in user_texts(box.rehearsal("requests?newest=1")["requests"][-1]["messages"])[-1]
