"""The wall: all workers tiled, in any terminal, none of them disturbed, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.terminal.config import write_config
from orchestrator.terminal.server import Server
from tests.tmux.walls import PROMPT, Terminal, Town, processes_of_walls, wall
from tests.unit.stage import Stage
from tests.until import until

Open = Callable[..., Terminal]
OWN_SIZE = {"120x40"}


@pytest.fixture
def town(no_leaks: None, folder: Path, environment: dict[str, str]) -> Iterator[Town]:
    """A fleet "default" whose files and sockets lie in the test's folder."""
    with Stage(folder) as stage:
        write_config(stage.paths.tmux_conf, fleet="default", env=environment)
        server = Server("hermux", stage.paths.tmux_conf, env=environment)
        server.ensure()
        yield Town(stage, server)
        server.kill_server()


@pytest.fixture
def look(town: Town, environment: dict[str, str]) -> Iterator[Open]:
    """Opens walls; their terminals are closed at the end."""
    opened: list[Terminal] = []

    def open_wall(*args: str, columns: int = 200, rows: int = 60) -> Terminal:
        opened.append(wall(town, environment, *args, columns=columns, rows=rows))
        return opened[-1]

    yield open_wall
    for terminal in opened:
        terminal.close()


def names(count: int) -> list[str]:
    return [f"w-{n}" for n in range(1, count + 1)]


@pytest.mark.parametrize("count, columns, rows", [(1, 80, 24), (3, 130, 50), (9, 200, 60)])
def test_every_worker_has_a_tile_with_its_last_rows(
    town: Town, look: Open, count: int, columns: int, rows: int
) -> None:
    town.hire(*names(count))
    titles = [f"{name}  ready" for name in names(count)]
    last = [text for name in names(count) for text in (f"{name} row 36", f"{name} {PROMPT}")]
    look(columns=columns, rows=rows).shows(*titles, *last)
    assert town.sizes() == OWN_SIZE
    assert town.tiles() == names(count)


def test_twelve_take_two_pages(town: Town, look: Open) -> None:
    town.hire(*names(12))
    terminal = look()
    terminal.shows("page 1/2", f"w-9 {PROMPT}")
    assert town.tiles() == sorted(names(9)), "a page that is not shown costs nothing"
    terminal.keys("n")
    terminal.shows("page 2/2", *(f"{name} {PROMPT}" for name in ("w-10", "w-11", "w-12")))
    terminal.hides("w-9  ready")
    terminal.keys("n")
    terminal.shows("page 1/2", f"w-1 {PROMPT}")
    terminal.keys("PPage")
    terminal.shows("page 2/2", f"w-12 {PROMPT}")
    assert town.sizes() == OWN_SIZE


def test_a_small_terminal_turns_pages_and_follows_a_resize(town: Town, look: Open) -> None:
    town.hire(*names(3))
    terminal = look(columns=80, rows=24)
    terminal.shows("page 1/3", f"w-1 {PROMPT}", "q leaves")
    terminal.keys("n")
    terminal.shows("page 2/3", f"w-2 {PROMPT}")
    terminal.resize(200, 50)
    terminal.shows("3 workers", *(f"{name} {PROMPT}" for name in names(3)))
    terminal.resize(40, 10)
    terminal.shows("page 1/3", f"w-1 {PROMPT}")
    terminal.hides("w-2")
    assert town.sizes() == OWN_SIZE


def test_workers_come_and_go(town: Town, look: Open) -> None:
    town.hire("w-1", "w-2")
    terminal = look()
    terminal.shows("w-1  ready", "w-2  ready")
    town.hire("w-3")
    terminal.shows(f"w-3 {PROMPT}", "w-3  ready")
    town.stage.worker("w-1", word="waiting", waiting={"kind": "approval", "text": "rm -rf #[fg=red]build"})
    terminal.shows("w-1  waiting rm -rf #[fg=red]build", "1 waits: w-1")
    town.dismiss("w-2")
    terminal.hides("w-2")
    town.dismiss("w-1")
    town.dismiss("w-3")
    terminal.shows("no worker runs in fleet default")
    town.hire("w-4")
    terminal.shows(f"w-4 {PROMPT}")


def test_a_session_that_is_made_anew_comes_back_into_its_tile(town: Town, look: Open) -> None:
    town.hire("w-1", "w-2")
    terminal = look()
    terminal.shows(f"w-1 {PROMPT}", f"w-2 {PROMPT}")
    town.server.run("kill-session", "-t", "=w-1")
    terminal.hides(f"w-1 {PROMPT}")
    town.hire("w-1")
    terminal.shows(f"w-1 {PROMPT}")
    assert town.sizes() == OWN_SIZE


