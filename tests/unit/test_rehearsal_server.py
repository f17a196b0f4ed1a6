"""The rehearsal model over HTTP, as a client sees it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, IncompleteRead, RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import NotReady
from orchestrator.rehearsal.record import KEPT, Record, Request
from orchestrator.rehearsal.script import users
from orchestrator.rehearsal.server import RehearsalServer
from tests.until import until

TOOLS = {"reasoning": "let me see", "text": "two", "tools": [{"name": "terminal", "args": {"a": "é"}}] * 2}


def user_texts(request: Request) -> list[str]:
    """Return the texts of a request's user messages, oldest first."""
    return [text for _, text in users(request.messages)][::-1]


@pytest.fixture
def server() -> Iterator[RehearsalServer]:
    with RehearsalServer() as running:
        yield running


def connect(server: RehearsalServer, timeout: float = 5) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", server.port, timeout=timeout)


def call(server: RehearsalServer, path: str, body: object = None) -> tuple[int, Any]:
    connection = connect(server)
    connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    data = json.loads(answer.read())
    connection.close()
    return answer.status, data


def chat(server: RehearsalServer, said: str, **more: object) -> tuple[int, Any]:
    return call(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": said}], **more})


def raw(server: RehearsalServer, said: str, *, timeout: float = 5, **more: object) -> bytes:
    """Return the body of an answer that may break off."""
    connection = connect(server, timeout)
    body = {"messages": [{"role": "user", "content": said}], **more}
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    return connection.getresponse().read()


def script(*steps: dict[str, Any]) -> str:
    return json.dumps({"steps": steps})


def events(data: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_models_say_who_answers_and_how_much_fits() -> None:
    with RehearsalServer(context=2_000_000) as server:
        status, models = call(server, "/v1/models")
        assert (status, server.url) == (200, f"http://127.0.0.1:{server.port}/v1")
    (model,) = models["data"]
    assert (model["id"], model["owned_by"]) == ("hermux-rehearsal", "hermux")
    assert model["context_length"] == 2_000_000


@pytest.mark.parametrize("path", ["/", "/models", "/props", "/api/tags", "/v1/models/x", "/version"])
def test_other_routes_are_not_found(server: RehearsalServer, path: str) -> None:
    assert call(server, path)[0] == 404
    assert call(server, path, {})[0] == 404


@pytest.mark.parametrize("body", [[], {}, {"messages": "hi"}, {"messages": ["hi"]}])
def test_a_request_without_messages_is_refused(server: RehearsalServer, body: object) -> None:
    status, answer = call(server, "/v1/chat/completions", body)
    assert status == 400
    assert "messages" in answer["error"]["message"]


def test_a_plain_prompt_is_answered_as_one_object(server: RehearsalServer) -> None:
    status, answer = chat(server, "hello")
    assert status == 200
    (choice,) = answer["choices"]
    assert choice["message"]["content"].endswith("You said: hello")
    assert choice["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] == sum(
        answer["usage"][kind] for kind in ("prompt_tokens", "completion_tokens")
    )


def test_tools_are_asked_for_as_one_object(server: RehearsalServer) -> None:
    (choice,) = chat(server, script(TOOLS))[1]["choices"]
    calls = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["reasoning_content"] == "let me see"
    assert [json.loads(each["function"]["arguments"]) for each in calls] == [{"a": "é"}] * 2
    assert len({each["id"] for each in calls}) == 2


def test_a_stream_adds_up_to_the_same(server: RehearsalServer) -> None:
    chunks = events(raw(server, script(TOOLS), stream=True, stream_options={"include_usage": True}))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "two"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "let me see"
    calls = [part for delta in deltas for part in delta.get("tool_calls", ())]
    arguments = [
        "".join(part["function"]["arguments"] for part in calls if part["index"] == n) for n in (0, 1)
    ]
    assert [json.loads(each) for each in arguments] == [{"a": "é"}] * 2
    assert len({part["id"] for part in calls if "id" in part}) == 2
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["completion_tokens"] > 0


def test_usage_is_streamed_only_when_asked_for(server: RehearsalServer) -> None:
    assert not any("usage" in chunk for chunk in events(raw(server, "hello", stream=True)))


def test_one_connection_serves_many_requests(server: RehearsalServer) -> None:
    connection = connect(server)
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "hi"}]})
    for _ in range(3):
        connection.request("POST", "/v1/chat/completions", body)
        assert events(connection.getresponse().read())
    connection.request("GET", "/nowhere")
    assert connection.getresponse().read()


def test_a_status_comes_with_its_words_and_its_wait(server: RehearsalServer) -> None:
    call(server, "/rehearsal/faults", {"count": 2, "status": 429, "retry_after": 3})
    assert "rate limit" in chat(server, "hello")[1]["error"]["message"]
    connection = connect(server)
    connection.request("POST", "/v1/chat/completions", '{"messages": []}')
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Retry-After")) == (429, "3")
    assert chat(server, "hello")[0] == 200
    assert chat(server, script({"status": 500, "error": "boom"}))[1]["error"]["message"] == "boom"


