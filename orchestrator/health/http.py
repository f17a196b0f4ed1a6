"""One HTTP request with a deadline that holds, for probes.

Standard library only. Redirects are not followed (urllib would hand the key to the other host), the
body is bounded, a loopback address goes past every proxy, and no key is in any error.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from orchestrator.errors import NotReady

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


def fetch(url: str, key: str = "", *, timeout: float, post: Mapping[str, Any] | None = None) -> Reply:
    """GET `url`, or POST `post` as JSON; return the answer of any status within `timeout` seconds.

    Raises NotReady when no HTTP answer came: who was asked, what happened, what to do next.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "hermux"})
    if post is not None:
        request.data = json.dumps(post).encode()
        request.add_header("Content-Type", "application/json")
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    try:
        return within(timeout, lambda: _send(request, timeout, direct=is_loopback(host)))
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        where = f"{parts.netloc}" if parts.port else f"{parts.netloc}:{_PORTS.get(parts.scheme, 80)}"
        problem, hint = _explained(cause, where, parts.scheme, timeout)
        raise NotReady(problem, hint=hint) from None


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


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Stay(urllib.request.HTTPRedirectHandler):
    """Hands a redirect back as the answer that it is."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _send(request: urllib.request.Request, timeout: float, *, direct: bool) -> Reply:
    handlers: list[urllib.request.BaseHandler] = [_Stay()]
    if direct:
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        response = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, response.read(LARGEST), headers)


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
        return f"nothing listens on {where}", "start the server, or name another: --endpoint URL"
    if isinstance(cause, (http.client.BadStatusLine, ConnectionResetError)):
        return f"{where} does not speak HTTP", f"try {other}:// in place of {scheme}://"
    if isinstance(cause, OSError):
        return f"{where} cannot be reached: {cause.strerror or cause}", "check the URL and the network"
    return f"{where} gave no usable answer ({type(cause).__name__})", "check the URL"
