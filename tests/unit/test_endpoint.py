"""The endpoint probe against real sockets: engines, repairs, refusals, deadlines, and no key in any text."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.spec import Endpoint, EndpointKind
from orchestrator.health.endpoint import Probe, check, key_value, normalise_url, offer_local, probe
from orchestrator.health.engines import Engine

from .served import Handler, models, serve

CANARY = "sk-canary-4711-never-shown"


def text_of(found: Probe) -> str:
    return " ".join((found.problem, found.hint, *found.notes))


# ── the URL ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("typed", "made"),
    [
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("  http://h:8000/v1/ ", "http://h:8000/v1"),
        ("http://h:8000//v1///", "http://h:8000/v1"),
        ("http://h:8000/v1/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1"),
        ("http://h/v1/models/", "http://h/v1"),
        ("localhost:8000", "http://localhost:8000"),
        ("192.168.1.5", "http://192.168.1.5"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("http://0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("HTTP://Host:8000/V1x", "http://host:8000/V1x"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://gw.example.com/openai/v1", "https://gw.example.com/openai/v1"),
        ("http://bücher.example/v1", "http://xn--bcher-kva.example/v1"),
    ],
)
def test_url(typed: str, made: str) -> None:
    url, changes = normalise_url(typed)
    assert url == made
    assert normalise_url(url) == (made, ())
    assert isinstance(changes, tuple)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "   ",
        "http://",
        "http://h:99999",
        "http://h:0",
        "http://h:eight",
        "ftp://h/v1",
        "file:///etc/passwd",
        f"http://me:{CANARY}@h/v1",
        f"http://{CANARY}@h/v1",
        f"me:{CANARY}@h/v1",
        f"http://h/v1?api_key={CANARY}",
        f"http://h/v1#{CANARY}",
        f"http://[{CANARY}/v1",
        f"http://h:{CANARY}/v1",
        "http://h/a b",
        "http://h/\x1b[2J",
        "http://h\\v1",
        "http://xn--a\u0300.\u2488com/v1",
    ],
)
def test_url_refused_without_repeating_it(typed: str) -> None:
    with pytest.raises(UsageError) as refused:
        normalise_url(typed)
    assert "sk-canary" not in str(refused.value) + refused.value.hint
    assert "\n" not in str(refused.value)
    assert refused.value.hint


# ── which base, which engine, which context ──────────────────────────────────────────────────────


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/", "/v1/v1", "/v1/chat/completions", "/models"])
def test_v1_is_repaired(suffix: str) -> None:
    with serve({"/v1/models": models("m", owner="vllm", max_model_len=131072)}) as server:
        found = probe(server.url + suffix)
    assert (found.ok, found.url, found.model) == (True, f"{server.url}/v1", "m")
    assert found.engine is Engine.VLLM
    assert found.context_length == 131072


def test_v1_is_removed_where_the_server_has_none() -> None:
    with serve({"/models": models("m", context_length=70000)}) as server:
        found = probe(f"{server.url}/v1")
    assert (found.ok, found.url) == (True, server.url)
    assert f"the base URL became {server.url}" in found.notes


def test_base_below_a_path() -> None:
    with serve({"/gw/openai/v1/models": models("m")}) as server:
        assert probe(f"{server.url}/gw/openai").url == f"{server.url}/gw/openai/v1"


@pytest.mark.parametrize(
    ("engine", "routes", "context"),
    [
        (Engine.VLLM, {"/v1/models": models("m", owner="vllm", max_model_len=65536)}, 65536),
        (Engine.SGLANG, {"/v1/models": models("m", owner="sglang", max_model_len=100000)}, 100000),
        (
            Engine.SGLANG,
            {"/v1/models": models("m", owner="sglang"), "/get_server_info": {"context_length": 99000}},
            99000,
        ),
        (
            Engine.LLAMA_CPP,
            {
                "/v1/models": models("m", owner="llamacpp", meta={"n_ctx_train": 400000}),
                "/props": {"default_generation_settings": {"n_ctx": 72000}},
            },
            72000,
        ),
        (
            Engine.OLLAMA,
            {
                "/v1/models": models("m:latest", owner="library"),
                "/": "Ollama is running",
                "/api/ps": {"models": [{"name": "m:latest", "context_length": 80000}]},
            },
            80000,
        ),
        (
            Engine.OLLAMA,
            {
                "/v1/models": models("m:8b", owner="someone"),
                "/": "Ollama is running",
                "/api/ps": {"models": []},
                "/api/show": {
                    "parameters": 'stop "x"\nnum_ctx        90000',
                    "model_info": {"llama.context_length": 131072},
                },
            },
            90000,
        ),
        (
            Engine.LM_STUDIO,
            {
                "/v1/models": models("m", "text-embedding-nomic", owner="organization_owner"),
                "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 66000}]},
            },
            66000,
        ),
        (Engine.REHEARSAL, {"/v1/models": models("m", owner="hermux", context_length=131072)}, 131072),
        (Engine.UNKNOWN, {"/v1/models": [{"id": "m", "context_window": 200000}]}, 200000),
        (Engine.UNKNOWN, {"/v1/models": models("m", top_provider={"context_length": 64000})}, 64000),
        (Engine.UNKNOWN, {"/v1/models": models("m", max_model_len=True, context_length="128000")}, 128000),
    ],
    ids=lambda value: str(value) if isinstance(value, (Engine, int)) else "",
)
def test_engine_and_context(engine: Engine, routes: dict[str, object], context: int) -> None:
    with serve(routes) as server:
        found = probe(server.url)
    assert (found.ok, found.engine, found.context_length) == (True, engine, context)
    assert found.model.startswith("m")


@pytest.mark.parametrize(
    ("owner", "fix"), [("vllm", "--max-model-len 65536"), ("sglang", "--context-length"), ("x", "64,000")]
)
def test_small_context_is_refused_with_the_fix(owner: str, fix: str) -> None:
    with serve({"/v1/models": models("tiny", owner=owner, max_model_len=32768)}) as server:
        found = probe(server.url)
        declared = probe(server.url, context=70000)
    assert not found.ok
    assert "32,768" in found.problem and "64,000" in found.problem and "'tiny'" in found.problem
    assert fix in found.hint
    assert declared.ok and declared.context_length == 70000
    assert any("32,768" in note for note in declared.notes)


def test_exactly_64000_is_enough() -> None:
    with serve({"/v1/models": models("m", max_model_len=64000)}) as server:
        assert probe(server.url).ok
        assert not probe(server.url, context=63999).ok


def test_unknown_context_is_assumed_and_said() -> None:
    with serve({"/v1/models": models("m")}) as server:
        endpoint, found = check(Endpoint(server.url, "", 0, source="flags"), {})
    assert endpoint == Endpoint(f"{server.url}/v1", "m", 131072, source="flags")
    assert any("131,072 tokens are assumed" in note for note in found.notes)


# ── which model ──────────────────────────────────────────────────────────────────────────────────


def test_several_models_want_a_choice() -> None:
    with serve({"/v1/models": models("alpha", "beta", owner="vllm")}) as server:
        assert probe(server.url).models == ("alpha", "beta")
        with pytest.raises(NotReady) as refused:
            check(Endpoint(server.url, "", 0), {})
    assert "2 models" in str(refused.value)
    assert "alpha, beta" in refused.value.hint


def test_a_wrong_model_names_the_nearest() -> None:
    with serve({"/v1/models": models("qwen3-coder", "llama", owner="vllm")}) as server:
        found = probe(server.url, model="qwen3-codr")
    assert not found.ok
    assert "did you mean 'qwen3-coder'?" in found.hint


def test_a_gateway_may_hide_models() -> None:
    with serve({"/v1/models": models("a", "b")}) as server:
        found = probe(server.url, model="c")
    assert found.ok and found.model == "c"
    assert any("on trust" in note for note in found.notes)


def test_ollama_takes_a_name_without_its_tag() -> None:
    routes = {"/v1/models": models("m:latest", "n:latest", owner="library"), "/": "Ollama is running"}
    with serve(routes) as server:
        assert probe(server.url, model="m").model == "m"


@pytest.mark.parametrize("body", [{"object": "list", "data": None}, {"object": "list", "data": []}])
def test_no_model_at_all(body: object) -> None:
    with serve({"/v1/models": body, "/": "Ollama is running"}) as server:
        found = probe(server.url)
    assert not found.ok and "lists no model" in found.problem


def test_a_server_without_a_list_but_with_a_chat_route() -> None:
    with serve({"/v1/chat/completions": (400, {"error": {"message": "messages is missing"}})}) as server:
        named = probe(server.url, model="m")
        unnamed = probe(server.url)
    assert named.ok and named.url == f"{server.url}/v1" and named.model == "m"
    assert not unnamed.ok
    assert all(method == "GET" or path.endswith("/chat/completions") for method, path, _ in server.requests)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


def echo_key(handler: Handler) -> None:
    handler.reply(401, {"error": {"message": f"bad key {handler.headers.get('Authorization')}"}})


def test_a_refused_key_is_named_and_not_shown() -> None:
    with serve({"/v1/models": echo_key}) as server:
        found = probe(server.url, CANARY, key_env="MY_KEY")
    assert not found.ok
    assert "MY_KEY" in found.problem and "401" in found.problem
    assert CANARY not in repr(found)


def test_a_missing_key() -> None:
    with serve({"/v1/models": (401, {"error": "no"})}) as server:
        found = probe(server.url)
    assert "needs a key" in found.problem and "--key-env" in found.hint


def test_the_key_is_sent_as_bearer_and_only_to_this_host() -> None:
    with serve({"/v1/models": models("m")}) as other:
        away = {"Location": f"http://localhost:{other.port}/v1/models"}
        with serve({"/v1/models": (302, "", away)}) as server:
            found = probe(server.url, CANARY)
    assert server.requests[0][2]["authorization"] == f"Bearer {CANARY}"
    assert other.requests == []
    assert not found.ok and f"localhost:{other.port}" in found.problem + found.hint


def test_a_redirect_on_the_same_host_is_followed_once() -> None:
    with serve({"/api/v1/models": models("m")}) as moved:
        here = {"Location": f"{moved.url}/api/v1/models"}
        with serve({"/v1/models": (307, "", here)}) as server:
            found = probe(server.url)
    assert found.ok and found.url == f"{moved.url}/api/v1"


@pytest.mark.parametrize("name", ["sk-canary-4711", "a b", "", "X" * 65, "1KEY", "K=V"])
def test_a_key_in_place_of_a_name_is_not_repeated(name: str) -> None:
    endpoint = Endpoint("http://h", "m", 0, key_env=name)
    if not name:
        assert key_value(endpoint, {}) == ""
        return
    with pytest.raises(UsageError) as refused:
        key_value(endpoint, {})
    assert name not in str(refused.value) + refused.value.hint


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "ключ", "a\x00b", "a\nb"])
def test_a_key_that_cannot_be_sent(value: str | None) -> None:
    env = {} if value is None else {"K": value}
    with pytest.raises(NotReady) as refused:
        key_value(Endpoint("http://h", "m", 0, key_env="K"), env)
    assert "K" in str(refused.value)
    assert not value or not value.strip() or value not in str(refused.value)


def test_key_value() -> None:
    assert key_value(Endpoint("http://h", "m", 0, key_env="K"), {"K": f" {CANARY}\n"}) == CANARY


# ── what is no endpoint ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ("<!DOCTYPE html><title>Nginx &amp; friends</title>", "web page ('Nginx & friends')"),
        ({"hello": 1}, "no model list"),
        ("{torn", "no model list"),
        ("[" * 100_000, "no model list"),
        ((500, {"error": {"message": "boom\nand more"}}), "HTTP 500: boom and more"),
        ((503, {"error": {"message": "Loading model"}}), "not ready yet (HTTP 503): Loading model"),
        ((429, {"error": "slow down"}), "HTTP 429"),
        ((403, "no"), "needs a key"),
        ((404, "<html>gone</html>"), "web page"),
    ],
)
def test_what_is_no_endpoint_is_named(route: object, said: str) -> None:
    with serve({"/v1/models": route}) as server:
        found = probe(server.url)
    assert not found.ok and said in found.problem
    assert found.hint and "\n" not in text_of(found)


def test_nothing_there() -> None:
    with serve({}) as server:
        found = probe(server.url)
    assert "has no /v1/models and /models (HTTP 404)" in found.problem


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    found = probe(f"http://127.0.0.1:{port}/v1")
    assert found.problem == f"nothing listens on 127.0.0.1:{port}"


def test_an_unknown_host() -> None:
    assert "no-such-host.invalid" in probe("http://no-such-host.invalid/v1", timeout=20).problem


def test_https_asked_of_a_plain_server() -> None:
    with serve({"/v1/models": models("m")}) as server:
        found = probe(server.url.replace("http:", "https:"))
    assert "does not speak HTTPS" in found.problem and "http://" in found.hint


@contextmanager
def speaking(*pieces: bytes, pause: float = 0.0) -> Iterator[int]:
    """A socket server that sends the pieces, `pause` seconds apart, whatever it is asked; yields its port."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)

    def talk() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                continue
            with connection:
                for piece in pieces:
                    try:
                        connection.sendall(piece)
                    except OSError:
                        break
                    if over.wait(pause):
                        break

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        thread.join()
        listener.close()


