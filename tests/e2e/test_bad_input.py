"""Bad input gets a clear line, a documented exit code, and nothing half-made."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.sandbox import Sandbox

LINES = re.compile(r"hermux: [^\n]+(\n  → [^\n]+)?\n")


def refused(box: Sandbox, code: int, *args: str, env: dict[str, str] | None = None) -> str:
    """Run a command that must be refused in one line and a hint, and return what it says."""
    before = made(box)
    done = box.run(*args, env=env)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert LINES.fullmatch(done.stderr), done.stderr
    assert made(box) == before, "nothing is half-made"
    assert not box.processes()
    return done.stderr


def made(box: Sandbox) -> list[str]:
    """Return every file that a fleet, a worker or a Hermes profile would leave."""
    places = (box.home / "state", box.home / ".hermes", box.home / "tmux")
    return sorted(str(path) for place in places for path in place.rglob("*"))


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Run a small web server, and return its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["spawn", "--role", "codr"], ["no role 'codr'", "did you mean 'coder'?"]),
        (["spawn", "--role", "coder,"], ["--role 'coder,' is no list"]),
        (["spawn", "--name", "Bad_Name"], ["Bad_Name"]),
        (["spawn", "--name", "spawn"], ["spawn"]),
        (["spawn", "--name", "x" * 25], ["x" * 25]),
        (["spawn", "--name", "../up"], ["../up"]),
        (["spawn", "0"], ["0 workers cannot be started", "at least 1"]),
        (["spawn", "10000"], ["10000 workers are too many: 64 at most"]),
        (["spawn", "--", "-1"], ["'-1' is no number of workers"]),
        (["spawn", "three"], ["'three' is no number of workers"]),
        (["spawn", "--cwd", "nowhere"], ["nowhere does not exist", "mkdir -p"]),
        (["spawn", "--cwd", "file"], ["file is not a directory"]),
        (["spawn", "--env-file", "nowhere"], ["nowhere"]),
        (["spawn", "--env-file", "."], ["."]),
        (["spawn", "--env-file", "bad-vars"], ["bad-vars:2"]),
        (["spawn", "--env", "NOVALUE"], ["--env takes K=V"]),
        (["spawn", "--env", "1X=2"], ["1X"]),
        (["spawn", "--size", "big"], ["--size 'big' is no size"]),
        (["spawn", "--size", "20x20"], ["20x20", "64 to 1000 columns"]),
        (["spawn", "--prompt", " "], ["the text is empty"]),
        (["spawn", "--prompt-file", "nowhere"], ["cannot read nowhere"]),
        (["spawn", "--prompt-file", "latin"], ["latin:1: not UTF-8"]),
        (["spawn", "--prompt", "a", "--prompt-file", "file"], ["exclude each other"]),
        (["spawn", "--replace"], ["--replace needs the --name"]),
        (["spawn", "--key-env", "sk-secret-itself", "--endpoint", "http://127.0.0.1:9"], ["not the key"]),
        (["spawn", "--endpoint", "ftp://127.0.0.1"], ["ftp"]),
        (["spawn", "--endpoint", "not a url"], ["the endpoint URL is empty or has blanks in it"]),
        (["spawn", "-m", "some-model"], ["no endpoint for the model 'some-model' is set"]),
        (["spawn", "--max-turns", "0"], ["max-turns"]),
        (["spawn", "--worktre"], ["--worktre"]),
        (["spawm"], ["no verb 'spawm'", "did you mean: hermux spawn"]),
        (["ls", "--fleet", "Not/A/Fleet"], ["Not/A/Fleet"]),
        (["scale", "-5"], []),
        (["wait"], ["no worker was named"]),
        (["ask", "somebody"], ["no text was given"]),
        (["ask", "somebody", "hello"], ["no worker 'somebody' in fleet", "hermux spawn"]),
        (["send", "somebody", "hello"], ["no worker 'somebody'"]),
        (["stop", "x-*"], ["no worker 'x-*'"]),
        (["rm", "@front"], ["no group '@front'"]),
        (["why", "coder-1"], ["no worker 'coder-1'"]),
        (["peek", "coder-1"], ["no worker 'coder-1'"]),
        (["logs", "coder-1"], ["no worker 'coder-1'"]),
        (["attach", "coder-1"], ["no worker 'coder-1'"]),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_usage(shared_fleet: Sandbox, args: list[str], says: list[str]) -> None:
    (shared_fleet.home / "file").write_text("x")
    (shared_fleet.home / "latin").write_bytes("é".encode("latin-1"))
    (shared_fleet.home / "bad-vars").write_text("GOOD=1\nnot a variable\n")
    told = refused(shared_fleet, 2, *args)
    for words in says:
        assert words in told
    assert "sk-secret-itself" not in told


def test_every_fault_of_a_role_is_told(fleet: Sandbox) -> None:
    folder = fleet.home / "config" / "hermux" / "roles" / "mine"
    folder.mkdir(parents=True)
    (folder / "role.yaml").write_text("descripton: x\ntoolsets: terminal\nmax_turns: many\nnudge: 3\n")
    (folder / "SOUL.md").write_text("You are mine.\n")
    done = fleet.run("spawn", "--role", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    for place, words in (
        ("1", "descripton: unknown field; did you mean 'description'?"),
        ("2", "toolsets: must be"),
        ("3", "max_turns: must be"),
        ("4", "nudge: must be"),
    ):
        assert re.search(rf"{re.escape(str(folder))}/role.yaml:{place}: {re.escape(words)}", done.stderr), (
            done.stderr
        )
    assert not made(fleet)


def test_nobody_listens_at_the_endpoint(fleet: Sandbox) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        told = refused(fleet, 1, "spawn", "--endpoint", f"http://127.0.0.1:{port}/v1")
    assert f"127.0.0.1:{port}" in told


def test_a_context_that_is_too_small(fleet: Sandbox) -> None:
    with RehearsalServer(context=63_999) as model:
        told = refused(fleet, 1, "spawn", "--endpoint", model.url)
    assert "63,999" in told
    assert "64,000" in told
    assert "→" in told


def test_a_key_is_asked_for(fleet: Sandbox) -> None:
    def deny(request: BaseHTTPRequestHandler) -> None:
        request.send_error(401)

    with serving(deny) as url:
        told = refused(fleet, 1, "spawn", "--endpoint", url)
        assert "key" in told
        unset = refused(fleet, 1, "spawn", "--endpoint", url, "--key-env", "NOT_SET")
        assert "NOT_SET holds no key" in unset


def test_a_web_page_is_no_endpoint(fleet: Sandbox) -> None:
    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        request.wfile.write(b"<html>hello</html>")

    with serving(page) as url:
        told = refused(fleet, 1, "spawn", "--endpoint", url)
    assert url.removeprefix("http://") in told


def test_the_v1_is_repaired(fleet: Sandbox) -> None:
    with RehearsalServer() as model:
        shown = fleet.json("endpoint", "test", "--endpoint", model.url.removesuffix("/v1"))
    assert shown["base_url"] == model.url


def test_missing_hermes(fleet: Sandbox) -> None:
    env = {"HERMUX_HERMES": str(fleet.home / "no-hermes")}
    assert "no-hermes" in refused(fleet, 1, "spawn", env=env)


def test_missing_tmux(fleet: Sandbox) -> None:
    tools = fleet.home / "tools"
    tools.mkdir()
    for name in ("sh", "env", "git"):
        (tools / name).symlink_to(str(shutil.which(name)))
    told = refused(fleet, 1, "spawn", env={"PATH": str(tools)})
    assert "tmux" in told
    assert "install" in told


def test_a_home_that_cannot_be_written(fleet: Sandbox) -> None:
    """A file stands where the state should be: root can write to any folder, but not below a file."""
    (fleet.home / "state").rmdir()
    (fleet.home / "state").write_text("")
    done = fleet.run("spawn")
    assert (done.returncode, done.stdout) == (1, "")
    assert LINES.fullmatch(done.stderr), done.stderr
    assert str(fleet.home / "state") in done.stderr
    assert not (fleet.home / ".hermes").exists()


@pytest.mark.parametrize("place", ["state", ".hermes"])
def test_a_read_only_home(fleet: Sandbox, place: str) -> None:
    folder = fleet.home / place
    folder.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        (folder / "hermux").write_text("")
        (folder / "profiles").write_text("")
    folder.chmod(0o500)
    done = fleet.run("spawn")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert LINES.fullmatch(done.stderr), done.stderr
    assert place in done.stderr
    assert not list(fleet.home.glob("state/hermux/*/workers/*"))


def test_empty_fleet(fleet: Sandbox) -> None:
    done = fleet.run("ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"no workers in fleet {fleet.fleet} → hermux spawn -F {fleet.fleet}" in done.stderr
    assert not made(fleet)
    assert fleet.json("ls")["workers"] == []
