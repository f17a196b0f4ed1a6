"""The tmux server killed, and its socket removed: one event, and every worker back in its own conversation."""

from __future__ import annotations

import json
import os
import signal

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox
from tests.until import until

NAMES = ("coder-1", "research-1", "qa-1")


def server(box: Sandbox) -> int:
    """Return the pid of the fleet's tmux server."""
    return int(json.loads((box.dir / "tmux.json").read_text())["pid"])


def test_the_whole_fleet_comes_back_one_by_one(fleet: Sandbox) -> None:
    box = fleet
    box.out("spawn", "3", timeout=170)
    for name in NAMES:
        box.out("ask", name, f"I am {name}")
    sessions = {name: box.worker(name)["session"] for name in NAMES}
    (box.home / "tool.sh").write_text("setsid sleep 300 &\ntouch begun\nsleep 300\n")
    working = script(shell("sh tool.sh"), said("never"), say="long work")
    box.out("send", "-q", "qa-1", working)
    until((box.home / "begun").exists, 60, what="the tool runs")
    before = server(box)
    tools = [p for p in box.processes("qa-1") if "300" in p.cmdline()]

    pids = {name: box.hermes(name).pid for name in NAMES}
    socket = next((box.home / "tmux").glob("tmux-*/*"))
    socket.unlink()
    until(socket.exists, 20, what="the server made its socket again")
    assert server(box) == before and {name: box.hermes(name).pid for name in NAMES} == pids

    os.kill(before, signal.SIGKILL)
    until(lambda: all(box.worker(n)["attempt"] == 2 and box.worker(n)["phase"] == "up" for n in NAMES), 90)
    box.out("wait", *NAMES, "--timeout", "60")
    assert {name: box.worker(name)["session"] for name in NAMES} == sessions
    assert [box.worker(name)["restarts"] for name in NAMES] == [0, 0, 0]
    assert not any(tool.is_running() for tool in tools), "what outlived its worker was ended"
    journal = [json.loads(line) for line in (box.dir / "journal.jsonl").read_text().splitlines()]
    assert sum("tmux server" in line["text"] and "died" in line["text"] for line in journal) == 1
    way = [(x["worker"], x["text"].split()[0]) for x in journal if x.get("attempt") == 2 and x["worker"]]
    steps = [(name, word) for name, word in way if word in ("starting", "up")]
    assert steps == [(name, word) for name in NAMES for word in ("starting", "up")], "one after the other"
    nudged = {name: sum("[hermux]" in text for text in conversation(box, f"I am {name}")) for name in NAMES}
    assert nudged["qa-1"] == 1
    for name in NAMES[:2]:
        assert box.out("ask", name, script(said("here"))) == "here"
        texts = conversation(box, f"I am {name}")
        assert len(texts) == 2 and "[hermux]" not in "".join(texts), "an idle worker is not told to go on"
