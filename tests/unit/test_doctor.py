"""What the doctor makes of this machine, of Hermes' files and of one worker; the relay that counts."""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.doctor import foreign, host, install, single
from orchestrator.doctor.check import State, Trouble, fail, ok, timed, warn
from orchestrator.doctor.place import end_all, place, rehearsal
from orchestrator.doctor.relay import Passed, Relay, one_after_the_other
from orchestrator.doctor.target import Target, several
from orchestrator.fleet.admission import Host
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.health.engines import Engine as Kind
from orchestrator.hermes.home import write_home
from tests.unit.engine import Engine, running
from tests.until import until

GB = 10**9


def home(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a person whose home is `folder`, with a `hermes` in it."""
    site = folder / "venv" / "lib" / "python3.11" / "site-packages"
    info = site / "hermes_agent-0.19.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (site / "hermes_cli").mkdir(exist_ok=True)
    (info / "entry_points.txt").write_text("[console_scripts]\nhermes = hermes_cli.main:main\n")
    python = folder / "venv" / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    if not python.exists():
        python.symlink_to(os.path.realpath("/proc/self/exe"))
    command = python.with_name("hermes")
    command.write_text(f"#!{python}\n")
    command.chmod(0o755)
    return {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "HERMUX_HERMES": str(command),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        **more,
    }


# the check itself


def test_an_error_becomes_a_check() -> None:
    def full() -> Any:
        raise OSError(28, "No space left on device", "/state")

    def down() -> Any:
        raise Trouble("it is down", hint="start it")

    found = timed("disk", full)
    assert (found.state, found.seen) == (State.FAIL, "/state: No space left on device") and found.next
    found = timed("x", down)
    assert (found.state, found.seen, found.next) == (State.FAIL, "it is down", "start it")


# the machine


def test_memory_shows_its_arithmetic() -> None:
    roomy = Host(available=21 * GB, limit=32 * GB, headroom=1 * GB, per_worker=500 * 10**6)
    found = host.memory(roomy, 32 * GB)
    assert found.state is State.OK
    assert found.seen == "(21.0 GB available - 1.0 GB kept free) / 500 MB each = 40 more workers"
    found = host.memory(replace(roomy, available=2 * GB), 32 * GB)
    assert found.state is State.WARN and "= 2 more workers" in found.seen
    found = host.memory(replace(roomy, available=1 * GB), 32 * GB)
    assert found.state is State.FAIL and "waits as pending" in found.seen and "hermux stop" in found.next
    found = host.memory(replace(roomy, limit=22 * GB), 32 * GB)
    assert "a cgroup allows 22.0 GB of 32.0 GB" in found.seen
    assert host.memory(None).state is State.WARN


def test_disk(tmp_path: Path) -> None:
    env = home(tmp_path)
    assert host.disk(env).state is State.OK
    found = host.disk(env, least=1 << 60)
    assert found.state is State.FAIL and found.next.startswith("free space there: du -xsh ")


def test_locale_terminal_and_limits(tmp_path: Path) -> None:
    env = home(tmp_path)
    assert host.language(env).state is State.OK
    found = host.language({"LC_ALL": "C"})
    assert found.state is State.WARN and "export LANG=C.UTF-8" in found.next
    assert host.terminal(env, os.terminal_size((120, 40))).state is State.OK
    found = host.terminal(env, os.terminal_size((50, 20)))
    assert found.state is State.WARN and "50x20" in found.seen
    found = host.terminal({"TERM": "dumb"}, None)
    assert found.state is State.WARN and found.next.startswith("export TERM=")
    assert host.limits().seen


def test_folders(tmp_path: Path) -> None:
    env = home(tmp_path)
    assert host.folders(env).state is State.OK
    state = tmp_path / ".local" / "state" / "hermux"
    state.mkdir(parents=True)
    state.chmod(0o755)
    found = host.folders(env)
    assert found.state is State.WARN and found.next == f"chmod -R go= {state}"
    found = host.folders({**env, "HOME": "/proc/nowhere"})
    assert found.state is State.FAIL and "HOME" in found.seen


# Hermes and its files


def test_hermes_versions(tmp_path: Path) -> None:
    env = home(tmp_path)
    found = install.hermes(env)
    assert found.state is State.OK and found.seen.startswith(f"0.19.0 at {env['HERMUX_HERMES']}, Python 3")
    site = tmp_path / "venv/lib/python3.11/site-packages"
    for version, state in (("0.18.3", State.FAIL), ("0.22.2", State.OK), ("0.31.0", State.WARN)):
        next(site.glob("hermes_agent-*")).rename(site / f"hermes_agent-{version}.dist-info")
        (tmp_path / ".cache/hermux/hermes.json").unlink(missing_ok=True)
        found = install.hermes(env)
        assert found.state is state and version in found.seen
    missing = timed("hermes", lambda: install.hermes({**env, "HERMUX_HERMES": "/nowhere/hermes"}))
    assert missing.failed and "pip install hermes-agent" in missing.next


def test_another_env_file_decides(tmp_path: Path) -> None:
    env = home(tmp_path)
    assert foreign.environment(env).state is State.OK
    dotenv = tmp_path / ".hermes" / ".env"
    dotenv.parent.mkdir()
    dotenv.write_text("# OPENAI_BASE_URL=http://old\nexport CUSTOM_BASE_URL=http://secret-host/v1\nX=1\n")
    found = foreign.environment(env)
    assert found.state is State.WARN and "CUSTOM_BASE_URL" in found.seen and str(dotenv) in found.seen
    assert "OPENAI_BASE_URL" not in found.seen and "secret-host" not in found.seen
    dotenv.unlink()
    own = tmp_path / ".hermes/profiles/hx-default-coder-1/.env"
    own.parent.mkdir(parents=True)
    own.write_text("OPENAI_API_KEY=sk-other\n")
    found = foreign.environment(env)
    assert found.state is State.FAIL and "OPENAI_API_KEY" in found.seen and "sk-other" not in found.seen
    own.unlink()
    found = foreign.environment({**env, "OPENAI_API_BASE": "http://a", "OPENAI_BASE_URL": "http://b"})
    assert found.state is State.WARN and found.next == "unset OPENAI_BASE_URL"


DEAD = {
    "provider": "openai-codex",
    "code": "refresh_token_reused",
    "message": "Codex refresh token was already consumed by another client",
    "relogin_required": True,
}


@pytest.mark.parametrize(
    ("auth", "said", "again"),
    [
        ({"providers": {"openai-codex": {"tokens": {"access_token": "t0p"}, "last_auth_error": DEAD}}},
         "used by another program (refresh_token_reused)", "hermes auth add openai-codex"),
        ({"providers": {"nous": {"last_auth_error": {"code": "invalid_grant", "relogin_required": True}}}},
         "the OAuth login of nous is dead: its refresh was refused (invalid_grant)", "hermes auth status nous"),
        ({"providers": {"nous": {"access_token": "t0p", "expires_at": "2020-01-01T00:00:00Z"}}},
         "has expired and cannot be refreshed", "hermes auth add nous"),
        ({"credential_pool": {"xai-oauth": [{"auth_type": "oauth_external", "access_token": "t0p",
          "last_status": "dead", "last_error_message": "invalid_grant"}]}},
         "the OAuth login of xai-oauth is dead: invalid_grant", "hermes auth add xai-oauth"),
    ],
)  # fmt: skip
def test_oauth_logins_that_hermes_gave_up(tmp_path: Path, auth: Any, said: str, again: str) -> None:
    (tmp_path / "auth.json").write_text(json.dumps(auth))
    found = foreign.logins([tmp_path], used=True)
    assert found is not None and found.state is State.FAIL
    assert said in found.seen and again in found.next and "t0p" not in found.seen
    unused = foreign.logins([tmp_path], used=False)
    assert unused is not None and unused.state is State.WARN


def test_oauth_logins_that_live(tmp_path: Path) -> None:
    assert foreign.logins([tmp_path], used=True) is None
    live = {"providers": {"nous": {"access_token": "a", "refresh_token": "b", "expires_at": 1}}}
    (tmp_path / "auth.json").write_text(
        json.dumps(live | {"credential_pool": {"zai": [{"auth_type": "api_key"}]}})
    )
    found = foreign.logins([tmp_path], used=True)
    assert found is not None and found.state is State.OK and "logged in: nous;" in found.seen
    (tmp_path / "auth.json").write_text("{torn")
    assert foreign.logins([tmp_path], used=True) is None


def test_errors_of_oauth_in_hermes_words() -> None:
    assert "one place" in foreign.oauth_error("Codex refresh token was already consumed by another client")
    assert "hermes -p PROFILE" in foreign.oauth_error(
        "Nous: invalid_grant. Run `hermes model` to re-authenticate."
    )
    assert foreign.oauth_error("HTTP 500: boom") == ""


# one worker


def spec_of(base_url: str = "http://127.0.0.1:1/v1", **more: Any) -> WorkerSpec:
    fields = {"cwd": "/", "hermes_profile": "hx-default-coder-1", **more}
    return WorkerSpec("coder-1", "coder", endpoint=Endpoint(base_url, "small", 100_000), **fields)


def test_the_state_of_a_worker() -> None:
    entry = {"word": "ready", "phase": "up", "endpoint": {"model": "m", "base_url": "u", "key_env": "K"}}
    assert single.state_of("w", entry).seen == "ready: m at u, key in $K"
    found = single.state_of("w", {"word": "held", "why": "auth: HTTP 401: no"})
    assert found.state is State.WARN and "hermux start w" in found.next
    found = single.state_of("w", {"word": "held", "why": "refresh token was already consumed"})
    assert "hermes model" in found.next
    found = single.state_of(
        "w", {"word": "failed", "last_turn": {"outcome": "failed", "kind": "server", "error": "x"}}
    )
    assert "its last turn failed (server): x" in found.seen
    assert "hermux inbox" in single.state_of("w", {"word": "waiting", "waiting": {"text": "rm?"}}).next
    assert "pending" in single.state_of("w", {"phase": "pending", "why": "waits for memory"}).seen


def test_the_settings_of_a_worker(tmp_path: Path) -> None:
    spec = spec_of(hermes_root=str(tmp_path))
    assert "missing" in single.setting_of(spec, tmp_path, "default").seen
    folder = write_home(tmp_path, spec, soul="x\n", key=False)
    assert single.setting_of(spec, tmp_path, "default").state is State.OK
    found = single.setting_of(spec, tmp_path, "other")
    assert found.failed and "name conflict" in found.seen and "coder-1 of fleet default" in found.seen
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("http://127.0.0.1:1/v1", "http://elsewhere/v1"))
    found = single.setting_of(spec, tmp_path, "default")
    assert found.failed and "http://elsewhere/v1" in found.seen and "hermux restart coder-1" in found.next
    assert single.setting_of(replace(spec, cwd="/nowhere"), tmp_path, "default").failed


def test_the_environment_of_a_worker(tmp_path: Path) -> None:
    spec = spec_of()
    right = {"HERMES_HOME": str(tmp_path / "profiles/hx-default-coder-1"), "OPENAI_API_KEY": "sk-1"}
    assert single.surroundings(spec, right, "sk-1", tmp_path).state is State.OK
    assert single.surroundings(spec, {}, "sk-1", tmp_path).state is State.OK
    for wrong, said in (
        ({"CUSTOM_BASE_URL": "http://x"}, "wrong environment: CUSTOM_BASE_URL"),
        ({"OPENAI_API_KEY": "sk-2"}, "another key"),
        ({"HERMES_HOME": "/other"}, "another Hermes home"),
    ):
        found = single.surroundings(spec, {**right, **wrong}, "sk-1", tmp_path)
        assert found.failed and said in found.seen and "sk-" not in found.seen
        assert found.next == "hermux restart coder-1"


def test_a_full_context() -> None:
    assert single.fullness(spec_of(), 0).state is State.OK
    assert single.fullness(spec_of(), 50_000).seen == "50,000 of 100,000 tokens (50 %)"
    found = single.fullness(spec_of(), 90_000)
    assert found.state is State.WARN and found.next == "hermux send coder-1 /compress --slash"


def target_of(engine: Engine) -> Target:
    endpoint = Endpoint(engine.url, engine.model, 131072)
    return Target(endpoint, "", {}, 10.0, models=(engine.model, *engine.more))


def test_it_is_the_concurrency() -> None:
    with running(Engine(slots=2, delay=0.3)) as engine:
        target = replace(target_of(engine), engine=Kind.VLLM)
        one = single.alone(target)
        assert not isinstance(one, Trouble)
        crowd = single.together(several(target, 4), target)
        assert crowd.failed and "of 4 requests at once fail" in crowd.seen and "429" in crowd.seen
        assert "--max-num-seqs" in crowd.next and "hermux scale" in crowd.next
        found = single.verdict("w", one, crowd, [ok("worker", "ready")])
        assert found.failed and "it is the concurrency" in found.seen
        few = single.together(several(target, 2), target)
        assert few.state is State.OK and engine.most >= 2


def test_it_is_the_model_or_the_endpoint() -> None:
    with running(Engine(only="large", more=("large",))) as engine:
        target = target_of(engine)
        one = single.alone(target)
        assert isinstance(one, Trouble) and "CUDA out of memory" in str(one)
        other = single.other_model(target)
        found = single.verdict("w", one, None, [], other=other, model="small")
        assert found.failed and found.seen == "it is the model: large answers there, small does not"
    with running(Engine(answer=(500, {"error": "down"}), more=("large",))) as engine:
        target = target_of(engine)
        one = single.alone(target)
        found = single.verdict("w", one, None, [], other=single.other_model(target))
        assert found.failed and "it is the endpoint" in found.seen


def test_it_is_the_worker() -> None:
    with running(Engine()) as engine:
        one = single.alone(target_of(engine))
    held = warn("worker", "held: auth: HTTP 401", "hermux start w")
    found = single.verdict("w", one, ok("together", "all"), [held, ok("context", "")])
    assert found.state is State.WARN and found.seen == "it is the worker (worker): held: auth: HTTP 401"
    worse = fail("environment", "wrong environment", "hermux restart w")
    found = single.verdict("w", one, None, [held, worse])
    assert found.failed and found.next == "hermux restart w"
    assert single.verdict("w", one, None, [ok("worker", "ready")]).state is State.OK


# what it starts


def test_a_folder_of_its_own_is_removed(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path)}
    with pytest.raises(KeyboardInterrupt), place(env) as folder:
        (folder / "x").write_text("x")
        assert folder.stat().st_mode & 0o077 == 0
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    left = tmp_path / "hermux-doctor-killed"
    left.mkdir()
    (left / "doctor.json").write_text('{"schema": 1, "pid": 4194304, "start": 1.0}')
    theirs = tmp_path / "hermux-doctor-theirs"
    theirs.mkdir()
    with place(env) as folder, place(env) as second:
        assert folder.exists() and second.exists()
        assert not left.exists(), "that doctor was killed"
        assert theirs.exists(), "nobody knows whose that is"


def test_the_rehearsal_model_as_a_child(tmp_path: Path) -> None:
    with (
        rehearsal(tmp_path) as endpoint,
        urllib.request.urlopen(f"{endpoint.base_url}/models", timeout=10) as answer,
    ):
        assert json.load(answer)["data"]
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{endpoint.base_url}/models", timeout=2)
    with rehearsal(tmp_path) as endpoint:
        end_all(tmp_path)  # as the next doctor does after one that was killed
        with pytest.raises(OSError):
            urllib.request.urlopen(f"{endpoint.base_url}/models", timeout=2)


def ask(url: str, key: str = "") -> None:
    body = json.dumps({"model": "small", "stream": True, "messages": []}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", body, {"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert b"data: [DONE]" in answer.read()


def test_the_relay_counts_what_is_in_flight() -> None:
    with (
        running(Engine(key="sk-1", delay=0.2)) as engine,
        Relay(engine.url, key="sk-1", env={}, gate=2) as relay,
    ):
        assert relay.url.endswith("/v1")
        threads = [threading.Thread(target=ask, args=(relay.url, "sk-1")) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ask(relay.url, "sk-1")
        until(lambda: len(relay.passed) == 3, 5)
    assert relay.most == 2 and engine.most == 2
    assert {(each.path, each.model, each.with_key, each.status) for each in relay.passed} == {
        ("/v1/chat/completions", "small", True, 200)
    }
    assert not one_after_the_other(relay.passed)


def test_the_relay_passes_errors_on() -> None:
    with (
        running(Engine(answer=(429, {"error": "x"}))) as engine,
        Relay(engine.url, key="", env={}, gate=1) as relay,
    ):
        with pytest.raises(urllib.error.HTTPError) as raised:
            ask(relay.url)
        assert raised.value.code == 429
    with Relay("http://127.0.0.1:9/v1", key="", env={}, gate=1) as relay:
        with pytest.raises(urllib.error.HTTPError) as raised:
            ask(relay.url)
        assert raised.value.code == 502


def test_one_after_the_other() -> None:
    def passed(sent: float, first: float, done: float) -> Passed:
        return Passed("/v1/chat/completions", "m", True, sent, first, done, 200)

    assert one_after_the_other([passed(0, 0.1, 3.0), passed(0.1, 6.0, 6.1)])
    assert not one_after_the_other([passed(0, 1.0, 1.1), passed(0.1, 1.2, 1.3)])
    assert not one_after_the_other([passed(0, 1.0, 3.0), passed(0.1, 1.2, 3.3)])
    assert not one_after_the_other([passed(0, 1, 2), passed(5, 9, 10)]), "not sent at once"
    assert not one_after_the_other([passed(0, 1, 2)])


def test_an_engine_that_serves_one_at_a_time_is_seen() -> None:
    with (
        running(Engine(delay=0.8, serial=True)) as engine,
        Relay(engine.url, key="", env={}, gate=2) as relay,
    ):
        threads = [threading.Thread(target=ask, args=(relay.url,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: len(relay.passed) == 2, 5)
    assert relay.most == 2 and one_after_the_other(relay.passed)
