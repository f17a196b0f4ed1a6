"""Each trouble of an endpoint is provoked with a real server and real sockets, and named rightly."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.doctor.check import Check, State
from orchestrator.doctor.endpoint import STEPS, Examination
from orchestrator.doctor.target import Target
from orchestrator.fleet.spec import Endpoint
from tests.unit.engine import TOOL_CALL, Engine, running

KEY = "sk-doctor-0123456789abcdef"


def examine(
    url: str,
    *,
    model: str = "small",
    key: str = "",
    context: int = 0,
    env: Mapping[str, str] | None = None,
    limit: float = 10.0,
    verbatim: bool = False,
) -> dict[str, Check]:
    """Return the checks of an endpoint by name; the key is in none of them."""
    endpoint = Endpoint(url, model, context, key_env="MY_KEY" if key else "")
    variables = dict(env or {})
    found = list(Examination(Target(endpoint, key, variables, limit), variables, verbatim=verbatim).checks())
    assert [check.name for check in found] == list(STEPS)
    for check in found:
        assert not key or key not in f"{check.seen} {check.next}", check
        assert "\n" not in check.seen + check.next
        assert check.next or check.state in (State.OK, State.SKIPPED), check
    return {check.name: check for check in found}


def only_failure(checks: Mapping[str, Check]) -> Check:
    """Return the only check that failed."""
    (found,) = [check for check in checks.values() if check.failed]
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


AUTHORITY = """[ca]
default_ca = here
[here]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = {names}
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Self-signed certificates: `local` for 127.0.0.1, `other` for another host, `old` out of date."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl, "openssl makes the certificates of this test"
    for name, names, begin, end in (
        ("local", "IP:127.0.0.1", "20200101000000Z", "20991231000000Z"),
        ("other", "DNS:elsewhere.example", "20200101000000Z", "20991231000000Z"),
        ("old", "IP:127.0.0.1", "20200101000000Z", "20200102000000Z"),
    ):
        (folder / "index").write_text("")
        (folder / "serial").write_text("01\n")
        (folder / "ca.cnf").write_text(AUTHORITY.format(folder=folder, names=names))
        key, request, made = (str(folder / f"{name}.{kind}") for kind in ("key", "csr", "pem"))
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test"]
        ask = [openssl, "req", "-new", *curve, "-keyout", key, "-out", request]
        sign = [openssl, "ca", "-batch", "-config", str(folder / "ca.cnf"), "-selfsign", "-keyfile", key]
        sign += ["-in", request, "-out", made, "-startdate", begin, "-enddate", end, "-notext"]
        for command in (ask, sign):
            subprocess.run(command, capture_output=True, check=True)
    return folder


