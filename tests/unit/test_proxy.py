"""Proxies: whose requests go through one, what a worker is told, and real requests through a real proxy."""

from __future__ import annotations

import base64
import socket
from collections.abc import Mapping
from contextlib import closing

import pytest

from orchestrator.errors import NotReady
from orchestrator.fleet.proxy import (
    always_direct,
    is_loopback,
    passwords,
    proxy_variable,
    without_login,
    worker_network,
)
from orchestrator.fleet.spec import Endpoint
from orchestrator.health.endpoint import probe
from orchestrator.health.http import fetch, proxy_for
from tests.relay import relay

from .served import models, serve

PROXY = {"HTTPS_PROXY": "http://p:3128"}
CANARY = "proxy-canary-4711"


@pytest.mark.parametrize(
    ("url", "env", "variable"),
    [
        ("http://far/v1", {}, ""),
        ("http://far/v1", {"HTTPS_PROXY": " "}, ""),
        ("http://far/v1", PROXY, "HTTPS_PROXY"),
        ("https://far/v1", {"http_proxy": "p"}, "http_proxy"),
        ("http://far/v1", {"all_proxy": "p", "HTTP_PROXY": "q"}, "HTTP_PROXY"),
        ("http://localhost:1/v1", PROXY, ""),
        ("http://model.localhost/v1", PROXY, ""),
        ("http://127.4.5.6/v1", PROXY, ""),
        ("http://[::1]:8000/v1", PROXY, ""),
        ("http://[::ffff:127.0.0.1]/v1", PROXY, ""),
        ("http://far/v1", {**PROXY, "NO_PROXY": "*"}, ""),
        ("http://far/v1", {**PROXY, "NO_PROXY": "near, far"}, ""),
        ("http://FAR/v1", {**PROXY, "no_proxy": "near far."}, ""),
        ("http://far/v1", {**PROXY, "NO_PROXY": "near", "no_proxy": "far"}, ""),
        ("http://a.far.example/v1", {**PROXY, "NO_PROXY": "far.example"}, ""),
        ("http://a.far.example/v1", {**PROXY, "NO_PROXY": ".far.example"}, ""),
        ("http://a.far.example/v1", {**PROXY, "NO_PROXY": "*.far.example"}, ""),
        ("http://far.example/v1", {**PROXY, "NO_PROXY": ".far.example"}, ""),
        ("http://toofar.example/v1", {**PROXY, "NO_PROXY": "far.example"}, "HTTPS_PROXY"),
        ("http://far:8000/v1", {**PROXY, "NO_PROXY": "far:8000"}, ""),
        ("http://far:8001/v1", {**PROXY, "NO_PROXY": "far:8000"}, "HTTPS_PROXY"),
        ("https://far/v1", {**PROXY, "NO_PROXY": "far:443"}, ""),
        ("http://10.1.2.3/v1", {**PROXY, "NO_PROXY": "10.0.0.0/8"}, ""),
        ("http://11.1.2.3/v1", {**PROXY, "NO_PROXY": "10.0.0.0/8"}, "HTTPS_PROXY"),
        ("http://[fd00::7]:80/v1", {**PROXY, "NO_PROXY": "fd00::/8"}, ""),
        ("http://[fd00::7]:80/v1", {**PROXY, "NO_PROXY": "fd00::7"}, ""),
        ("http://far/v1", {**PROXY, "NO_PROXY": "10.0.0.0/99, [, :, far:x"}, "HTTPS_PROXY"),
    ],
)
def test_who_is_asked_through_a_proxy(url: str, env: Mapping[str, str], variable: str) -> None:
    assert proxy_variable(url, env) == variable


LOCAL = "localhost,127.0.0.1,::1"


@pytest.mark.parametrize(
    ("given", "caller", "direct", "told"),
    [
        ({}, {}, ["h"], {}),
        ({}, {"NO_PROXY": "x"}, [], {}),
        ({}, {"SSL_CERT_FILE": "/ca.pem"}, [], {"SSL_CERT_FILE": "/ca.pem"}),
        (
            {},
            {"http_proxy": "p", "NO_PROXY": "x"},
            ["h"],
            {"http_proxy": "p", "NO_PROXY": f"{LOCAL},x,h", "no_proxy": f"{LOCAL},x,h"},
        ),
        (
            {"HTTP_PROXY": "mine"},
            {"http_proxy": "p", "all_proxy": "q"},
            [],
            {"all_proxy": "q", "NO_PROXY": LOCAL, "no_proxy": LOCAL},
        ),
        ({"HTTP_PROXY": ""}, {"http_proxy": "p"}, [], {}),
        (
            {"no_proxy": "y"},
            {"HTTPS_PROXY": "p", "NO_PROXY": "x"},
            [],
            {"HTTPS_PROXY": "p", "NO_PROXY": f"{LOCAL},y", "no_proxy": f"{LOCAL},y"},
        ),
        (
            {},
            {"ALL_PROXY": "p", "NO_PROXY": "x,*"},
            ["h"],
            {"ALL_PROXY": "p", "NO_PROXY": "*", "no_proxy": "*"},
        ),
    ],
)
def test_what_a_worker_is_told(
    given: Mapping[str, str], caller: Mapping[str, str], direct: list[str], told: Mapping[str, str]
) -> None:
    found = worker_network(given, caller, direct)
    assert found == told
    again = worker_network({**given, **found}, caller, direct)
    assert {**given, **found, **again} == {**given, **found}, "telling it twice changes nothing"


