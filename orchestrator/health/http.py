"""One HTTP request with a deadline that holds, for probes.

Standard library only. Redirects are not followed (urllib would hand the key to the other host), the
body is bounded, and no key and no proxy's password is in any error. Proxies are used as a worker uses
them, see `fleet/proxy.py`: this machine is asked past all of them, also under another name.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from orchestrator.errors import NotReady
from orchestrator.fleet.proxy import is_loopback as is_loopback
from orchestrator.fleet.proxy import proxy_variable, without_login

LOOK_UP = 1.0
"""Seconds for looking up a name where only its address tells whether a proxy is to be asked."""
LARGEST = 4 << 20
"""Bytes of a body that are read; the model list of a large gateway takes 0.5 MB."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, whatever the status."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    via: str = ""
    """The variable whose proxy passed it on, "" = none."""

    def json(self) -> Any:
        """Return the body as JSON, or None when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def html(self) -> bool:
        """Whether it is a web page."""
        start = self.body[:300].lstrip().lower()
        return start.startswith((b"<!doctype html", b"<html"))


def fetch(
    url: str,
    key: str = "",
    *,
    timeout: float,
    post: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Reply:
    """GET `url`, or POST `post` as JSON; return the answer of any status within `timeout` seconds.

    Proxies are those of `env`, by default this process's. Raises NotReady when no HTTP answer came: who was
    asked, what happened, what to do next.
    """
    env = os.environ if env is None else env
    parts = urlsplit(url)
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "hermux"})
    if post is not None:
        request.data = json.dumps(post).encode()
        request.add_header("Content-Type", "application/json")
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    variable = proxy_for(url, env)
    try:
        reply = within(timeout, lambda: _send(request, timeout, proxy=env.get(variable, "")))
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if variable:
            raise _no_way(cause, parts.hostname or "", variable, env[variable]) from None
        where = f"{parts.netloc}" if parts.port else f"{parts.netloc}:{_PORTS.get(parts.scheme, 80)}"
        problem, hint = _explained(cause, where, parts.scheme, timeout)
        raise NotReady(problem, hint=hint) from None
    if variable and reply.status == 407:
        raise _no_way("407", parts.hostname or "", variable, env[variable])
    return replace(reply, via=variable)


_PORTS = {"http": 80, "https": 443}


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """Return `call()`, or raise TimeoutError after `seconds`; what hangs is left to a daemon thread.

    A socket's own timeout begins again with each byte, and a name look-up has none.
    """
    done: list[_T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="hermux-probe", daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


def proxy_for(url: str, env: Mapping[str, str]) -> str:
    """Return the variable whose proxy serves a URL, "" = none; looks the name up where that decides."""
    variable = proxy_variable(url, env)
    return "" if variable and means_this_machine(urlsplit(url).hostname or "") else variable


@lru_cache(maxsize=64)
def means_this_machine(host: str, *, timeout: float = LOOK_UP) -> bool:
    """Whether a host name leads to this machine alone; False when that is not known within `timeout` seconds."""
    if is_loopback(host):
        return True
    try:
        found = within(timeout, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_loopback(str(each[4][0])) for each in found)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Hands a redirect back as the answer that it is."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _send(request: urllib.request.Request, timeout: float, *, proxy: str) -> Reply:
    if proxy:
        _through(proxy, request)
    opener = urllib.request.build_opener(_Stay(), urllib.request.ProxyHandler({}))
    try:
        response = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, response.read(LARGEST), headers)


def _through(proxy: str, request: urllib.request.Request) -> None:
    """Send a request by way of a proxy; raises ValueError for one that is no HTTP proxy."""
    parts = urlsplit(proxy.strip() if "://" in proxy else f"http://{proxy.strip()}")
    if not parts.hostname:
        raise ValueError("no proxy's address")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"a {parts.scheme} proxy: the endpoint cannot be checked through it")
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        told = base64.b64encode(login.encode()).decode()
        request.add_header("Proxy-Authorization", f"Basic {told}")
    request.set_proxy(without_login(proxy.strip()), parts.scheme)


def _no_way(cause: object, host: str, variable: str, proxy: str) -> NotReady:
    """Return what is wrong with a proxy, without its login."""
    name = f"the proxy {without_login(proxy.strip())} ({variable})"
    past = f"unset {variable}, or go past it: export NO_PROXY={host}"
    if isinstance(cause, ValueError) and "proxy" in str(cause):
        return NotReady(f"{name} is {cause}", hint=past)
    if isinstance(cause, ConnectionRefusedError):
        return NotReady(f"{name} refuses connections", hint=past)
    if isinstance(cause, TimeoutError):
        return NotReady(f"{name} gives no answer from {host} in time", hint=past)
    if isinstance(cause, socket.gaierror):
        return NotReady(f"the host of {name} is not known ({cause.strerror})", hint=past)
    text = str(cause)
    if "407" in text:
        return NotReady(f"{name} wants a login (HTTP 407)", hint=f"put it into {variable}; or {past}")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return NotReady(
            f"the certificate of {host}, seen through {name}, is not trusted: {cause.verify_message}",
            hint="name its authority in SSL_CERT_FILE=/path/ca.pem (Hermes reads it too)",
        )
    return NotReady(f"{name} gives no way to {host}: {_bounded(cause)}", hint=past)


def _bounded(cause: object) -> str:
    text = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
    return " ".join(str(text).split())[:120]


def _explained(cause: object, where: str, scheme: str, timeout: float) -> tuple[str, str]:
    """Return what happened and what to do, in a line each."""
    other = "https" if scheme == "http" else "http"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the certificate of {where} is not trusted: {cause.verify_message}",
            "name its authority in SSL_CERT_FILE=/path/ca.pem (Hermes reads it too)",
        )
    if isinstance(cause, ssl.SSLError):
        return f"{where} does not speak HTTPS ({cause.reason})", f"try {other}:// in place of {scheme}://"
    if isinstance(cause, TimeoutError):
        return f"no answer from {where} within {timeout:.3g} s", "is the server still loading its model?"
    if isinstance(cause, socket.gaierror):
        return f"the host name in {where} is not known ({cause.strerror})", "check the URL and the network"
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens on {where}", "start the server, or give the URL of another"
    if isinstance(cause, (http.client.BadStatusLine, ConnectionResetError)):
        return f"{where} does not speak HTTP", f"try {other}:// in place of {scheme}://"
    if isinstance(cause, OSError):
        return f"{where} cannot be reached: {cause.strerror or cause}", "check the URL and the network"
    return f"{where} gave no usable answer ({type(cause).__name__})", "check the URL"