def tls(folder: Path, name: str) -> Any:
    """Return what makes a listening socket one of TLS with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return lambda bare: context.wrap_socket(bare, server_side=True)


def test_a_healthy_server() -> None:
    with running(Engine(key=KEY)) as engine:
        checks = examine(engine.url, key=KEY)
    assert {check.state for check in checks.values()} == {State.OK}, checks
    assert "vLLM" in checks["models"].seen and "131,072" in checks["context"].seen
    plain, streamed, tools = engine.bodies
    assert "stream" not in plain and "tools" not in plain
    assert streamed["stream"] and streamed["stream_options"] == {"include_usage": True}
    assert tools["tools"] and tools["stream"]


def test_a_name_that_does_not_exist() -> None:
    checks = examine("http://no-such-host.invalid:8000/v1")
    found = only_failure(checks)
    assert found.name == "connection" and "DNS" in found.seen and "no-such-host.invalid" in found.seen
    assert found.next.endswith("getent hosts no-such-host.invalid")
    assert all(checks[name].state is State.SKIPPED for name in STEPS[1:])
    assert "'connection' failed" in checks["tools"].seen


def test_nothing_listens() -> None:
    port = free_port()
    found = only_failure(examine(f"http://127.0.0.1:{port}/v1"))
    assert found.name == "connection" and "refused" in found.seen and f"sport = :{port}" in found.next


def test_a_server_that_takes_requests_and_hangs() -> None:
    with running(Engine(hang=True)) as engine:
        checks = examine(engine.url, limit=0.5)
    found = only_failure(checks)
    assert found.name == "chat" and "timeout" in found.seen and "0.5 s" in found.seen
    assert found.next.endswith("hermux doctor --timeout 180")


def test_a_host_that_takes_connections_and_says_nothing() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        found = only_failure(examine(f"https://127.0.0.1:{silent.getsockname()[1]}/v1", limit=0.5))
    assert found.name == "connection" and "TLS handshake" in found.seen and "http://" in found.next


def test_a_self_signed_certificate(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Engine(), wrap=tls(certificates, "local")) as engine:
        url = f"https://127.0.0.1:{engine.port}/v1"
        found = only_failure(examine(url))
        assert found.name == "connection" and "self-signed" in found.seen
        assert "SSL_CERT_FILE=" in found.next
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "local.pem"))  # what it told
        checks = examine(url)
    assert {check.state for check in checks.values()} == {State.OK}, checks


def test_a_certificate_for_another_host(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "other.pem"))
    with running(Engine(), wrap=tls(certificates, "other")) as engine:
        found = only_failure(examine(f"https://127.0.0.1:{engine.port}/v1"))
    assert "for another host" in found.seen and "https://NAME/v1" in found.next


def test_a_certificate_out_of_date(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "old.pem"))
    with running(Engine(), wrap=tls(certificates, "old")) as engine:
        found = only_failure(examine(f"https://127.0.0.1:{engine.port}/v1"))
    assert "out of date" in found.seen and "date" in found.next


def test_http_spoken_to_a_tls_port(certificates: Path) -> None:
    with running(Engine(), wrap=tls(certificates, "local")) as engine:
        found = only_failure(examine(f"http://127.0.0.1:{engine.port}/v1"))
    assert found.name == "models" and "TLS port" in found.seen
    assert f"hermux endpoint set https://127.0.0.1:{engine.port}/v1 -m small" in found.next


def test_tls_spoken_to_a_plain_port() -> None:
    with running(Engine()) as engine:
        found = only_failure(examine(f"https://127.0.0.1:{engine.port}/v1"))
    assert found.name == "connection" and "plain HTTP" in found.seen and "http://" in found.next


def test_a_key_is_needed_and_a_wrong_one_is_refused() -> None:
    with running(Engine(key=KEY)) as engine:
        none = only_failure(examine(engine.url))
        wrong = only_failure(examine(engine.url, key="sk-wrong-9876543210"))
    assert "needs a key" in none.seen and "--key-env" in none.next
    assert "refuses the key in MY_KEY" in wrong.seen and "401" in wrong.seen


def test_a_key_that_only_the_chat_route_refuses() -> None:
    refusal = (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with running(Engine(answer=refusal)) as engine:
        found = only_failure(examine(engine.url, key=KEY))
    assert found.name == "chat" and "401" in found.seen and "export MY_KEY=" in found.next
    assert "[redacted]" in found.seen


def test_a_key_without_the_right() -> None:
    with running(Engine(answer=(403, {"error": {"message": "not for you"}}))) as engine:
        found = only_failure(examine(engine.url, key=KEY))
    assert "forbids" in found.seen and "403" in found.seen


@pytest.mark.parametrize(
    ("path", "said"), [("", "/v1 is missing"), ("/v1/v1", "/v1 is there twice")], ids=["missing", "twice"]
)
def test_v1_is_missing_or_there_twice(path: str, said: str) -> None:
    """A worker's URL is used as it stands; that of the next `spawn` is repaired."""
    with running(Engine()) as engine:
        url = f"http://127.0.0.1:{engine.port}{path}"
        checks = examine(url, verbatim=True)
        assert f"hermux endpoint set {engine.url} -m small" in checks["models"].next
        endpoint = Endpoint(url, "small", 131072)
        with pytest.raises(Exception, match=said) as raised:
            from orchestrator.doctor.target import ask

            ask(Target(endpoint, "", {}, 5.0, models=("small",)))
        assert f"hermux endpoint set {engine.url} -m small" in getattr(raised.value, "hint", "")
        repaired = examine(url)
    assert {check.state for check in repaired.values()} == {State.OK}
    assert engine.url in repaired["models"].seen


def test_an_unknown_model() -> None:
    with running(Engine(model="qwen3-32b")) as engine:
        found = only_failure(examine(engine.url, model="qwen3-23b"))
    assert found.name == "models" and "qwen3-23b" in found.seen and "qwen3-32b" in found.next


def test_an_unknown_model_where_the_list_is_not_complete() -> None:
    with running(Engine(model="gpt-a", owner="somebody")) as engine:
        checks = examine(engine.url, model="gpt-b")
    found = only_failure(checks)
    assert checks["models"].state is State.WARN
    assert found.name == "chat" and "'gpt-b' is not known there (HTTP 404)" in found.seen
    assert found.next == f"hermux endpoint set {engine.url} -m gpt-a"


HTML = "<!doctype html><html><title>Sign in</title></html>"


