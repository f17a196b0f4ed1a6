"""Named endpoints, the roll of a fleet from one to another, a key for each worker, and proxies."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.rehearsal.record import Request
from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import said, script, shell, user_texts
from tests.e2e.sandbox import Sandbox, ended, sandbox
from tests.relay import relay
from tests.until import until

pytestmark = pytest.mark.timeout(400)
SMALL = 80_000
SECRET = "sk-first-worker-4711"
OTHER = "sk-second-worker-4712"
PASSWORD = "proxy-password-4713"


def asked(model: RehearsalServer, mark: str) -> Request | None:
    """Return the newest request of a worker in whose conversation a user message holds `mark`."""
    for request in reversed(model.record.since(0)):
        if any(mark in text for text in user_texts(list(request.messages))):
            return request
    return None


def talks(model: RehearsalServer, mark: str) -> list[str]:
    """Return the user messages of that request."""
    found = asked(model, mark)
    return user_texts(list(found.messages)) if found else []


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def config(box: Sandbox, name: str) -> dict[str, Any]:
    """Return the model block of a worker's Hermes profile."""
    profile = box.home / ".hermes" / "profiles" / f"hx-{box.fleet}-{name}"
    found: dict[str, Any] = yaml.safe_load((profile / "config.yaml").read_text())["model"]
    return found


def together(box: Sandbox, *names: str) -> None:
    """Spawn workers that start side by side, and wait until all are ready."""
    for name in names:
        box.out("spawn", "--name", name, "--no-wait")
    for name in names:
        box.shows(name, "ready", 150)


