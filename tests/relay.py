"""A real HTTP proxy for tests: passes requests for any host name on to one server, and keeps what it saw."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SKIPPED = frozenset({"transfer-encoding", "connection", "content-length", "proxy-authorization"})


@dataclass(slots=True)
class Relay:
    """`seen` are (method, URL as the client sent it, Proxy-Authorization)."""

    port: int
    seen: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def hosts(self, path: str) -> list[str]:
        """Return the host of each request for a path, in their order."""
        return [urlsplit(url).netloc for _, url, _ in self.seen if urlsplit(url).path == path]


class Handler(BaseHTTPRequestHandler):
    """Hop by hop: the whole answer is read before it is passed back."""

    relay: Relay
    target: int
    login: str

    def do_GET(self) -> None:
        given = self.headers.get("Proxy-Authorization", "")
        self.relay.seen.append((self.command, self.path, given))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.login and given != self.login:
            return self._answer(407, {"Proxy-Authenticate": 'Basic realm="test"'}, b"")
        link = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in SKIPPED}
            link.request(self.command, urlsplit(self.path).path, body, headers)
            answer = link.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in SKIPPED}
            return self._answer(answer.status, kept, answer.read())
        except OSError:
            return self._answer(502, {}, b"")
        finally:
            link.close()

    do_POST = do_GET

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return


@contextmanager
def relay(target: int, *, login: str = "") -> Iterator[Relay]:
    """Run a proxy that passes everything on to 127.0.0.1:`target`; `login` is the header that it wants."""
    found = Relay(0)
    handler = type("Bound", (Handler,), {"relay": found, "target": target, "login": login})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
