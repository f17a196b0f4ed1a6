"""A real HTTP server for tests: routes in a dict, a port of its own, every request kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


@dataclass(slots=True)
class Served:
    """What a test sees of the server."""

    port: int
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """(method, path, headers with names in lower case)."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _ in self.requests]


class Handler(BaseHTTPRequestHandler):
    """Answers from `routes`; what is not there is a 404 in JSON."""

    routes: Mapping[str, Any]
    served: Served

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.served.requests.append((self.command, self.path, headers))
        route = self.routes.get(self.path, (404, {"error": {"message": "not found"}}))
        if callable(route):
            route(self)
        else:
            self.reply(*(route if isinstance(route, tuple) else (200, route)))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def reply(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON, or with text as it is."""
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return


@contextmanager
def serve(routes: Mapping[str, Any]) -> Iterator[Served]:
    """Serve `routes` (path → JSON content, text, (status, content[, headers]) or a function of the handler)."""
    handler = type("Bound", (Handler,), {"routes": routes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served = Served(server.server_address[1])
    handler.served = served  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def models(*ids: str, owner: str = "somebody", **fields: Any) -> dict[str, Any]:
    """The body of a `/v1/models` answer."""
    return {"object": "list", "data": [{"id": name, "owned_by": owner, **fields} for name in ids]}
