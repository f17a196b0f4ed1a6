"""`spawn 3`, and everything that looks at three workers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

NAMES = ("coder-1", "research-1", "qa-1")


@dataclass(frozen=True, slots=True)
class Three:
    """Three workers in a git repository, and what `spawn` printed."""

    box: Sandbox
    repo: Path
    printed: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def three(hermes: Path) -> Iterator[Three]:
    with sandbox(hermes) as box:
        repo = box.home / "some repo"
        subprocess.run(["git", "init", "-q", "-b", "trunk", repo], env=box.env, check=True)
        yield Three(box, repo, box.run("spawn", "3", "--cwd", repo.name, timeout=170))


def test_spawn_prints_a_table(three: Three) -> None:
    assert three.printed.returncode == 0, three.printed.stderr
    lines = three.printed.stdout.splitlines()
    port = json.loads((three.box.dir / "rehearsal.json").read_text())["port"]
    assert lines[0].split() == ["NAME", "ROLE", "STATE", "CWD", "BRANCH", "ENDPOINT"]
    for name, line in zip(NAMES, lines[1:4], strict=True):
        assert line.split()[:3] == [name, name[:-2], "ready"]
        assert f"{three.repo}  trunk" in line
        assert f"hermux-rehearsal at http://127.0.0.1:{port}/v1" in line
    assert lines[4] == "rehearsal model: scripted answers, no language model"
    assert "\x1b" not in three.printed.stdout
    assert all(f"{name} is ready" in three.printed.stderr for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_answers(three: Three, name: str) -> None:
    done = three.box.run("ask", name, f"Are you {name}, on port 1?")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[rehearsal] ")
    assert done.stdout.endswith(f"You said: Are you {name}, on port 1?\n")
    assert conversation(three.box, f"Are you {name}") == [f"Are you {name}, on port 1?"]


def test_each_has_its_own_persona(three: Three) -> None:
    souls = {(profile / "SOUL.md").read_text() for profile in three.box.home.glob(".hermes/profiles/hx-*")}
    assert len(souls) == 3


@pytest.mark.parametrize("verb", ["ls", "ps", "status"])
def test_ls(three: Three, verb: str) -> None:
    listed = three.box.json(verb)
    assert listed["schema"] == 1
    assert [worker["name"] for worker in listed["workers"]] == list(NAMES)
    assert {worker["branch"] for worker in listed["workers"]} == {"trunk"}
    assert {worker["phase"] for worker in listed["workers"]} == {"up"}
    assert not listed["alerts"]
    shown = three.box.out(verb)
    assert "rehearsal model: scripted answers, no language model" in shown
    for worker in listed["workers"]:
        line = next(line for line in shown.splitlines() if line.startswith(worker["name"]))
        assert worker["word"] in line
        assert worker["hermes_profile"] in line


def test_flags_may_stand_before_the_verb(three: Three) -> None:
    done = three.box.run("-F", three.box.fleet, "--json", "ls", env={"HERMUX_FLEET": "another"})
    assert len(json.loads(done.stdout)["workers"]) == 3


def test_a_worker_is_a_session_of_plain_tmux(three: Three) -> None:
    sessions = three.box.tmux("list-sessions", "-F", "#S").split()
    assert {"coder-1", "research-1", "qa-1", "rehearsal"} <= set(sessions)
    assert "❯" in three.box.tmux("capture-pane", "-p", "-t", "=coder-1:")


def test_peek(three: Three) -> None:
    assert "❯" in three.box.out("peek", "coder-1", "-n", "10")
    assert len(three.box.json("peek", "coder-1", "-n", "3")["lines"]) == 3
    assert "\x1b[" in three.box.out("peek", "coder-1", "--ansi")
    assert "\x1b" not in three.box.out("peek", "coder-1", "--history")


def test_why(three: Three) -> None:
    shown = three.box.out("why", "qa-1")
    assert shown.startswith("qa-1 is ready")
    assert "starting attempt 1" in shown
    assert "rehearsal model: scripted answers" in shown
    found = three.box.json("why", "qa-1")
    assert found["decided"]
    assert all(each["reason"] for each in found["decided"])
    assert any("hermux ask qa-1" in line for line in found["next"])


def test_logs_and_events(three: Three) -> None:
    three.box.out("ask", "research-1", "note this down")
    logged = [json.loads(line) for line in three.box.out("logs", "research-1", "--json").splitlines()]
    assert {line["worker"] for line in logged} == {"research-1"}
    assert all(line["reason"] for line in logged if line["what"] in ("action", "transition"))
    assert len(three.box.out("logs", "research-1", "--tail", "2").splitlines()) == 2
    lines = [json.loads(line) for line in three.box.out("events", "research-1", "--json").splitlines()]
    assert lines[0]["event"] == "plugin_loaded"
    assert {line["attempt"] for line in lines} == {1}
    assert all(line["pid"] for line in lines)
    starts = [line for line in lines if line["event"] == "pre_llm_call"]
    assert starts[-1]["preview"] == "note this down"
    assert "pre_llm_call" in three.box.out("events", "research-1", "--since", "10m")
    assert three.box.out("events", "research-1", "--since", "0.001s") == ""


def test_wait(three: Three) -> None:
    three.box.out("send", "coder-1", script({"delay": 1, "text": "late"}, say="wait-a"))
    three.box.out("send", "qa-1", script({"delay": 1, "text": "late"}, say="wait-b"))
    three.box.out("wait", "coder-1", "qa-1", "--timeout", "60")
    assert [three.box.worker(name)["queued"] for name in ("coder-1", "qa-1")] == [0, 0]
    assert conversation(three.box, "wait-a")
    assert conversation(three.box, "wait-b")


def test_wait_for_a_message_and_for_a_state(three: Three) -> None:
    sent = three.box.json("send", "coder-1", script({"delay": 30}, say="slow"))["messages"][0]["id"]
    three.box.out("wait", "--message", sent, "--timeout", "60")
    assert three.box.place("coder-1", sent) == "done"
    three.box.out("wait", "coder-1", "--state", "busy", "--timeout", "60")
    done = three.box.run("wait", "coder-1", "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (124, "")
    assert "coder-1" in done.stderr
    three.box.out("interrupt", "coder-1")
    three.box.out("wait", "coder-1", "--state", "ready", "--timeout", "60")


def test_send_to_several(three: Three) -> None:
    sent = three.box.json("send", "*", "to everyone", "--wait")["messages"]
    assert sorted(message["worker"] for message in sent) == sorted(NAMES)
    assert {message["place"] for message in sent} == {"done"}
    assert {message["receipt"]["sha256"] for message in sent} == {sent[0]["sha256"]}
    three.box.out("wait", "*")


def test_keys(three: Three) -> None:
    three.box.out("keys", "qa-1", "h", "e", "y")
    assert three.box.shows("qa-1", "draft")
    assert "hey" in three.box.out("peek", "qa-1", "-n", "4")
    three.box.out("keys", "qa-1", "BSpace", "BSpace", "BSpace")
    assert three.box.shows("qa-1", "ready")


def test_options(three: Three) -> None:
    box = three.box
    (box.home / "vars").write_text("SHAPE='round thing'\nCOLOUR=red\n")
    first = script(shell('echo "$COLOUR, $SHAPE" > seen; pwd >> seen'), said("written"), say="options")
    (box.home / "first").write_text(first)
    args = ["--env", "COLOUR=blue", "--env-file", "vars", "--prompt-file", "first", "--toolsets", "terminal"]
    made = box.json("spawn", "--name", "opts", "--role", "creative", "--size", "100x30", *args)
    assert made["workers"][0]["role"] == "creative"
    until((box.home / "seen").exists, 60, what="the first prompt's tool ran")
    box.out("wait", "opts", "--timeout", "60")
    assert (box.home / "seen").read_text() == f"blue, round thing\n{box.home}\n"
    assert box.tmux("display-message", "-p", "-t", "=opts:", "#{window_width}x#{window_height}") == "100x30\n"
    asked = [r for r in box.rehearsal("requests")["requests"] if "options" in json.dumps(r["messages"])]
    assert "terminal" in asked[0]["tools"]
    assert "write_file" not in asked[0]["tools"]
    assert (box.dir / "workers" / "opts" / "env").stat().st_mode & 0o777 == 0o600
    box.out("stop", "opts")
    box.out("rm", "opts", "--purge")
