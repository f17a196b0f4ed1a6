"""What an idle worker costs, counted: calls to tmux, and what is found without anyone telling of it.

The panes run a stand-in for Hermes that paints its prompt line and reports once, as its plugin does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

STAND_IN = r"""#!/bin/sh
[ "$1" != --version ] || { echo 'Hermes Agent v0.19.0'; exit; }
rule=$(printf '%120s' '' | sed 's/ /─/g')
printf ' ⚕ stand-in │ 0 │ 0s\n%s\n%s ❯ \n%s' "$rule" "$2" "$rule"
printf '{"t":%s,"pid":%s,"attempt":%s,"event":"plugin_loaded"}\n' \
    "$(date +%s.%N)" $$ "$HERMUX_ATTEMPT" >>"$HERMUX_DIR/events.jsonl"
exec sleep 100000
"""
TMUX = """#!/bin/sh
case " $* " in
*" -C "*) tee -a @LOG@ | exec @TMUX@ "$@" ;;
*) echo "$*" >>@LOG@ && exec @TMUX@ "$@" ;;
esac
"""
SECONDS = 4
"""Reads of all panes, one each second, between which calls are counted."""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A fleet of stand-ins, whose supervisor finds a tmux that writes down what it is asked."""
    folder = tmp_path_factory.mktemp("crowd")
    real = shutil.which("tmux")
    assert real
    hermes, tmux = folder / "hermes", folder / "bin" / "tmux"
    tmux.parent.mkdir()
    hermes.write_text(STAND_IN)
    with sandbox(hermes) as box:
        tmux.write_text(TMUX.replace("@TMUX@", real).replace("@LOG@", str(box.home / "calls")))
        for program in (hermes, tmux):
            program.chmod(0o755)
        settings = box.home / "config" / "hermux" / "config.yaml"
        settings.parent.mkdir()
        settings.write_text("memory: {headroom_mb: 64, worker_mb: 4}\n")
        box.env["PATH"] = f"{tmux.parent}:{box.env['PATH']}"
        yield box


def counted(box: Sandbox) -> list[str]:
    """Return the calls between two reads of all panes that are `SECONDS` reads apart, once the fleet is quiet."""
    calls = box.home / "calls"

    def quiet() -> list[str]:
        asked = [line.split()[0] for line in calls.read_text().splitlines()]
        reads = [place for place, word in enumerate(asked) if word == "list-panes"]
        first, last = reads[-1 - SECONDS :][0], reads[-1]
        between = asked[first:last]
        return between if len(between) == SECONDS and len(reads) > SECONDS else []

    box.tmux("display-message", "-p", "counted from here")
    return until(quiet, 40, every=0.2, what="a read of the panes each second and nothing else")


def test_calls_to_tmux_do_not_grow_with_the_number_of_idle_workers(crowd: Sandbox) -> None:
    crowd.out("spawn", "5")
    few = counted(crowd)
    crowd.out("spawn", "35")
    many = counted(crowd)
    assert len(crowd.state()["workers"]) == 40
    assert few == many == ["list-panes"] * SECONDS


def test_the_picture_of_a_quiet_fleet_is_dated_not_written(crowd: Sandbox) -> None:
    state = crowd.dir / "state.json"
    until(lambda: dated_again(state, state.stat().st_ino), 40, what="a new date without a new file")
    state.write_text("somebody's own")
    until(lambda: state.read_text().startswith('{"schema"'), 20, what="it is drawn again")


def test_a_message_of_which_nobody_told_is_found(crowd: Sandbox) -> None:
    """A sender that is killed between its file and the FIFO, or a FIFO that is full."""
    name = next(iter(crowd.state()["workers"]))
    message = {"schema": 1, "id": "m-000-untold", "worker": name, "kind": "keys", "text": "", "keys": ["x"]}
    (crowd.dir / "workers" / name / "inbox" / "new" / "m-000-untold.json").write_text(
        json.dumps(message | {"created": 1.0, "sender": "test"})
    )
    until(lambda: crowd.place(name, "m-000-untold") == "done", 20, what="its keys were pressed")


def test_an_event_of_which_nobody_told_is_found(crowd: Sandbox) -> None:
    name = list(crowd.state()["workers"])[1]
    feed = crowd.dir / "workers" / name / "events.jsonl"
    common = {"t": crowd.worker(name)["since"] + 1, "pid": 1, "attempt": 1, "session": "s", "turn": "t"}
    with feed.open("a") as file:
        file.write(json.dumps({**common, "platform": "cli", "event": "pre_llm_call"}) + "\n")
        file.write(
            json.dumps({**common, "platform": "cli", "event": "pre_tool_call", "tool": "untold"}) + "\n"
        )
    until(lambda: crowd.worker(name)["doing"] == "untold", 20, what="the event is in the picture")


def dated_again(state: Path, inode: int) -> bool:
    """Whether the same file got a new date."""
    dated = state.stat().st_mtime_ns
    until(lambda: state.stat().st_mtime_ns != dated or state.stat().st_ino != inode, 20)
    return state.stat().st_ino == inode
