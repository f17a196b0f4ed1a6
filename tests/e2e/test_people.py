"""People in the loop: what workers ask is answered from outside, by id, and by nobody else's id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.play import conversation, said, script, shell, tool
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

DANGER = "rm -rf precious"
CONFIG = 'notify:\n  command: [sh, -c, "cat >> $HOME/told.jsonl; echo heard"]\n'
HASTY = "description: its dialogs wait for eight seconds\ntoolsets: [terminal, clarify]\napprovals: {timeout: 8}\n"


@pytest.fixture(scope="module")
def office(hermes: Path) -> Iterator[Sandbox]:
    """A fleet whose user is told by a command, with a ready worker `clerk`."""
    with sandbox(hermes) as box:
        mine = box.home / "config" / "hermux"
        (mine / "roles" / "hasty").mkdir(parents=True)
        (mine / "config.yaml").write_text(CONFIG)
        (mine / "roles" / "hasty" / "role.yaml").write_text(HASTY)
        (mine / "roles" / "hasty" / "SOUL.md").write_text("You are hasty.\n")
        (box.home / "precious").mkdir()
        box.hire("clerk")
        yield box


def asks(box: Sandbox, worker: str, after: int = 0, kind: str = "") -> dict[str, Any]:
    """Wait until a worker shows a dialog with a higher number, with its time left, and return it."""

    def open_one() -> dict[str, Any]:
        found: dict[str, Any] = box.worker(worker).get("waiting") or {}
        there = found and number(found) > after and found["deadline"] and (not kind or found["kind"] == kind)
        return found if there else {}

    return until(open_one, 90, every=0.05, what=f"{worker} asks")


def number(dialog: dict[str, Any]) -> int:
    return int(dialog["id"].rsplit("#", 1)[1])


def refused(box: Sandbox, *args: str) -> str:
    """Run a command that has to be refused as wrong usage, and return what it says."""
    done = box.run(*args)
    assert (done.returncode, done.stdout) == (2, ""), f"{args}: {done.returncode} {done.stdout}{done.stderr}"
    return done.stderr


def told(box: Sandbox) -> list[dict[str, Any]]:
    """Return what the configured command was told so far."""
    file = box.home / "told.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_each_dialog_of_a_turn_is_answered_by_its_own_id(office: Sandbox) -> None:
    """An approval, the same one again, a question by choice and by text, and an open question."""
    wires = tool("clarify", question="Which wire?", choices=["the red one", "the blue one"])
    turn = script(
        shell(DANGER),
        shell(DANGER),
        wires,
        wires,
        tool("clarify", question="What name?"),
        said("done"),
        say="five",
    )
    done = office.run("ask", "clerk", turn)
    assert done.returncode == 5
    assert re.search(
        r"clerk waits for a person \(approval, clerk#\d+, 2[34] h left\): rm -rf precious", done.stderr
    )
    first = asks(office, "clerk", kind="approval")
    ident, start = first["id"], number(first)
    assert f"hermux approve {ident}, or hermux deny {ident}" in done.stderr
    assert first["choices"][0] == "Allow once"
    (shown,) = office.json("inbox")["dialogs"]
    assert (shown["id"], shown["kind"]) == (ident, "approval")
    assert 80_000 < shown["seconds_left"] <= 86_400
    assert f"approval #{start} (" in office.out("ls")
    assert f"hermux approve {ident}" in office.out("why", "clerk")
    assert "is no question but an approval" in refused(office, "answer", ident, "yes")
    assert f"clerk#{start + 9} is not open" in refused(office, "approve", f"clerk#{start + 9}")
    assert office.out("approve", "clerk") == f"{ident}  approved: once"

    second = asks(office, "clerk", start, "approval")
    assert second["text"] == first["text"]
    stale = refused(office, "approve", ident)
    assert f"{ident} is not open" in stale
    assert f"open now: {second['id']}" in stale
    assert office.out("deny", second["id"]) == f"{second['id']}  denied"

    third = asks(office, "clerk", start + 1, "question")
    assert third["choices"] == ["the red one", "the blue one"]
    assert "is a question" in refused(office, "approve", third["id"])
    assert "has no choice 3" in refused(office, "answer", third["id"], "--choice", "3")
    assert office.out("answer", third["id"], "--choice", "2") == f"{third['id']}  answered: the blue one"

    fourth = asks(office, "clerk", start + 2, "question")
    assert office.out("answer", "clerk", "neither, cut the fuse") == (
        f"{fourth['id']}  answered: neither, cut the fuse"
    )
    fifth = asks(office, "clerk", start + 3, "open_question")
    answered = office.json("answer", fifth["id"], "/Bobby Tables/")
    assert (answered["place"], answered["kind"]) == ("done", "open_question")
    office.out("wait", "clerk", "--timeout", "60")

    heard = [
        m["content"]
        for m in office.rehearsal("requests?newest=1")["requests"][0]["messages"]
        if m["role"] == "tool"
    ]
    assert "approved by the user" in heard[-5]
    assert "User denied" in heard[-4]
    assert [json.loads(each)["user_response"] for each in heard[-3:]] == [
        "the blue one", "neither, cut the fuse", "/Bobby Tables/",
    ]  # fmt: skip
    assert "asks nobody anything" in refused(office, "approve", "clerk")
    calls = until(
        lambda: [c for c in told(office) if c["worker"] == "clerk"][4:5] and told(office), 20, every=0.1
    )
    assert [call["id"] for call in calls[:5]] == [f"clerk#{start + n}" for n in range(5)]
    assert calls[0]["fleet"] == office.fleet
    assert calls[0]["text"].startswith(DANGER)
    assert calls[2]["choices"] == ["the red one", "the blue one"]
    assert calls[0]["seconds_left"] > 80_000
    assert "sh: heard" in (office.dir / "supervisor.log").read_text()


def test_a_denial_has_a_reason(office: Sandbox) -> None:
    office.out("send", "clerk", script(shell(DANGER), said("as you like"), say="reasons"))
    dialog = asks(office, "clerk")
    done = office.run("deny", dialog["id"], "it", "is", "still needed")
    assert done.returncode == 0, done.stderr
    assert "Hermes takes no reason in its dialog" in done.stderr
    office.out("wait", "clerk", "--timeout", "60")
    assert conversation(office, "reasons")[-1] == "it is still needed"


def test_who_answers_in_the_pane_makes_the_id_stale(office: Sandbox) -> None:
    office.out("send", "clerk", script(shell(DANGER), shell(DANGER), said("fine"), say="pane"))
    first = asks(office, "clerk")
    office.tmux("send-keys", "-t", "=clerk:", "4")
    second = asks(office, "clerk", number(first))
    assert f"{first['id']} is not open" in refused(office, "approve", first["id"])
    assert office.worker("clerk")["waiting"]["id"] == second["id"]
    queued = office.json("approve", second["id"], "session", "--no-wait")
    assert queued["place"] == "new"
    until(lambda: office.place("clerk", queued["message"]) == "done", 30, every=0.1)
    office.out("wait", "clerk", "--timeout", "60")


def test_a_background_dialog_is_answered(office: Sandbox) -> None:
    """Hermes names no session for it, and the prompt is free meanwhile."""
    office.out(
        "send", "--slash", "clerk", "/background " + script(shell("rm -rf elsewhere"), said("gone"), say="bg")
    )
    dialog = asks(office, "clerk", kind="approval")
    assert dialog["text"].startswith("rm -rf elsewhere")
    assert office.out("approve", dialog["id"]) == f"{dialog['id']}  approved: once"
    office.shows("clerk", "ready")


def test_the_next_that_waits_is_a_key_away_and_the_bell_rings(office: Sandbox) -> None:
    office.hire("boss")
    terminal = office.terminal("attach", "boss", columns=200)
    terminal.expect("detach: Ctrl-] then d")
    terminal.send("\x1dw")
    terminal.expect_exact("no worker waits for a person")
    office.out("send", "clerk", script(tool("clarify", question="Tea?"), said("thanks")))
    terminal.expect_exact("\a", timeout=60)
    shown = office.tmux("display-message", "-p", "-t", "=boss:", "#{T:status-right}")
    assert "waits for you: clerk | next who waits: Ctrl-] then w" in shown
    terminal.send("\x1dw")
    until(
        lambda: (
            office.tmux("list-clients", "-F", "#{client_control_mode} #{session_name}").count("0 clerk") == 1
        ),
        20,
        every=0.1,
        what="the terminal shows clerk",
    )
    terminal.send("\x1dd")
    terminal.close(force=True)
    office.out("answer", "clerk", "green")
    office.out("wait", "clerk", "--timeout", "60")


def test_what_nobody_answers_is_counted(office: Sandbox) -> None:
    office.out("spawn", "--role", "hasty", "--name", "hasty", timeout=170)
    turn = script(shell(DANGER), tool("clarify", question="What name?"), said("I decided"), say="hasty")
    office.out("send", "hasty", turn)
    until(lambda: office.worker("hasty").get("timed_out") == 2, 90, every=0.2, what="both timed out")
    office.out("wait", "hasty", "--timeout", "60")
    assert "2 of its dialogs, which nobody answered" in office.out("why", "hasty")
    assert "TIMED OUT" in office.out("ls", "-v")
    assert "timed out, and Hermes took that for a refusal" in office.out("logs", "hasty")
    assert 0 < told(office)[-1]["seconds_left"] <= 8


def test_bad_settings_are_one_alert(office: Sandbox) -> None:
    file = office.home / "config" / "hermux" / "config.yaml"
    file.write_text("notify:\n  bel: false\n")
    until(lambda: any("did you mean 'bell'" in a["text"] for a in office.state()["alerts"]), 20, every=0.1)
    assert f"{file}:2: notify.bel" in office.run("ls").stderr
    file.write_text(CONFIG)
    until(lambda: not office.state()["alerts"], 20, every=0.1)