def test_malformed_answers(server: RehearsalServer) -> None:
    assert "choices" not in chat(server, script({"malformed": "nochoices"}))[1]
    (chunk,) = events(raw(server, script({"malformed": "nochoices"}), stream=True))
    assert chunk["choices"] == []
    assert raw(server, script({"malformed": "notjson"})).startswith(b"<html>")
    with pytest.raises(RemoteDisconnected):
        raw(server, script({"malformed": "drop"}))


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_is_cut_in_the_middle(server: RehearsalServer, stream: bool) -> None:
    with pytest.raises(IncompleteRead) as scripted:
        raw(server, script({"text": "x" * 500, "malformed": "midstream_drop"}), stream=stream)
    assert b"x" in scripted.value.partial
    call(server, "/rehearsal/faults", {"cut": True})
    with pytest.raises(IncompleteRead):
        raw(server, "hello", stream=stream)
    assert raw(server, "hello", stream=stream)


def test_a_delay_and_a_latency_add_up(server: RehearsalServer) -> None:
    call(server, "/rehearsal/faults", {"latency": 0.1})
    start = time.monotonic()
    assert chat(server, script({"text": "late", "delay": 0.1}))[0] == 200
    assert time.monotonic() - start >= 0.2


def test_a_hanging_answer_never_comes_and_stop_ends_it() -> None:
    with RehearsalServer() as server:
        with pytest.raises(TimeoutError):
            raw(server, script({"malformed": "hang"}), timeout=0.1)
        held = connect(server, 5)
        held.request("POST", "/v1/chat/completions", json.dumps({"messages": server.requests[0].messages}))
    with pytest.raises((HTTPException, OSError)):
        held.getresponse()


def test_a_client_that_leaves_ends_its_thread() -> None:
    with RehearsalServer() as server:
        before = threading.active_count()
        with pytest.raises(TimeoutError):
            raw(server, script({"delay": 60, "text": "late"}), timeout=0.1)
        until(lambda: threading.active_count() <= before, 5)


def test_a_failed_script_is_not_played_again_when_merged(server: RehearsalServer) -> None:
    failing = script({"status": 401})
    assert chat(server, failing)[0] == 401
    status, answer = chat(server, f"{failing}\n\nhello")
    assert status == 200
    assert answer["choices"][0]["message"]["content"].endswith("You said: hello")


def test_requests_are_recorded_without_the_key(server: RehearsalServer, tmp_path: Path) -> None:
    connection = connect(server)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"function": {}}]}
    connection.request(
        "POST", "/v1/chat/completions", json.dumps(body), {"Authorization": "Bearer sk-canary-1234"}
    )
    connection.getresponse().read()
    chat(server, "second")
    status, answer = call(server, "/rehearsal/requests?since=0")
    assert (status, [each["number"] for each in answer["requests"]]) == (200, [1, 2])
    assert "sk-canary" not in json.dumps(answer)
    assert answer["requests"][0]["headers"]["authorization"].startswith("14 characters, sha256 ")
    assert [each["number"] for each in call(server, "/rehearsal/requests?since=1")[1]["requests"]] == [2]
    assert call(server, "/rehearsal/requests?since=x")[0] == 400
    call(server, "/rehearsal/faults", {"count": 9, "status": 500})
    assert call(server, "/rehearsal/reset", {})[0] == 200
    assert server.requests == []
    assert chat(server, "hello")[0] == 200


def test_the_newest_request_of_a_conversation_tells_in_how_many_messages_a_number_stands() -> None:
    record, system = Record(), {"role": "system", "content": "worker a"}
    messages: list[dict[str, Any]] = [system]
    for number in range(500):
        messages = [*messages, {"role": "user", "content": f"<{number}>"}]
        record.add({"messages": messages}, {})
        messages = [*messages, {"role": "assistant", "content": "ok"}]
    record.add({"messages": [{"role": "user", "content": "another"}]}, {})
    newest, other = record.since(newest=True)
    counts = Counter(n for text in user_texts(newest) for n in set(re.findall(r"<(\d+)>", text)))
    assert counts == {str(number): 1 for number in range(500)}
    assert user_texts(other) == ["another"]


def test_the_record_is_bounded_and_keeps_an_equal_message_once() -> None:
    record = Record()
    for number in range(KEPT + 10):
        record.add(
            {"messages": [{"role": "system", "content": "same"}, {"role": "user", "content": number}]}, {}
        )
    kept = record.since()
    assert [kept[0].number, kept[-1].number, len(kept)] == [11, KEPT + 10, KEPT]
    assert kept[0].messages[0] is kept[-1].messages[0]


def test_a_taken_port_is_a_clear_error(server: RehearsalServer) -> None:
    with pytest.raises(NotReady, match=str(server.port)):
        RehearsalServer(server.port)


def test_a_log_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="no-such-folder"):
        RehearsalServer(log=tmp_path / "no-such-folder" / "log")


def test_a_megabyte_arrives_whole(server: RehearsalServer) -> None:
    said = "é{" * 500_000
    assert chat(server, said)[0] == 200
    assert user_texts(server.requests[0]) == [said]


def test_the_command_says_its_address_and_ends_on_sigterm(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "orchestrator.rehearsal", "--context", "70000", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        found = re.fullmatch(r"rehearsal model on http://127\.0\.0\.1:(\d+)/v1\n", first)
        assert found
        connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=5)
        connection.request(
            "POST", "/v1/chat/completions", json.dumps({"messages": [{"role": "user", "content": "hé"}]})
        )
        assert connection.getresponse().status == 200
        assert "#1 1 messages 'hé'" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["messages"] == [{"role": "user", "content": "hé"}]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found[1])), 1)
