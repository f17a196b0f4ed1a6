"""The conversation of a real Hermes: while it runs, after a kill -9, a stop and an rm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.schemas import undocumented
from tests.e2e.play import said, script, shell, tool
from tests.e2e.sandbox import Sandbox, ended, sandbox
from tests.until import until

pytestmark = pytest.mark.timeout(500)
"""Seconds: the fixture lives through nine turns, one after the other."""
ESCAPES = "red \x1b[31mcolour\x1b[0m \x1b]0;title\x07 and \u202eback"
FENCE = "````\n# not a heading\n```"
KILLED = "kill me in the middle"
LONG = "\n".join(f"line {number}" for number in range(60))


def cut_off(box: Sandbox) -> dict[str, Any]:
    """Return the turn that the kill ended, {} while it still counts as running."""
    return next((turn for turn in turns(box) if KILLED in turn["user"] and turn["state"] == "cut"), {})


@dataclass(frozen=True, slots=True)
class Told:
    """A worker that has lived through every kind of turn, twice started, and what was seen on the way."""

    box: Sandbox
    running: dict[str, Any]
    """The turn that was killed, as it stood before."""
    cut: dict[str, Any]
    """The same one after the kill."""


def turns(box: Sandbox, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = box.json("transcript", "w", *args)["turns"]
    return found


def press(box: Sandbox, *keys: str) -> None:
    until(lambda: (box.worker("w")["waiting"] or {}).get("text"), 60, every=0.1, what="a dialog stands")
    box.out("keys", "w", *keys)
    box.out("wait", "w", "--timeout", "90")


@pytest.fixture(scope="module")
def told(hermes: Path) -> Iterator[Told]:
    with sandbox(hermes) as box:
        box.hire("w")
        (box.home / "precious").mkdir()
        steps = [shell("echo sixteen tons; exit 3"), tool("write_file", path="a.txt", content="x")]
        box.out("ask", "w", script(*steps, said(f"{ESCAPES}\n{FENCE}"), say="work"))
        box.run(
            "ask", "w", script(tool("clarify", question="Which wire?", choices=["red", "blue"]), said("cut"))
        )
        press(box, "2")
        box.run("ask", "w", script(shell("rm -rf precious"), said("as you like"), say="dangerous"))
        press(box, "4")
        assert box.run("ask", "w", script(*[{"status": 404}] * 2, say="fail")).returncode == 3
        goals = [{"goal": script(said(f"fruit {n}"), say=f"child {n}"), "context": "none"} for n in (1, 2)]
        share = [tool("delegate_task", tasks=goals), said("they are at it"), said("both are done")]
        box.out("ask", "w", script(*share, say="share"), timeout=180)
        asking = box.begin("ask", "w", script({"delay": 100}, say="never mind"))
        box.shows("w", "busy")
        box.out("interrupt", "w")
        ended(asking)
        box.shows("w", "ready")
        text = f"{LONG}\n" + script(shell("echo before the end"), {"delay": 60}, said("resumed"), say=KILLED)
        box.out("send", "w", text)

        def running() -> dict[str, Any]:
            last = turns(box, "--last", "1")
            return last[0] if last and KILLED in last[0]["user"] and last[0]["calls"] == 2 else {}

        before = until(running, 90, every=0.5, what="the turn is in its second call")
        box.hermes("w").kill()
        until(lambda: box.worker("w").get("attempt") == 2, 60, every=0.1, what="the second attempt")
        cut = until(lambda: cut_off(box), 30, what="the transcript shows that the turn was cut off")
        box.shows("w", "ready", 90)
        box.out("wait", "w", "--timeout", "120")
        yield Told(box, before, cut)


def test_every_turn_is_there_in_order_with_its_end(told: Told) -> None:
    document = told.box.json("transcript", "w")
    assert undocumented("transcript", document) == []
    found = document["turns"]
    states = [turn["state"] for turn in found]
    assert states == ["ok", "ok", "ok", "failed", "ok", "ok", "interrupted", "cut", "ok"]
    assert [turn["number"] for turn in found] == list(range(1, 10))
    assert [turn["attempt"] for turn in found] == [1] * 8 + [2]
    assert found == sorted(found, key=lambda turn: turn["began"])
    senders = [turn["sender"] for turn in found]
    assert senders == ["cli"] * 5 + ["hermes", "cli", "cli", "nudge"]
    assert all(told.box.place("w", turn["message"]) == "done" for turn in found if turn["message"])
    assert all(turn["ended"] >= turn["began"] for turn in found if turn["state"] == "ok")


def test_tools_with_what_came_back(told: Told) -> None:
    work = turns(told.box)[0]
    terminal, write = work["steps"]
    assert (terminal["text"], terminal["detail"]) == ("terminal", "echo sixteen tons; exit 3")
    assert terminal["result"] == "exit 3: sixteen tons"
    assert terminal["seconds"] > 0
    assert (write["text"], write["detail"], write["outcome"]) == ("write_file", "a.txt", "ok")
    assert work["answer"] == f"{ESCAPES}\n{FENCE}"
    assert work["tokens"]["out"] > 0


def test_how_people_answered(told: Told) -> None:
    question = turns(told.box)[1]["steps"][0]
    assert (question["kind"], question["text"], question["choices"]) == (
        "question",
        "Which wire?",
        ["red", "blue"],
    )
    assert question["result"] == "blue"
    approval = next(step for step in turns(told.box)[2]["steps"] if step["kind"] == "approval")
    assert (approval["text"], approval["outcome"]) == ("rm -rf precious", "deny")
    assert "delete" in approval["detail"]


def test_failure_interruption_and_children(told: Told) -> None:
    found = turns(told.box)
    assert "HTTP 404" in found[3]["error"]
    assert found[3]["answer"] == ""
    children = [step for step in found[4]["steps"] if step["kind"] == "child"]
    assert {(child["outcome"], child["result"]) for child in children} == {
        ("completed", "fruit 1"),
        ("completed", "fruit 2"),
    }
    assert found[5]["answer"] == "both are done"
    assert "never mind" in found[6]["user"]


def test_the_turn_that_was_killed(told: Told) -> None:
    """What was asked is whole in it, before and after the kill."""
    assert told.running["state"] == "running"
    assert told.running["ended"] is None
    for turn in (told.running, told.cut, turns(told.box)[7]):
        assert turn["user"].startswith(LONG)
        assert not turn["user_cut"]
        assert turn["steps"][0]["result"] == "before the end"
        assert turn["answer"] == ""
    assert told.cut["state"] == "cut"
    assert turns(told.box)[8]["user"].startswith("[hermux] Your process was interrupted")


def test_text_and_markdown(told: Told) -> None:
    text = told.box.out("transcript", "w")
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert "red ␛[31mcolour" in text
    assert "cut off: its process died" in text
    assert sum(line.startswith("── ") for line in text.split("\n")) == 9
    md = told.box.out("transcript", "w", "--md")
    assert "\x1b" not in md
    assert f"`````text\nred ␛[31mcolour␛[0m ␛]0;title␇ and \\u202eback\n{FENCE}\n`````" in md
    assert sum(line.startswith("## ") for line in md.split("\n")) == 9


def test_the_last_ones(told: Told) -> None:
    assert [turn["number"] for turn in turns(told.box, "--last", "2")] == [8, 9]
    assert len(turns(told.box, "--last", "99")) == 9
    for args in (("--last", "0"), ("--last", "x"), ("--md", "--json")):
        done = told.box.run("transcript", "w", *args)
        assert (done.returncode, done.stdout) == (2, ""), args


def test_no_file_of_the_transcript_is_anybody_elses(told: Told) -> None:
    folder = told.box.dir / "workers" / "w" / "turns"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert not list(folder.glob("*.tmp"))


def test_how_the_last_attempt_ended(told: Told) -> None:
    text = told.box.out("logs", "w", "--previous")
    first = text.split("\n")[0]
    assert first.startswith("attempt 1 of w ended on ")
    assert "killed by signal 9 (SIGKILL)" in first and "attempt 2 is the newest" in first
    assert KILLED in text
    found = told.box.json("logs", "w", "--previous", "--tail", "5")
    assert undocumented("logs --previous", found | {"events": [], "journal": []}) == []
    assert (found["attempt"], found["newest"], found["signal"], found["code"]) == (1, 2, 9, None)
    assert found["ended"] > found["began"]
    assert {line["attempt"] for line in found["events"]} == {1}
    assert len(found["events"]) == 5 and found["events"][-1]["event"] == "pre_api_request"
    assert found["journal"][-1]["text"] == "attempt 1 ended: signalled(9)"
    assert found["screen"]
    for args in (("-f",), ("--since", "1h")):
        assert told.box.run("logs", "w", "--previous", *args).returncode == 2


def test_events_are_told_in_words(told: Told) -> None:
    text = told.box.out("events", "w", "--since", "1h")
    assert "usage={" not in text and "choices=[" not in text
    assert "choices=red | blue" in text
    line = next(line for line in text.split("\n") if "post_api_request" in line)
    assert " in=" in line and " out=" in line
    began = turns(told.box)[8]["began"]
    later = told.box.out("events", "w", "--since", str(began)).split("\n")
    assert "pre_llm_call" in later[0] and "[hermux] Your process" in later[0]
    done = told.box.run("events", "w", "--since", "yesterday")
    assert done.returncode == 2 and "→" in done.stderr


def test_without_a_previous_attempt(told: Told) -> None:
    told.box.out("spawn", "--name", "young", "--no-wait")
    done = told.box.run("logs", "young", "--previous")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has had no attempt that ended" in done.stderr
    assert told.box.json("transcript", "young")["turns"] == []
    assert "has had no turn" in told.box.run("transcript", "young").stderr


def test_after_stop_and_after_rm(told: Told) -> None:
    """The last test of this module: it ends the worker."""
    before = turns(told.box)
    told.box.out("stop", "w", timeout=120)
    assert turns(told.box) == before
    assert told.box.out("logs", "w", "--previous").startswith("attempt 2 of w ended")
    archive = told.box.json("rm", "w")["removed"][0]["archive"]
    done = told.box.run("transcript", "w")
    assert done.returncode == 2
    assert archive in done.stderr and f"hermux transcript w --archive {archive}" in done.stderr
    found = json.loads(told.box.out("transcript", "w", "--archive", archive, "--json"))
    assert found["archive"] == f"{archive}/worker"
    assert [turn["answer"] for turn in found["turns"]] == [turn["answer"] for turn in before]
    assert told.box.run("transcript", "w", "--archive", "/nonexistent").returncode == 2