@pytest.mark.parametrize(
    ("answer", "said", "next_step"),
    [
        ((200, {"id": "x", "object": "chat.completion"}), "no choices", "log"),
        ((200, {"choices": []}), "no choices", "log"),
        ((200, HTML), "web page (HTML)", "hermux endpoint set"),
        ((200, "Bad gateway"), "no JSON object but 'Bad gateway'", "hermux endpoint show"),
        (
            (200, {"error": {"message": "upstream is down"}}),
            "200 with an error in it: upstream is down",
            "log",
        ),
        ((200, {"choices": [{"index": 0}]}), "no message", "hermux endpoint show"),
        (
            (429, {"error": {"message": "slow down"}}),
            "over its limit (HTTP 429): slow down",
            "hermux scale 1",
        ),
        ((500, {"error": {"message": "boom"}}), "fails (HTTP 500): boom", "server's log"),
        ((503, {"error": {"message": "loading model"}}), "not ready or overloaded (HTTP 503)", "wait"),
        (
            (400, {"error": {"message": "This model's maximum context length is 8 tokens"}}),
            "too long",
            "context",
        ),
        ((302, {}), "sends chat requests elsewhere (HTTP 302", "hermux endpoint set"),
        ((418, {"error": "teapot"}), "HTTP 418", "log"),
    ],
)
def test_answers_that_are_none(answer: tuple[int, Any], said: str, next_step: str) -> None:
    with running(Engine(answer=answer)) as engine:
        checks = examine(engine.url)
    found = only_failure(checks)
    assert found.name == "chat" and said in found.seen and next_step in found.next, found
    assert checks["tools"].state is State.SKIPPED


def test_a_limit_that_says_when() -> None:
    with running(Engine(answer=(429, {"error": "later"}), headers={"Retry-After": "17"})) as engine:
        assert "in 17 s" in only_failure(examine(engine.url)).next


def test_a_server_that_does_not_stream_or_count() -> None:
    with running(Engine(streams=False)) as engine:
        checks = examine(engine.url)
    assert "does not stream" in checks["stream"].seen
    with running(Engine(usage=False)) as engine:
        checks = examine(engine.url)
    assert [checks[name].state for name in ("chat", "stream", "tools")] == [State.WARN, State.WARN, State.OK]
    assert "stream_options.include_usage" in checks["stream"].seen


