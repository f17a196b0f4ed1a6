"""A relay on this machine in front of an endpoint: passes everything on, and counts what is in flight at once."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from orchestrator.health.http import proxy_for

GATE = 20.0
"""Seconds for which the first chat request is kept back, so that others arrive and go on with it."""
HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length", "accept-encoding")
)  # fmt: skip
PIECE = 8192
SAME_TIME = 0.5
"""Seconds within which two things count as at once."""
TWICE = 1.7
"""Times the earlier one's duration from which the later one seems to have waited for it."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One chat request that went to the endpoint. Times are monotonic seconds."""

    path: str
    model: str
    with_key: bool
    sent: float
    first: float
    """When the answer's first byte came."""
    done: float
    status: int


@dataclass(slots=True)
class _Gate:
    """Lets nobody through until `count` are there, or `GATE` seconds have passed; then everybody."""

    count: int
    waiting: int = 0
    opened: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self) -> None:
        with self.lock:
            self.waiting += 1
            if self.waiting >= self.count:
                self.opened.set()
        self.opened.wait(GATE)
        self.opened.set()


class Relay:
    """Serves between `with` on `url`, which has the endpoint's own path. `key` is compared, not kept elsewhere."""

    def __init__(
        self, base_url: str, *, key: str, env: Mapping[str, str], gate: int = 2, timeout: float = 300.0
    ) -> None:
        parts = urlsplit(base_url)
        self.upstream = f"{parts.scheme}://{parts.netloc}"
        self.key = key
        self.timeout = timeout
        variable = proxy_for(base_url, env)
        proxies = {parts.scheme: env[variable]} if variable else {}
        self._opener = urllib.request.build_opener(_Stay(), urllib.request.ProxyHandler(proxies))
        self._lock = threading.Lock()
        self._gate = _Gate(gate)
        self._flying = 0
        self.most = 0
        """Chat requests at the endpoint at the same time, at most."""
        self.passed: list[Passed] = []
        handler = type("Bound", (_Handler,), {"relay": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{parts.path}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._gate.opened.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def open(self, request: urllib.request.Request) -> Any:
        """Send a request on and return the answer, of whatever status; raises OSError when none comes."""
        try:
            return self._opener.open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            return error

    def begin(self) -> float:
        """Count a chat request as in flight and return the time."""
        self._gate.enter()
        with self._lock:
            self._flying += 1
            self.most = max(self.most, self._flying)
        return time.monotonic()

    def end(self, passed: Passed) -> None:
        """Count it as done."""
        with self._lock:
            self._flying -= 1
            self.passed.append(passed)


def one_after_the_other(passed: list[Passed]) -> bool:
    """Whether of two requests sent at once the later answer began only after about twice the earlier one's time."""
    good = sorted((each for each in passed if each.status == 200), key=lambda each: each.sent)[:2]
    if len(good) < 2 or good[1].sent - good[0].sent > SAME_TIME:
        return False
    early, late = sorted(good, key=lambda each: each.done)
    whole, waited = early.done - early.sent, late.first - late.sent
    return waited > max(TWICE * whole, whole + SAME_TIME)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Handler(BaseHTTPRequestHandler):
    relay: Relay
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass(None)

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def log_message(self, *args: object) -> None:
        return

    def _pass(self, body: bytes | None) -> None:
        chat = body is not None and urlsplit(self.path).path.endswith("/chat/completions")
        request = urllib.request.Request(self.relay.upstream + self.path, data=body, method=self.command)
        for name, value in self.headers.items():
            if name.lower() not in HOP:
                request.add_unredirected_header(name, value)
        sent = self.relay.begin() if chat else time.monotonic()
        first, status = sent, 502
        try:
            with self.relay.open(request) as answer:
                status = int(answer.status)
                first = self._answer(answer, status)
        except (OSError, ValueError):
            with suppress(OSError):
                self._refuse()
        finally:
            if chat:
                self.relay.end(self._note(body or b"", sent, first, status))

    def _note(self, body: bytes, sent: float, first: float, status: int) -> Passed:
        try:
            model = str(json.loads(body).get("model", ""))
        except (ValueError, AttributeError):
            model = ""
        with_key = self.headers.get("Authorization", "") == f"Bearer {self.relay.key}"
        return Passed(urlsplit(self.path).path, model, with_key, sent, first, time.monotonic(), status)

    def _answer(self, answer: Any, status: int) -> float:
        """Pass the answer on as it comes; return when its first byte was there."""
        piece = answer.read1(PIECE)
        first = time.monotonic()
        self.send_response(status)
        for name, value in answer.headers.items():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while piece:
            self.wfile.write(piece)
            self.wfile.flush()
            piece = answer.read1(PIECE)
        return first

    def _refuse(self) -> None:
        self.close_connection = True
        body = b'{"error": {"message": "hermux doctor: the endpoint gave no answer"}}'
        self.send_response(502)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
