"""The rehearsal model: a scripted OpenAI-compatible server for one machine, in threads of the caller.

    GET  /v1/models
    POST /v1/chat/completions          stream or not
    GET  /rehearsal/requests           ?since=N  ?newest=1 (the last request of each conversation)
    POST /rehearsal/faults             {"count": 3, "status": 429, "retry_after": 3, "latency": 1.5, "cut": true}
    POST /rehearsal/reset              forgets requests, faults and unanswered messages

Everything else is 404 at once: Hermes asks a new endpoint about a dozen other routes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EADDRINUSE
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from socket import MSG_PEEK, SHUT_RDWR, socket
from socketserver import TCPServer, ThreadingMixIn
from threading import Event, Lock, Thread
from time import monotonic, strftime
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from orchestrator.errors import NotReady
from orchestrator.rehearsal import answer
from orchestrator.rehearsal.faults import Faults, parse_faults
from orchestrator.rehearsal.record import Record, Request, as_json
from orchestrator.rehearsal.script import ScriptError, Step, last_user_text, plan
from orchestrator.rehearsal.unanswered import Unanswered
from orchestrator.version import __version__

CONTEXT = 131_072
"""Tokens said in `/v1/models` unless told otherwise."""
FOR_EVER = 1e9


class RehearsalServer:
    """A rehearsal model on `host`; port 0 takes a free one. Raises NotReady if the port is taken.

    The port is bound at once, requests are answered between `start()` and `stop()` (or within `with`).
    `say` gets one line a request, from several threads.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        context: int = CONTEXT,
        log: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.context = context
        self.say = say
        self.record = Record(log)
        self.faults = Faults()
        self.unanswered = Unanswered()
        self.stopping = Event()
        try:
            self._listener = _Listener((host, port), self)
        except (OSError, OverflowError) as error:
            raise _refused(host, port, error) from error
        self._thread: Thread | None = None
        self.port: int = self._listener.server_address[1]
        self.url = f"http://{host}:{self.port}/v1"

    @property
    def requests(self) -> list[Request]:
        """The newest chat requests, oldest first."""
        return self.record.since()

    def start(self) -> RehearsalServer:
        """Answer requests from now on, in daemon threads."""
        self._thread = Thread(target=self._listener.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and end all connections, also those that hang on purpose. Takes ≤ 0.2 s."""
        self.stopping.set()
        if self._thread:
            self._listener.shutdown()
        self._listener.server_close()
        self._listener.end_connections()

    def reset(self) -> None:
        """Forget requests, faults and unanswered messages."""
        self.record.clear()
        self.faults.clear()
        self.unanswered.clear()

    def __enter__(self) -> RehearsalServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Listener(ThreadingMixIn, TCPServer):
    """One thread a connection; knows its connections, so that none outlives the server."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], rehearsal: RehearsalServer) -> None:
        self.rehearsal = rehearsal
        self.open: set[socket] = set()
        self.lock = Lock()
        super().__init__(address, _Handler)

    def end_connections(self) -> None:
        with self.lock:
            for connection in self.open:
                with suppress(OSError):
                    connection.shutdown(SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to report; a fault of ours is."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"
    server_version = f"hermux-rehearsal/{__version__}"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.rehearsal = self.server.rehearsal
        with self.server.lock:
            self.server.open.add(self.connection)

    def finish(self) -> None:
        with self.server.lock:
            self.server.open.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing for probes; chat requests say their own line."""

    def do_GET(self) -> None:
        route = urlsplit(self.path)
        if route.path == "/v1/models":
            self._json(200, answer.models(self.rehearsal.context))
        elif route.path == "/rehearsal/requests":
            self._requests(parse_qs(route.query))
        else:
            self._not_found()

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return self._json(411, answer.error(411, "rehearsal: a body needs its Content-Length"))
        data = self.rfile.read(int(length))
        routes = {
            "/v1/chat/completions": self._chat,
            "/rehearsal/faults": self._set_faults,
            "/rehearsal/reset": self._reset,
        }
        route = routes.get(urlsplit(self.path).path)
        if route is None:
            return self._not_found()
        try:
            return route(json.loads(data or b"{}"))
        except (ValueError, RecursionError) as error:
            return self._json(400, answer.error(400, f"rehearsal: {error}"))

    def _not_found(self) -> None:
        self._json(404, answer.error(404, f"rehearsal: no route {self.command} {self.path[:200]}"))

    def _requests(self, query: Mapping[str, list[str]]) -> None:
        try:
            since = int(query.get("since", ["0"])[0])
        except ValueError:
            return self._json(400, answer.error(400, "rehearsal: since is a number of a request"))
        found = self.rehearsal.record.since(since, newest=query.get("newest") == ["1"])
        return self._json(200, {"schema": 1, "requests": [as_json(request) for request in found]})

    def _set_faults(self, body: object) -> None:
        waiting = self.rehearsal.faults.add(*parse_faults(body))
        self._json(200, {"schema": 1, "waiting": waiting})

    def _reset(self, body: object) -> None:
        self.rehearsal.reset()
        self._json(200, {"schema": 1})

    def _chat(self, body: object) -> None:
        if not isinstance(body, dict) or not _are_messages(body.get("messages")):
            raise ScriptError("messages is no list of objects")
        rehearsal, said = self.rehearsal, last_user_text(body["messages"])
        request = rehearsal.record.add(body, dict(self.headers))
        step = plan(body["messages"], fresh=rehearsal.unanswered.fresh(request.conversation, said))
        fault = rehearsal.faults.take()
        step = fault.apply(step) if fault else step
        if rehearsal.say:
            rehearsal.say(_line(request, said, step))
        self._pause(step.delay)
        self._answer(body, step)
        if not step.fails:
            rehearsal.unanswered.answered(request.conversation, said)

    def _answer(self, body: Mapping[str, Any], step: Step) -> None:
        if step.status:
            self._json(step.status, answer.error(step.status, step.error), retry_after=step.retry_after)
        elif step.malformed == "notjson":
            self._send(200, b"<html><body>502 Bad Gateway</body></html>", "text/html")
        elif step.malformed == "drop":
            self._cut()
        elif step.malformed == "hang":
            self._pause(FOR_EVER)
            self._cut()
        elif body.get("stream"):
            self._stream(body, step)
        else:
            data = json.dumps(answer.completion(body, step)).encode()
            self._send(200, data, "application/json", cut=step.malformed == "midstream_drop")

    def _stream(self, body: Mapping[str, Any], step: Step) -> None:
        events = [f"data: {json.dumps(chunk)}\n\n" for chunk in answer.chunks(body, step)]
        if step.malformed == "midstream_drop":
            events = events[: max(1, len(events) // 2)]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            self._chunk(event)
        if step.malformed == "midstream_drop":
            return self._cut()
        self._chunk("data: [DONE]\n\n")
        return self._chunk("")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, status: int, body: object, *, retry_after: float | None = None) -> None:
        self._send(status, json.dumps(body).encode(), "application/json", retry_after=retry_after)

    def _send(
        self, status: int, data: bytes, kind: str, *, retry_after: float | None = None, cut: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", f"{retry_after:g}")
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._cut()

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def _pause(self, seconds: float) -> None:
        """Wait; raise ConnectionResetError as soon as the client or the server goes away."""
        end = monotonic() + seconds
        with DefaultSelector() as selector:
            selector.register(self.connection, EVENT_READ)
            while (left := end - monotonic()) > 0:
                if self.rehearsal.stopping.is_set():
                    raise ConnectionResetError("the rehearsal model stops")
                if not selector.select(min(left, 0.5)):
                    continue
                if not self.connection.recv(1, MSG_PEEK):
                    raise ConnectionResetError("the client went away")
                selector.unregister(self.connection)  # a request sent ahead: it has to wait


def _refused(host: str, port: int, error: OSError | OverflowError) -> NotReady:
    what = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", 0) == EADDRINUSE:
        what = "another program listens there"
    return NotReady(
        f"the rehearsal model cannot listen on {host}:{port}: {what}",
        hint="choose another port, or 0 for a free one: --port 0",
    )


def _are_messages(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(message, dict) for message in value)


def _line(request: Request, said: str, step: Step) -> str:
    """Return what a person at the pane reads about a request."""
    flat = " ".join(said[:400].split())
    does = f"status {step.status}" if step.status else step.malformed
    does = does or ", ".join(f"tool {tool.name}" for tool in step.tools) or f"text {step.text[:40]!r}"
    wait = f" after {step.delay:g} s" if step.delay else ""
    return f"{strftime('%H:%M:%S')} #{request.number} {len(request.messages)} messages {flat[:60]!r} → {does}{wait}"