@contextmanager
def closed_port() -> Iterator[int]:
    """Give a port that refuses connections."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


def test_a_fleet_is_rolled_into_its_own_conversations(fleet: Sandbox) -> None:
    """Idle at once, busy after its turn; what was given another endpoint keeps it."""
    with RehearsalServer() as old, RehearsalServer(context=SMALL) as new:
        fleet.out("endpoint", "set", old.url)
        fleet.out("spawn", "--name", "other", "--endpoint", old.url, "--no-wait")
        together(fleet, "idle", "busy")
        fleet.out("ask", "idle", "the word is pineapple", timeout=150)
        fleet.out("send", "busy", script(shell("sleep 9"), said("slept"), say="the word is cucumber"))
        until(lambda: asked(old, "cucumber"), 150, what="the busy one is in its turn")

        rolling = fleet.begin("endpoint", "set", new.url, "--roll")
        until(lambda: fleet.worker("idle")["attempt"] == 2, 150, what="the idle one is restarted")
        assert fleet.worker("busy")["attempt"] == 1
        assert asked(new, "cucumber") is None
        done = ended(rolling, 240)
        assert done.returncode == 0, done.stderr
        assert "busy is busy: rolled when it is idle" in done.stderr
        assert "other keeps its endpoint: " in done.stderr
        assert "2 on the new endpoint, 1 keep theirs" in done.stderr
        assert fleet.worker("busy")["attempt"] == 2

        for name, word in (("idle", "pineapple"), ("busy", "cucumber")):
            fleet.out("ask", name, f"what was the word of {name}?", timeout=150)
            texts = talks(new, f"what was the word of {name}?")
            assert any(word in text for text in texts), texts
            assert config(fleet, name)["base_url"] == new.url
            assert config(fleet, name)["context_length"] == SMALL
            assert fleet.worker(name)["endpoint"]["context_length"] == SMALL
        fleet.out("ask", "other", "still here?", timeout=150)
        assert talks(old, "still here?")
        assert fleet.worker("other")["attempt"] == 1

        again = fleet.run("endpoint", "set", new.url, "--roll")
        assert again.returncode == 0 and "idle is on hermux-rehearsal already" in again.stderr, again.stderr
        assert [fleet.worker(name)["attempt"] for name in ("idle", "busy", "other")] == [2, 2, 1]


def test_each_worker_sends_its_own_key(fleet: Sandbox) -> None:
    """By its own `--key-env`, or the endpoint's; a roll to another server takes only the latter's along."""
    keys = {"OWN": SECRET, "SHARED": OTHER}
    with RehearsalServer() as model, RehearsalServer() as elsewhere:
        set_ = ("endpoint", "set", "--name", "gpu", "--key-env", "SHARED")
        assert fleet.run(*set_, model.url, env=keys).returncode == 0
        for name, own in (("one", ("--key-env", "OWN")), ("two", ())):
            done = fleet.run("spawn", "--name", name, *own, "--no-wait", env=keys)
            assert done.returncode == 0, done.stderr
        assert sent(fleet, model, "one") == digest(SECRET)
        assert sent(fleet, model, "two") == digest(OTHER)

        moved = fleet.run(*set_, elsewhere.url, "--roll", env=keys, timeout=240)
        assert moved.returncode == 0, moved.stderr
        assert "one its own key $OWN is not sent to another server, $SHARED is" in moved.stderr
        assert sent(fleet, elsewhere, "one") == digest(OTHER)
        assert digest(SECRET) not in str([request.headers for request in elsewhere.record.since(0)])
        assert not any(key in moved.stderr + moved.stdout for key in keys.values())
        env = fleet.dir / "workers" / "one" / "env"
        assert env.stat().st_mode & 0o777 == 0o600
        assert SECRET not in env.read_text() and OTHER in env.read_text()
        assert not (env.parent / "keys.json").exists()


def sent(box: Sandbox, model: RehearsalServer, name: str) -> str:
    """Ask a worker, and return the digest of the key that the server saw."""
    mark = f"this is {name}, request {len(model.record.since(0))}"
    box.out("ask", name, mark, timeout=150)
    found = asked(model, mark)
    assert found is not None
    return str(found.headers.get("authorization", "")).rpartition(" ")[2]


def test_a_roll_that_was_killed_is_gone_on_with(fleet: Sandbox) -> None:
    """Each worker is replaced once; one that crashes meanwhile comes up on the new endpoint."""
    with RehearsalServer() as old, RehearsalServer() as new:
        fleet.out("endpoint", "set", old.url)
        together(fleet, "idle", "busy")
        fleet.out("send", "busy", script(shell("sleep 120"), said("slept"), say="a long one"))
        until(lambda: asked(old, "a long one"), 150, what="the busy one is in its turn")
        rolling = fleet.begin("endpoint", "set", new.url, "--roll")
        until(lambda: fleet.worker("idle")["attempt"] == 2, 150, what="the idle one is restarted")
        rolling.kill()
        rolling.communicate()

        given = fleet.json("endpoint", "set", new.url, "--roll", "--no-wait")
        assert given["roll"]["kept"] == []
        assert {*given["roll"]["pending"]} | {*given["roll"]["rolled"]} == {"idle", "busy"}
        assert fleet.worker("busy")["attempt"] == 1
        fleet.hermes("busy").kill()
        until(lambda: fleet.worker("busy").get("attempt") == 2, 150, what="it is started again")
        texts = until(lambda: talks(new, "[hermux] Your process was interrupted"), 150)
        assert any("a long one" in text for text in texts), texts
        assert config(fleet, "busy")["base_url"] == new.url
        fleet.shows("idle", "ready")
        assert [fleet.worker(name)["attempt"] for name in ("idle", "busy")] == [2, 2]


def test_a_worker_whose_key_was_refused_is_freed_by_a_roll(fleet: Sandbox) -> None:
    with RehearsalServer() as old, RehearsalServer() as new:
        fleet.out("endpoint", "set", old.url)
        fleet.hire("locked")
        done = fleet.run(
            "ask", "locked", script({"status": 401}, {"status": 401}, {"status": 401}), timeout=200
        )
        assert done.returncode == 3, done.stderr
        fleet.shows("locked", "held")
        waits = fleet.out("send", "locked", "are you free?")
        fleet.out("endpoint", "set", new.url, "--roll", timeout=240)
        until(lambda: talks(new, "are you free?"), 150, what="the message that waited is delivered")
        assert waits
        assert not talks(old, "are you free?")


def test_nothing_changes_for_an_endpoint_that_does_not_answer(fleet: Sandbox) -> None:
    with RehearsalServer() as model, closed_port() as port:
        fleet.out("endpoint", "set", model.url)
        before = (fleet.home / "config" / "hermux" / "endpoint.json").read_bytes()
        done = fleet.run("endpoint", "set", f"http://127.0.0.1:{port}/v1", "--roll")
        assert done.returncode == 1 and f"nothing listens on 127.0.0.1:{port}" in done.stderr
        assert "--endpoint" not in done.stderr
        assert (fleet.home / "config" / "hermux" / "endpoint.json").read_bytes() == before


def test_a_proxy_is_used_and_never_for_this_machine(fleet: Sandbox) -> None:
    """A name that only the proxy knows is reached through it; 127.0.0.1 past a proxy that is dead."""
    login = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    with RehearsalServer() as model, closed_port() as dead, relay(model.port, login=login) as proxy:
        way = {"HTTP_PROXY": f"http://127.0.0.1:{dead}", "NO_PROXY": "intranet.example"}
        done = fleet.run("spawn", "--name", "near", "--endpoint", model.url, env=way)
        assert done.returncode == 0, done.stderr
        fleet.out("ask", "near", "are you near?", timeout=150)
        assert talks(model, "are you near?")

        url = "http://model.test/v1"
        through = {"http_proxy": f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"}
        done = fleet.run("spawn", "--name", "far", "--endpoint", url, env=through)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        fleet.out("ask", "far", script(shell("echo $NO_PROXY; echo $http_proxy"), said("far")), timeout=150)
        assert "model.test" in proxy.hosts("/v1/models")
        assert "model.test" in proxy.hosts("/v1/chat/completions")
        assert {given for *_, given in proxy.seen} == {login}

        ours = [path for path in fleet.dir.rglob("*") if path.is_file() and holds(path, PASSWORD)]
        assert ours == [fleet.dir / "workers" / "far" / "env"]
        assert ours[0].stat().st_mode & 0o777 == 0o600
        assert PASSWORD not in fleet.tmux("show-environment", "-g") + fleet.out("events", "far")
        variables = (fleet.dir / "workers" / "near" / "env").read_text()
        assert "export NO_PROXY=localhost,127.0.0.1,::1,intranet.example" in variables


def holds(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except OSError:
        return False


@pytest.fixture(scope="module")
def box(hermes: Path) -> Iterator[Sandbox]:
    with sandbox(hermes) as box:
        yield box


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["set", "gpu"], 2, ["'gpu' is no URL", "hermux endpoint use gpu"]),
        (["set", "ftp://h/v1"], 2, ["begins with ftp://"]),
        (["set", "http://h:99999"], 2, ["the endpoint URL is not valid"]),
        (["set", "http://h/v1", "--name", "http://h/v1"], 2, ["is an address, not a name"]),
        (["set", "http://h/v1", "--name", "Big One"], 2, ["is no name for an endpoint"]),
        (["set", "http://h/v1", "--name", "rehearsal"], 2, ["means a server already"]),
        (["set", "rehearsal", "-m", "x"], 2, ["-m means nothing to the rehearsal model"]),
        (["set", "rehearsal", "--no-wait"], 2, ["--no-wait belongs to --roll"]),
        (["set", "rehearsal", "--fallback", "a,"], 2, ["--fallback 'a,' is no list"]),
        (["use", "saevd"], 2, ["no endpoint 'saevd' is saved", "did you mean saved?"]),
        (["use", "http://h/v1"], 2, ["is not the name of a saved endpoint"]),
        (["rm", "nobody"], 2, ["no endpoint 'nobody' is saved"]),
        (["show", "nobody"], 2, ["no endpoint 'nobody' is saved"]),
        (["test", "saved", "--endpoint", "saved"], 2, ["exclude each other"]),
        (["test", "nobody"], 2, ["no endpoint 'nobody' is saved"]),
        (["test", "small"], 1, ["a context of 32,000 tokens; Hermes needs 64,000"]),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_bad_input(box: Sandbox, args: list[str], code: int, says: list[str]) -> None:
    with RehearsalServer(context=32_000) as small:
        saved: dict[str, Any] = {"kind": "openai", "base_url": small.url, "model": "hermux-rehearsal"}
        saved |= {"context_length": 0, "key_env": ""}
        saved |= {"fallback": []}
        path = box.home / "config" / "hermux" / "endpoint.json"
        path.parent.mkdir(exist_ok=True)
        content = {"schema": 2, "default": "", "endpoints": {"saved": saved, "small": saved}}
        path.write_text(json.dumps(content))
        done = box.run("endpoint", *args)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        for words in says:
            assert words in done.stderr
        assert json.loads(path.read_text()) == content


def test_a_saved_name_is_spawned_on(fleet: Sandbox) -> None:
    """Given by flag and by HERMUX_ENDPOINT; it is shown by its name, and an unknown one is refused."""
    with RehearsalServer() as model:
        fleet.out("endpoint", "set", model.url, "--name", "gpu")
        assert fleet.json("endpoint", "ls", "--test")["endpoints"][0]["answers"] is True
        refused = fleet.run("spawn", "--endpoint", "gpi")
        assert refused.returncode == 2 and "did you mean gpu?" in refused.stderr
        fleet.out("endpoint", "set", "rehearsal")
        fleet.hire("byflag", "--endpoint", "gpu")
        done = fleet.run("spawn", "--name", "byname", env={"HERMUX_ENDPOINT": "gpu"})
        assert done.returncode == 0, done.stderr
        for name in ("byflag", "byname"):
            assert fleet.worker(name)["endpoint"]["name"] == "gpu"
            assert f"gpu: hermux-rehearsal at {model.url}" in fleet.out("why", name)
        assert f"gpu: hermux-rehearsal at {model.url}" in fleet.out("ls", "-v")
        fleet.out("endpoint", "rm", "gpu")
        fleet.out("ask", "byflag", "still there?", timeout=150)
        assert talks(model, "still there?")
        alone = fleet.run("spawn", "--key-env", "NOBODY", "--no-wait")
        assert alone.returncode == 2 and "--key-env means nothing to the rehearsal model" in alone.stderr


def test_a_taken_port_is_told_in_words(fleet: Sandbox) -> None:
    with RehearsalServer() as model:
        done = fleet.run("mock-endpoint", "--port", str(model.port))
        assert done.returncode == 1
        assert "another program listens there" in done.stderr and "Errno" not in done.stderr