def test_keys_reach_only_the_tile_that_was_opened(town: Town, look: Open) -> None:
    town.hire("w-1", "w-2")
    terminal = look()
    terminal.shows("▶ w-1", f"w-2 {PROMPT}")
    terminal.keys("x", "y", "Right")
    terminal.shows("▶ w-2")
    terminal.keys("Enter")
    terminal.shows("✎ w-2", "what you type goes to w-2")
    terminal.hides("w-1")
    terminal.keys("h", "q", "n")
    until(lambda: f"{PROMPT} hqn" in town.screen("w-2"), 20, what="typed into w-2")
    terminal.keys("C-]")
    terminal.shows("▶ w-2", f"w-1 {PROMPT}")
    terminal.keys("y", "Left")
    terminal.shows("▶ w-1")
    terminal.keys("2")
    terminal.shows("▶ w-2")
    terminal.keys("C-]", "d")
    terminal.shows("left with 0")
    assert town.screen("w-1").endswith(f"w-1 {PROMPT}")
    assert town.screen("w-2").endswith(f"w-2 {PROMPT} hqn")
    assert town.sizes() == OWN_SIZE


def test_a_reader_types_nothing(town: Town, look: Open) -> None:
    town.hire("w-1", "w-2")
    terminal = look("--read-only")
    terminal.shows("▶ w-1", f"w-2 {PROMPT}")
    terminal.keys("Enter")
    terminal.shows("read-only", "✎ w-1")
    terminal.keys("x", "q")
    terminal.type("typed by a reader\r")
    terminal.paste("pasted by a reader\r")
    terminal.keys("C-]")
    terminal.shows("▶ w-1", f"w-2 {PROMPT}")
    terminal.keys("q")
    terminal.shows("left with 0")
    assert town.screen("w-1").endswith(f"w-1 {PROMPT}")


@pytest.mark.parametrize("text", ["\rqqq\rq", "q\rrm -rf x\r", "hello\rqd\r"])
def test_a_paste_is_not_taken_for_keys(town: Town, look: Open, text: str) -> None:
    """What comes within milliseconds may select, open or leave; nothing of it reaches a worker or a shell."""
    town.hire("w-1", "w-2")
    terminal = look()
    terminal.shows("▶ w-1", f"w-2 {PROMPT}")
    terminal.paste(text)
    looks: list[str] = []

    def over() -> bool:
        terminal.keys("C-]")
        looks.append(terminal.screen())
        return len(looks) > 3 and ("▶" in looks[-1] or "left with" in looks[-1])

    until(over, 20, every=0.3, what="the paste is over")
    assert town.screen("w-1").endswith(f"w-1 {PROMPT}")
    assert town.screen("w-2").endswith(f"w-2 {PROMPT}")
    assert "rm -rf" not in terminal.screen()


def test_the_next_that_waits(town: Town, look: Open) -> None:
    town.hire(*names(12))
    for name, word in (("w-5", "waiting"), ("w-12", "held")):
        town.stage.worker(name, word=word)
    terminal = look()
    terminal.shows("2 wait: w-5", "▶ w-1")
    terminal.keys("w")
    terminal.shows("▶ w-5")
    terminal.keys("w")
    terminal.shows("▶ w-12", "page 2/2")
    terminal.keys("w")
    terminal.shows("▶ w-5", "page 1/2")


def test_only_those_that_are_meant(town: Town, look: Open) -> None:
    town.hire("w-1", "x-1", "x-2")
    terminal = look("x-*")
    terminal.shows("x-1  ready", "x-2  ready")
    assert town.tiles() == ["x-1", "x-2"]


def test_who_attaches_meanwhile_does_not_size_what_the_wall_shows(
    town: Town, look: Open, environment: dict[str, str]
) -> None:
    town.hire("w-1")
    terminal = look(columns=80, rows=24)
    terminal.shows(f"w-1 {PROMPT}")
    program, *words = town.server.attach_argv("w-1")
    person = subprocess.Popen(
        [sys.executable, "-c", "import pty,sys; pty.spawn(sys.argv[1:])", program, *words],
        env=town.server.attach_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: town.tiles() == ["w-1", "w-1"], 20, what="both look")
    assert town.sizes() == OWN_SIZE
    person.kill()
    person.wait()
    until(lambda: town.tiles() == ["w-1"], 20)
    terminal.keys("q")
    terminal.shows("left with 0")
    until(lambda: town.tiles() == [], 20)
    window = town.server.run("show-options", "-w", "-t", "=w-1:", "window-size")
    assert town.sizes() == OWN_SIZE and window == [], "the next who attaches sizes it again"


