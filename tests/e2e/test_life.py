"""stop, start, restart, rm and scale."""

from __future__ import annotations

import json

import pytest

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox
from tests.until import until

STUBBORN = """\
setsid sh -c 'trap "" TERM HUP INT; echo $$ > stubborn; while :; do sleep 1; done' >/dev/null 2>&1 &
touch begun
sleep 300
"""
"""A tool that leaves a process behind: in a session of its own, and TERM does not end it."""


def sessions(box: Sandbox) -> list[str]:
    return box.tmux("list-sessions", "-F", "#S").split()


def test_stop_asks_and_start_goes_on(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "keep the north in mind")
    before = box.worker(worker)
    box.out("stop", worker)
    stopped = box.worker(worker)
    assert (stopped["phase"], stopped["word"], stopped["pid"]) == ("stopped", "stopped", 0)
    assert not box.processes(worker)
    assert worker not in sessions(box)
    ending = json.loads((box.dir / "workers" / worker / "attempts" / "1" / "exit.json").read_text())
    assert (ending["code"], ending["signal"]) == (0, None), "it left by /exit"
    asked = box.run("ask", worker, "anybody?")
    assert asked.returncode == 3
    assert f"{worker} is stopped; nothing was sent" in asked.stderr
    waited = box.run("wait", worker)
    assert waited.returncode == 3
    box.out("stop", worker)
    box.out("start", worker)
    assert box.out("ask", worker, script(said("north"))) == "north"
    after = box.worker(worker)
    assert (after["session"], after["restarts"], after["attempt"]) == (before["session"], 0, 2)
    assert conversation(box, "north in mind")[0] == "keep the north in mind"
    box.out("start", worker)
    assert box.worker(worker)["attempt"] == 2, "one that runs is left alone"


def test_restart_keeps_the_conversation(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "keep the south in mind")
    before = box.worker(worker)
    box.out("restart", worker)
    after = box.worker(worker)
    assert (after["attempt"], after["session"]) == (2, before["session"])
    assert after["pid"] != before["pid"]
    assert box.out("ask", worker, script(said("south"))) == "south"
    assert conversation(box, "south in mind")[0] == "keep the south in mind"


@pytest.mark.parametrize("how", [["--now"], ["--grace", "1"]])
def test_stop_sweeps_what_ignores_term(shared_fleet: Sandbox, worker: str, how: list[str]) -> None:
    """A tool in a session of its own, in the middle of a turn."""
    box, mark = shared_fleet, shared_fleet.home / worker
    mark.mkdir()
    (mark / "tool.sh").write_text(STUBBORN)
    box.out("send", worker, script(shell(f"cd {mark} && sh tool.sh")))
    until((mark / "begun").exists, 60, what="the tool runs")
    pid = int(until(lambda: (mark / "stubborn").exists() and (mark / "stubborn").read_text(), 20) or 0)
    assert pid in [process.pid for process in box.processes(worker)]
    box.out("stop", worker, *how)
    assert not box.processes(worker)
    assert worker not in sessions(box)


def test_rm_archives_what_was_learned(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    running = box.run("rm", worker)
    assert running.returncode == 2
    assert f"only stopped workers can be removed: {worker} is ready" in running.stderr
    assert f"hermux stop {worker}" in running.stderr
    box.out("ask", worker, "learn this")
    profile = box.home / ".hermes" / "profiles" / box.worker(worker)["hermes_profile"]
    assert (profile / "state.db").is_file()
    box.out("stop", worker)
    done = box.run("rm", worker)
    assert (done.returncode, done.stdout) == (0, f"{worker}\n")
    archive = next((box.dir / "archive").glob(f"{worker}-*"))
    assert str(archive) in done.stderr
    assert str(box.home) in done.stderr
    assert not profile.exists()
    assert not (box.dir / "workers" / worker).exists()
    assert list(archive.glob("*/state.db"))
    assert list(archive.glob("worker/turns/*.json"))
    assert not list(archive.glob("**/env"))
    assert worker not in [each["name"] for each in box.json("ls")["workers"]]


def test_purge_and_replace(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    box.out("ask", worker, "soon forgotten")
    old = box.worker(worker)["session"]
    taken = box.run("spawn", "--name", worker)
    assert taken.returncode == 2
    assert f"a worker '{worker}' exists already" in taken.stderr
    assert "--replace" in taken.stderr
    assert f"hermux start {worker}" in taken.stderr
    box.hire(worker, "--replace", "--role", "qa")
    assert box.worker(worker)["role"] == "qa"
    assert list((box.dir / "archive").glob(f"{worker}-*/*/state.db"))
    box.out("ask", worker, "a new start")
    assert box.worker(worker)["session"] != old
    assert conversation(box, "a new start") == ["a new start"]
    box.out("stop", worker, "--now")
    kept = len(list((box.dir / "archive").iterdir()))
    done = box.run("rm", worker, "--purge")
    assert done.returncode == 0
    assert "nothing was kept" in done.stderr
    assert len(list((box.dir / "archive").iterdir())) == kept


def test_scale_twice_does_no_harm(fleet: Sandbox) -> None:
    fleet.out("scale", "2", timeout=170)
    pids = {each["name"]: each["pid"] for each in fleet.json("ls")["workers"]}
    assert list(pids) == ["coder-1", "research-1"]
    fleet.out("scale", "2", timeout=170)
    assert {each["name"]: each["pid"] for each in fleet.json("ls")["workers"]} == pids
    fleet.out("scale", "1")
    fleet.out("scale", "1")
    until(lambda: [fleet.worker(name)["phase"] for name in pids] == ["up", "stopped"], 40, every=0.1)
    fleet.out("scale", "research=1", "coder=1", timeout=170)
    assert [fleet.worker(name)["phase"] for name in pids] == ["up", "up"]
    assert fleet.worker("coder-1")["pid"] == pids["coder-1"]
    for words in (["0x"], ["coder"], ["coder=-1"], ["65"], ["witch=1"]):
        assert fleet.run("scale", *words).returncode == 2, words
    fleet.out("scale", "0")
    until(lambda: [fleet.worker(name)["phase"] for name in pids] == ["stopped", "stopped"], 40, every=0.1)
