"""Lost and damaged files, and people's own panes: nothing of a worker or of a person is lost to them."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, ended
from tests.until import until


def kill_supervisor(box: Sandbox) -> None:
    os.kill(box.supervisor(), signal.SIGKILL)
    until(lambda: not box.supervisor(), 10)


@pytest.mark.parametrize("content", ["", "no JSON", None])
def test_a_lost_state_file_costs_nothing(shared_fleet: Sandbox, worker: str, content: str | None) -> None:
    box = shared_fleet
    box.out("ask", worker, "remember the state's pear")
    before, hermes = box.worker(worker), box.hermes(worker).pid
    kill_supervisor(box)
    state = box.dir / "state.json"
    state.unlink() if content is None else state.write_text(content)
    assert box.out("ask", worker, script(said("pear"))) == "pear"
    after = box.worker(worker)
    assert (box.hermes(worker).pid, after["attempt"]) == (hermes, before["attempt"])
    assert after["session"] == before["session"]
    assert conversation(box, "state's pear")[0] == "remember the state's pear"


def test_a_turn_ended_by_term_is_gone_on_with(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    sent = box.out("send", "-q", worker, script(shell("touch t; exec sleep 300"), said("x"), say="term me"))
    until((box.home / "t").exists, 60, what="the tool runs")
    box.hermes(worker).send_signal(signal.SIGTERM)
    until(lambda: any("hermux" in text for text in conversation(box, "term me")[1:]), 90, every=0.2)
    assert box.place(worker, sent) == "done"
    assert box.worker(worker)["attempt"] == 2


def test_a_persons_own_window_is_neither_taken_nor_closed(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    theirs = box.tmux("new-window", "-dP", "-F", "#{pane_id}", "-t", f"={worker}:", "exec sleep 4321").strip()
    box.tmux("kill-pane", "-t", box.worker(worker)["pane"])
    until(lambda: box.worker(worker)["attempt"] == 2, 60)
    box.shows(worker, "ready")
    box.out("stop", worker)
    alive = box.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_dead}").splitlines()
    assert f"{theirs} 0" in alive
    box.tmux("kill-pane", "-t", theirs)


def test_rubbish_in_an_inbox_stops_nobody(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    new = box.dir / "workers" / worker / "inbox" / "new"
    os.mkfifo(new / "m-fifo.json")
    (new / "m-deep.json").write_text('{"id": "m-deep", "keys": ' + "[" * 100_000 + "]" * 100_000 + "}")
    (new / "m-torn.json").write_text('{"id": ')
    (new / "m-folder.json").mkdir()
    assert box.out("ask", worker, script(said("still here"))) == "still here"
    assert box.place(worker, "m-torn") == "failed"


def test_a_damaged_wish_list_stops_nobody(shared_fleet: Sandbox, worker: str) -> None:
    box = shared_fleet
    desired = box.dir / "desired.json"
    whole = desired.read_text()
    for rubbish in ('{"workers": []}', "{", '{"workers": {"x": {"generation": 1e999}}}'):
        desired.write_text(rubbish)
        done = box.run("spawn", "--name", "never")
        assert done.returncode != 0 and "desired.json" in done.stderr and "Traceback" not in done.stderr
        assert desired.read_text() == rubbish, "nothing was written over it"
    desired.write_text(whole)
    asking = box.begin("ask", worker, script(said("up")))
    assert ended(asking).stdout.strip() == "up"