@pytest.mark.parametrize(
    ("owner", "model", "text", "flag"),
    [
        ("vllm", "Qwen/Qwen3-8B", '<tool_call>\n{"name": "hermux_check", "arguments": {}}\n</tool_call>',
         "--enable-auto-tool-choice --tool-call-parser hermes"),
        ("vllm", "Qwen3-Coder-30B", "<tool_call>\n<function=hermux_check>", "--tool-call-parser qwen3_coder"),
        ("vllm", "m", '[TOOL_CALLS] [{"name": "hermux_check"}]', "--tool-call-parser mistral"),
        ("vllm", "Llama-3.3-70B", '{"name": "hermux_check", "parameters": {"word": "ready"}}', "--tool-call-parser llama3_json"),
        ("sglang", "Qwen2.5-7B", '<tool_call>{"name": "hermux_check"}</tool_call>', "SGLang with --tool-call-parser qwen25"),
        ("sglang", "m", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function", "SGLang with --tool-call-parser deepseekv3"),
        ("llamacpp", "m", '<tool_call>{"name": "hermux_check"}</tool_call>', "llama-server with --jinja"),
        ("somebody", "gpt-oss-20b", "<|channel|>commentary to=functions.hermux_check", "vLLM --enable-auto-tool-choice"),
    ],
)  # fmt: skip
def test_a_tool_call_as_text(owner: str, model: str, text: str, flag: str) -> None:
    with running(Engine(model=model, owner=owner, tool_text=text)) as engine:
        checks = examine(engine.url, model=model)
    found = only_failure(checks)
    assert found.name == "tools" and "prints a tool call as text" in found.seen
    assert flag in found.next, found.next


VLLM_SAYS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


@pytest.mark.parametrize(
    ("owner", "status", "said", "flag"),
    [
        ("vllm", 400, VLLM_SAYS, "--enable-auto-tool-choice --tool-call-parser mistral"),
        ("llamacpp", 500, "tools param requires --jinja flag", "--jinja"),
        ("library", 400, "registry.ollama.ai/library/x does not support tools", "--jinja"),
    ],
)
def test_tools_are_refused(owner: str, status: int, said: str, flag: str) -> None:
    model = "Mistral-Small"
    with running(Engine(model=model, owner=owner, refuse_tools=(status, said))) as engine:
        found = only_failure(examine(engine.url, model=model))
    assert found.name == "tools" and "tools are refused" in found.seen and flag in found.next


def test_tool_calls_that_are_not_right() -> None:
    as_object = json.loads(json.dumps(TOOL_CALL))
    as_object[0]["function"]["arguments"] = {"word": "ready"}
    cut = json.loads(json.dumps(TOOL_CALL))
    cut[0]["function"]["arguments"] = '{"word": "re'
    for call, said in ((as_object, "as an object"), (cut, "cuts or breaks")):
        with running(Engine(call=call)) as engine:
            found = only_failure(examine(engine.url))
        assert found.name == "tools" and said in found.seen
    with running(Engine(tool_text="I would rather talk.")) as engine:
        checks = examine(engine.url)
    assert checks["tools"].state is State.WARN and "in words" in checks["tools"].seen


@pytest.mark.parametrize(
    ("told", "configured", "state", "said"),
    [
        (32768, 0, State.FAIL, "the server gives 32,768 tokens (none configured)"),
        (32768, 131072, State.FAIL, "the server gives 32,768 tokens (configured: 131,072)"),
        (100000, 131072, State.FAIL, "131,072 tokens are configured, the server gives 100,000"),
        (64000, 64000, State.OK, "64,000"),
        (None, 0, State.WARN, "does not say"),
        (None, 8000, State.FAIL, "configured: 8,000"),
        (None, 80000, State.OK, "configured: 80,000"),
    ],
)
def test_context(told: int | None, configured: int, state: State, said: str) -> None:
    with running(Engine(context=told)) as engine:
        checks = examine(engine.url, context=configured)
    assert checks["context"].state is state and said in checks["context"].seen, checks["context"]
    if told == 32768:
        assert "--max-model-len 65536" in checks["context"].next
    assert checks["tools"].state is State.OK, "what the context says is no reason to stop"


def test_several_models_and_none_chosen() -> None:
    with running(Engine(more=("large",))) as engine:
        found = only_failure(examine(engine.url, model=""))
    assert "2 models" in found.seen and found.next == f"hermux endpoint set {engine.url} -m small"


# proxies


@contextmanager
def proxy(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A proxy that gives every request the same answer; b"" hangs up."""
    seen: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            with link:
                seen.append(link.recv(65536))
                if seen[-1]:
                    link.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LOGIN = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def test_loopback_goes_past_every_proxy() -> None:
    with proxy(REFUSED) as (port, seen), running(Engine()) as engine:
        checks = examine(engine.url, env={"HTTP_PROXY": f"http://127.0.0.1:{port}", "https_proxy": "x"})
    assert {check.state for check in checks.values()} == {State.OK}
    assert "past HTTP_PROXY" in checks["connection"].seen
    assert not seen


def test_a_proxy_that_refuses_the_way() -> None:
    login = "user:pass-word-1"
    for answer, said in (
        (REFUSED, "gives no way"),
        (LOGIN, "wants a login (HTTP 407)"),
        (b"", "gives no way"),
    ):
        with proxy(answer) as (port, seen):
            env = {"HTTPS_PROXY": f"http://{login}@127.0.0.1:{port}"}
            found = only_failure(examine("https://model.example.com/v1", env=env))
        assert found.name == "connection" and said in found.seen, found
        assert f"127.0.0.1:{port} (HTTPS_PROXY)" in found.seen and "NO_PROXY=model.example.com" in found.next
        assert "pass-word-1" not in found.seen + found.next
        (asked,) = [each for each in seen if each]
        assert asked.startswith(b"CONNECT model.example.com:443 ")
        assert b"Proxy-Authorization: Basic " + b64encode(login.encode()) in asked


def test_a_proxy_that_is_not_there() -> None:
    found = only_failure(
        examine("http://model.example.com/v1", env={"HTTP_PROXY": f"127.0.0.1:{free_port()}"})
    )
    assert "HTTP_PROXY" in found.seen and "refused" in found.seen and "unset HTTP_PROXY" in found.next
    found = only_failure(
        examine("http://model.example.com/v1", env={"ALL_PROXY": "http://no-proxy.invalid:1"})
    )
    assert "DNS" in found.seen and "ALL_PROXY" in found.seen
    found = only_failure(examine("http://model.example.com/v1", env={"HTTP_PROXY": "http://:x"}))
    assert "holds no proxy's address" in found.seen


def test_a_proxy_that_eats_the_request() -> None:
    """The server is this machine by another address than loopback: past the proxy it answers."""
    address = own_address()
    page = b"<html><title>Blocked</title></html>"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page)
    with running(Engine(), host=address) as engine, proxy(answer) as (port, _):
        url = f"http://{address}:{engine.port}/v1"
        found = only_failure(examine(url, env={"HTTP_PROXY": f"http://127.0.0.1:{port}"}))
        past = examine(url, env={"HTTP_PROXY": f"http://127.0.0.1:{port}", "NO_PROXY": address})
    assert found.name == "models" and "is in the way" in found.seen and "past it: HTTP 200" in found.seen
    assert f"export NO_PROXY={address}" in found.next
    assert {check.state for check in past.values()} == {State.OK}


def own_address() -> str:
    """Return an address of this machine that is none of loopback."""
    import psutil

    found = [
        each.address
        for name, addresses in psutil.net_if_addrs().items()
        for each in addresses
        if each.family == socket.AF_INET and not each.address.startswith("127.") and name != "lo"
    ]
    assert found, "this test needs a network interface beside loopback"
    return found[0]
