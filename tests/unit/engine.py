"""A stand-in for a model server: real HTTP, and an answer to chat requests that a test shapes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL_CALL = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "hermux_check", "arguments": '{"word": "ready"}'}}]  # fmt: skip


@dataclass(slots=True)
class Engine:
    """What a server does. Each field is one thing that may be wrong with it."""

    model: str = "small"
    owner: str = "vllm"
    context: int | None = 131072
    prefix: str = "/v1"
    key: str = ""
    """The key that is wanted, "" = none."""
    text: str = "ready"
    tool_text: str = ""
    """What is said in place of a tool call; "" = a proper call."""
    call: list[dict[str, Any]] = field(default_factory=lambda: json.loads(json.dumps(TOOL_CALL)))
    refuse_tools: tuple[int, str] | None = None
    answer: tuple[int, Any] | None = None
    """(status, body) of every chat request; a str is sent as it is."""
    headers: Mapping[str, str] = field(default_factory=dict)
    usage: bool = True
    streams: bool = True
    delay: float = 0.0
    most_tools: int = 0
    """More tools than that are refused as too long a prompt; 0 = any number."""
    serial: bool = False
    """One request is answered after the other."""
    hang: bool = False
    slots: int = 0
    """Requests answered at once; one more gets a 429. 0 = any number."""
    only: str = ""
    """The only model that answers; others get a 500."""
    more: tuple[str, ...] = ()
    """Further models that are listed."""
    # what was seen
    port: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    flying: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"


class _Handler(BaseHTTPRequestHandler):
    engine: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        return

    def do_GET(self) -> None:
        engine = self.engine
        engine.paths.append(self.path)
        if self.path != f"{engine.prefix}/models":
            return self._json(404, {"error": {"message": "not found"}})
        if not self._allowed():
            return None
        size = {"max_model_len": engine.context} if engine.context else {}
        data = [{"id": name, "owned_by": engine.owner, **size} for name in (engine.model, *engine.more)]
        return self._json(200, {"object": "list", "data": data})

    def do_POST(self) -> None:
        engine = self.engine
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        engine.paths.append(self.path)
        if self.path != f"{engine.prefix}/chat/completions":
            return self._json(404, {"detail": "Not Found"})
        if not self._allowed():
            return None
        body = json.loads(raw)
        engine.bodies.append(body)
        with engine.lock:
            engine.flying += 1
            engine.most = max(engine.most, engine.flying)
            crowded = bool(engine.slots) and engine.flying > engine.slots
        try:
            self._chat(body, crowded)
        finally:
            with engine.lock:
                engine.flying -= 1
        return None

    def _allowed(self) -> bool:
        if not self.engine.key or self.headers.get("Authorization") == f"Bearer {self.engine.key}":
            return True
        said = f"wrong key {self.headers.get('Authorization', 'none')}"  # servers do repeat it
        self._json(401, {"error": {"message": said}})
        return False

    def _chat(self, body: dict[str, Any], crowded: bool) -> None:
        engine = self.engine
        if engine.hang:
            engine.stop.wait(60)
            return
        if crowded:
            self._json(429, {"error": {"message": "too many requests at once"}})
            return
        if engine.delay:
            with engine.turn if engine.serial else nullcontext():
                engine.stop.wait(engine.delay)
        if engine.answer:
            self._json(*engine.answer)
        elif body["model"] not in (engine.model, *engine.more):
            self._json(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
        elif engine.only and body["model"] != engine.only:
            self._json(500, {"error": {"message": "CUDA out of memory"}})
        elif body.get("tools") and engine.refuse_tools:
            self._json(engine.refuse_tools[0], {"error": {"message": engine.refuse_tools[1]}})
        elif engine.most_tools and len(body.get("tools") or ()) > engine.most_tools:
            self._json(400, {"error": {"message": "maximum context length is 2048 tokens"}})
        elif body.get("stream") and engine.streams:
            self._stream(self._message(body), body)
        else:
            self._json(200, self._whole(self._message(body)))

    def _message(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("tools") and not self.engine.tool_text:
            return {"role": "assistant", "content": None, "tool_calls": self.engine.call}
        return {
            "role": "assistant",
            "content": self.engine.tool_text if body.get("tools") else self.engine.text,
        }

    def _whole(self, message: dict[str, Any]) -> dict[str, Any]:
        usage = {"usage": {"prompt_tokens": 9, "completion_tokens": 1}} if self.engine.usage else {}
        return {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            **usage,
        }

    def _stream(self, message: dict[str, Any], body: dict[str, Any]) -> None:
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": message, "finish_reason": None}]}]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if self.engine.usage and (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send(200, text.encode(), "text/event-stream")

    def _json(self, status: int, content: Any) -> None:
        if isinstance(content, str):
            return self._send(status, content.encode(), "text/html")
        return self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in self.engine.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        return


@contextmanager
def running(engine: Engine, *, wrap: Any = None, host: str = "127.0.0.1") -> Iterator[Engine]:
    """Serve between entry and exit; `wrap` makes the listening socket one of TLS."""
    handler = type("Bound", (_Handler,), {"engine": engine})
    server = _Server((host, 0), handler)
    if wrap is not None:
        server.socket = wrap(server.socket)
    engine.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        engine.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()