def test_something_that_is_not_http() -> None:
    with speaking(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        found = probe(f"http://127.0.0.1:{port}")
    assert not found.ok and f"127.0.0.1:{port}" in found.problem


@pytest.mark.parametrize("pieces", [(b"",) * 100, (b"HTTP/1.1 200 OK\r\n", *[b"X-A: b\r\n"] * 1000)])
def test_the_deadline_holds_against_silence_and_drips(pieces: tuple[bytes, ...]) -> None:
    with speaking(*pieces, pause=0.1) as port:
        start = time.monotonic()
        found = probe(f"http://127.0.0.1:{port}", timeout=0.4)
        took = time.monotonic() - start
    assert not found.ok and "no answer" in found.problem
    assert took < 2


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serve({"/v1/models": models("m")}) as server:
        assert probe(server.url).ok


def test_probe_of_an_unusable_url_never_raises() -> None:
    found = probe(f"http://u:{CANARY}@h/v1")
    assert not found.ok and CANARY not in repr(found)


# ── check and offers ─────────────────────────────────────────────────────────────────────────────


def test_check_says_where_the_endpoint_came_from() -> None:
    with serve({"/v1/models": (401, {})}) as server, pytest.raises(NotReady) as refused:
        check(Endpoint(server.url, "", 0, source="environment (HERMUX_ENDPOINT)"), {})
    assert "environment (HERMUX_ENDPOINT)" in str(refused.value)
    assert refused.value.hint


def test_check_sends_the_named_key() -> None:
    with serve({"/v1/models": models("m")}) as server:
        check(Endpoint(server.url, "", 0, key_env="K"), {"K": CANARY})
    assert server.requests[0][2]["authorization"] == f"Bearer {CANARY}"


def test_check_passes_the_rehearsal_model_through() -> None:
    asked = Endpoint("", "", 0, kind=EndpointKind.REHEARSAL)
    assert check(asked, {})[0] is asked


def test_offers_name_the_engines_in_the_order_of_ports() -> None:
    vllm = {"/v1/models": models("m", owner="vllm")}
    ollama = {"/v1/models": models("n:1b", owner="library"), "/": "Ollama is running"}
    unknown = {"/v1/models": models("x")}
    rehearsal = {"/v1/models": models("hermux-rehearsal", owner="hermux")}
    with serve(vllm) as a, serve(ollama) as b, serve(unknown) as c, serve(rehearsal) as d, speaking(b"") as e:
        found = offer_local((b.port, c.port, d.port, e, a.port), timeout=2)
    assert [(one.engine, one.models) for one in found] == [
        (Engine.OLLAMA, ("n:1b",)),
        (Engine.VLLM, ("m",)),
    ]
    assert all("authorization" not in headers for _, _, headers in a.requests)


def test_offers_take_no_longer_than_asked() -> None:
    with speaking(*[b""] * 100, pause=0.1) as silent:
        start = time.monotonic()
        assert offer_local((silent,) * 5, timeout=0.3) == []
        assert time.monotonic() - start < 1


def test_json_shape_of_the_saved_file_has_no_key(tmp_path: Path) -> None:
    from orchestrator.store.endpoints import forget_endpoint, load_endpoint, save_endpoint

    env = {"XDG_CONFIG_HOME": str(tmp_path), "K": CANARY}
    assert load_endpoint(env) is None
    path = save_endpoint(Endpoint("http://h/v1", "m", 70000, key_env="K", source="flags"), env)
    assert path.stat().st_mode & 0o777 == 0o600
    assert CANARY not in path.read_text()
    source = f"saved as default ({path})"
    assert load_endpoint(env) == Endpoint(
        "http://h/v1", "m", 70000, key_env="K", source=source, name="default"
    )
    for damage in ("", "{", "[]", '{"schema":9}', json.dumps({"schema": 1, "base_url": 3})):
        path.write_text(damage)
        with pytest.raises(UsageError) as refused:
            load_endpoint(env)
        assert str(path) in str(refused.value)
    path.unlink()
    save_endpoint(Endpoint("http://h/v1", "m", 70000), env)
    assert forget_endpoint(env) and not forget_endpoint(env)