@pytest.mark.parametrize("victim", ["hermux", "client", "terminal", "term"])
def test_whatever_is_killed_the_wall_ends(town: Town, look: Open, folder: Path, victim: str) -> None:
    town.hire(*names(3))
    terminal = look()
    terminal.shows(*(f"{name} {PROMPT}" for name in names(3)))
    hermux = terminal.hermux()
    assert processes_of_walls(folder)
    match victim:
        case "hermux":
            hermux.kill()
        case "term":
            hermux.terminate()
        case "client":
            next(p for p in hermux.children() if p.terminal()).kill()
        case "terminal":
            terminal.hang_up()
    until(lambda: not processes_of_walls(folder), 20, what="the wall's server and clients are gone")
    until(lambda: town.tiles() == [], 20, what="the fleet has no clients")
    assert not list(folder.glob("tmux-*/hermux_wall_*"))
    assert town.sizes() == OWN_SIZE
    assert [name for name in names(3) if town.screen(name).endswith(PROMPT)] == names(3)


def test_an_open_wall_has_no_socket(town: Town, look: Open, folder: Path) -> None:
    town.hire("w-1")
    look().shows(f"w-1 {PROMPT}")
    sockets = {path.name for path in folder.glob("tmux-*/*")}
    assert {name.split("-")[0] for name in sockets} == {"hermux", "outer"}


def test_sockets_of_walls_that_died_while_opening_are_swept(town: Town, look: Open, folder: Path) -> None:
    import socket

    town.hire("w-1")
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale = town.server.socket_folder / f"hermux_wall_{dead.pid}"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    look().shows(f"w-1 {PROMPT}")
    assert not stale.exists()


def test_a_wall_that_stands_still_holds_no_worker_up(town: Town, look: Open, folder: Path) -> None:
    done = folder / "done"
    script = f"read go; seq 300000; touch {done}; exec cat"
    town.hire("w-1", script=script)
    terminal = look()
    terminal.shows("w-1  ready")
    frozen = [terminal.hermux(), *terminal.hermux().children(), *processes_of_walls(folder)]
    for process in frozen:
        process.suspend()
    town.server.run("send-keys", "-t", "=w-1:", "Enter")
    until(done.exists, 60, what="the worker printed 2 MB")
    for process in frozen:
        process.resume()
    terminal.shows("300000")


@pytest.mark.parametrize(
    "args, env, said",
    [
        (["--wall"], {}, ["attach needs a terminal", "hermux ls -w"]),
        (["w-1"], {}, ["attach needs a terminal", "hermux peek w-1"]),
    ],
)
def test_without_a_terminal(
    town: Town, environment: dict[str, str], args: list[str], env: dict[str, str], said: list[str]
) -> None:
    town.hire("w-1")
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "attach", *args],
        env={**environment, **town.stage.env, "PATH": os.environ["PATH"], **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and all(text in done.stderr for text in said), done.stderr


def test_a_dumb_terminal_is_refused(town: Town, environment: dict[str, str]) -> None:
    town.hire("w-1")
    terminal = wall(town, environment, columns=80, rows=24)
    terminal.shows(f"w-1 {PROMPT}")
    terminal.close()
    argv = ["env", "TERM=dumb", sys.executable, "-m", "orchestrator", "attach", "--wall"]
    env = {**environment, **town.stage.env, "PATH": os.environ["PATH"]}
    dumb = Terminal(env, argv, columns=100, rows=24)
    dumb.shows("TERM is dumb", "hermux ls -w", "left with 2")
    dumb.close()


def test_nobody_to_look_at(town: Town, look: Open) -> None:
    town.stage.worker("w-1", want="stopped", attempt=0, word="stopped", phase="stopped")
    look().shows("no worker runs in fleet default", "hermux start", "left with 1")


def test_the_server_of_a_wall_knows_no_key(town: Town, folder: Path, environment: dict[str, str]) -> None:
    town.hire("w-1")
    terminal = wall(town, {**environment, "OPENAI_API_KEY": "sk-not-to-be-seen"})
    terminal.shows(f"w-1 {PROMPT}")
    shown = [json.dumps(process.environ()) for process in processes_of_walls(folder)]
    assert shown and not any("sk-not-to-be-seen" in text for text in shown)
    terminal.close()


def test_two_walls_at_once(town: Town, look: Open, folder: Path) -> None:
    """The one that ends first takes nothing from the other."""
    town.hire("w-1", "w-2")
    first = look(columns=80, rows=24)
    first.shows(f"w-1 {PROMPT}")
    pid = first.hermux().pid
    second = subprocess.Popen(
        [sys.executable, "-c", "import pty,sys; pty.spawn(sys.argv[1:])", *psutil.Process(pid).cmdline()],
        env={**psutil.Process(pid).environ(), "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: len(town.tiles()) == 2, 20, what="a second wall")
    os.killpg(second.pid, signal.SIGKILL)
    second.wait()
    until(lambda: len(town.tiles()) == 1, 20)
    first.keys("n")
    first.shows(f"w-2 {PROMPT}")
    assert town.sizes() == OWN_SIZE