def test_this_machine_is_named_as_its_endpoints_call_it() -> None:
    ends = [
        Endpoint(url, "m", 70000) for url in ("http://127.0.0.2:1/v1", "http://far/v1", "http://localhost/")
    ]
    assert always_direct(ends) == f"{LOCAL},127.0.0.2"
    assert not is_loopback("local") and not is_loopback("")


def test_logins_are_known_and_not_shown() -> None:
    proxy = f"http://me:{CANARY}%21@p:3128"
    assert without_login(proxy) == without_login(f"me:{CANARY}@p:3128") == "p:3128"
    assert passwords({"http_proxy": proxy}) == {f"me:{CANARY}%21", f"{CANARY}%21", f"{CANARY}!"}
    assert passwords({"http_proxy": "http://p:3128", "PATH": "a:b@c"}) == set()


def test_a_request_goes_through_the_proxy() -> None:
    login = "Basic " + base64.b64encode(f"me:{CANARY}!".encode()).decode()
    routes = {"/v1/models": models("m", max_model_len=90000)}
    with serve(routes) as served, relay(served.port, login=login) as proxy:
        env = {"ALL_PROXY": f"http://me:{CANARY}%21@127.0.0.1:{proxy.port}"}
        found = probe("http://model.test", "the-key", env=env)
        assert (found.ok, found.context_length) == (True, 90000), found.problem
        assert proxy.seen[0] == ("GET", "http://model.test/v1/models", login)
        assert served.requests[0][2]["authorization"] == "Bearer the-key"

        refused = probe("http://model.test", env={"ALL_PROXY": f"127.0.0.1:{proxy.port}"})
        assert refused.problem == f"the proxy 127.0.0.1:{proxy.port} (ALL_PROXY) wants a login (HTTP 407)"
        assert "NO_PROXY=model.test" in refused.hint


def test_this_machine_is_asked_past_a_dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under a name that only a look-up tells to be it, and whatever this process's own variables say."""
    with serve({"/v1/models": models("m")}) as served, closing(socket.socket()) as dead:
        dead.bind(("127.0.0.1", 0))
        env = {"HTTP_PROXY": f"http://127.0.0.1:{dead.getsockname()[1]}"}
        monkeypatch.setenv("http_proxy", env["HTTP_PROXY"])
        assert probe(served.url, env=env).ok
        name = socket.gethostname()
        try:
            here = {each[4][0] for each in socket.getaddrinfo(name, None)}
        except OSError:
            here = set()
        expected = "" if here and all(is_loopback(str(each)) for each in here) else "HTTP_PROXY"
        assert proxy_for(f"http://{name}/v1", env) == expected


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("http://127.0.0.1:{dead}", "the proxy 127.0.0.1:{dead} (HTTPS_PROXY) refuses connections"),
        ("socks5://me:{canary}@127.0.0.1:1080", "is a socks5 proxy"),
        ("http://", "the proxy  (HTTPS_PROXY) is no proxy's address"),
        ("http://[me:{canary}@x", "the proxy x (HTTPS_PROXY) gives no way to model.test"),
        ("http://proxy.invalid:1", "the host of the proxy proxy.invalid:1 (HTTPS_PROXY) is not known"),
    ],
)
def test_what_is_wrong_with_a_proxy_is_told(proxy: str, said: str) -> None:
    with closing(socket.socket()) as dead:
        dead.bind(("127.0.0.1", 0))
        port = dead.getsockname()[1]
        env = {"HTTPS_PROXY": proxy.format(dead=port, canary=CANARY)}
        for url in ("http://model.test/v1", "https://model.test/v1"):
            with pytest.raises(NotReady) as told:
                fetch(url, timeout=5, env=env)
            assert said.format(dead=port) in str(told.value)
            assert "NO_PROXY=model.test" in told.value.hint
            assert CANARY not in str(told.value) + told.value.hint


def test_a_gateway_error_behind_a_proxy_names_the_proxy() -> None:
    with closing(socket.socket()) as dead:
        dead.bind(("127.0.0.1", 0))
        with relay(dead.getsockname()[1]) as proxy:
            found = probe("http://model.test/v1", env={"HTTP_PROXY": proxy.url})
            assert "asked through the proxy in HTTP_PROXY, answers HTTP 502" in found.problem
