"""The plugin as Hermes uses it: copied somewhere, imported by path, called with keywords."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orchestrator.hermes.home import PLUGIN_SOURCE
from orchestrator.hermes.plugin import hooks, text
from orchestrator.hermes.plugin.feed import MAX_LINE, encode
from orchestrator.hermes.plugin.owner import find_owner
from orchestrator.hermes.plugin.turns import BATCH, KEPT, save_turn

KEY = "sk-canary-0123456789"
SESSION, TURN = "20261129_120541_458a22", "20261129_120541_458a22:20261129_120541_458a22:a7cb0b9b"
COMMON = {"session_id": SESSION, "turn_id": TURN, "telemetry_schema_version": "hermes.observer.v1"}


class Context:
    """What Hermes hands to `register`: it keeps callbacks by hook name."""

    def __init__(self) -> None:
        self.hooks: dict[str, Callable[..., Any]] = {}

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        self.hooks[name] = callback


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker's folder, with the environment that its launch script gives to Hermes."""
    folder = tmp_path / "workers" / "coder-1"
    (folder / "attempts" / "3").mkdir(parents=True)
    (folder / "attempts" / "3" / "pid").write_text(f"{os.getpid()}\n")
    os.mkfifo(tmp_path / "wake")
    for name, value in {
        "HERMUX_DIR": str(folder),
        "HERMUX_ATTEMPT": "3",
        "HERMUX_WAKE": str(tmp_path / "wake"),
        "OPENAI_API_KEY": KEY,
    }.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[ModuleType]:
    """The plugin imported as Hermes 0.19 does it (hermes_cli/plugins.py, _load_directory_module)."""
    home = tmp_path / "plugins" / "hermux"
    shutil.copytree(PLUGIN_SOURCE, home)
    name = "hermes_plugins.hermux"
    spec = importlib.util.spec_from_file_location(
        name, home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        for loaded in [key for key in sys.modules if key.startswith(name)]:
            del sys.modules[loaded]


@pytest.fixture
def context(worker: Path, plugin: ModuleType) -> Context:
    context = Context()
    plugin.register(context)
    return context


def lines(worker: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (worker / "events.jsonl").read_bytes().splitlines()]


def test_it_imports_nothing_but_the_standard_library() -> None:
    for path in PLUGIN_SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module or "")
            assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), path


def test_loading_is_reported_with_pid_and_attempt(context: Context, worker: Path) -> None:
    (first,) = lines(worker)
    assert first["event"] == "plugin_loaded"
    assert (first["v"], first["pid"], first["attempt"]) == (1, os.getpid(), 3)
    assert set(context.hooks) == set(hooks.HANDLERS)
    assert stat.S_IMODE((worker / "events.jsonl").stat().st_mode) == 0o600


def test_only_hooks_that_this_hermes_knows_are_registered(
    worker: Path, plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ModuleType("hermes_cli.plugins")
    known.__dict__["VALID_HOOKS"] = {"pre_llm_call", "on_session_end", "pre_verify"}
    monkeypatch.setitem(sys.modules, "hermes_cli.plugins", known)
    context = Context()
    plugin.register(context)
    assert set(context.hooks) == {"pre_llm_call", "on_session_end"}


def test_a_turn_leaves_receipt_answer_and_tools(context: Context, worker: Path) -> None:
    call = context.hooks
    message, answer = "räksmörgås\nline two", "done: " + KEY
    call["pre_llm_call"](**COMMON, user_message=message, platform="cli", model="m")
    call["pre_api_request"](**COMMON, user_message=message, platform="cli", api_call_count=1, model="m")
    call["pre_tool_call"](
        **COMMON, tool_name="terminal", args={"command": f"echo {KEY}\nls"}, tool_call_id="call_1"
    )
    call["post_llm_call"](**COMMON, user_message=message, assistant_response=answer, platform="cli")
    start, request, tool, end = lines(worker)[1:]
    assert start["sha256"] == request["sha256"] == end["sha256"] == text.sha256(message)
    assert start["bytes"] == len(message.encode())
    assert start["preview"] == "räksmörgås line two"
    assert request["call"] == 1
    assert tool["summary"] == "echo [redacted] ls"
    assert {line["platform"] for line in (start, request, tool, end)} == {"cli"}
    assert {line["session"] for line in (start, request, tool, end)} == {SESSION}
    turn = json.loads((worker / end["answer"]).read_bytes())
    assert turn["answer"] == "done: [redacted]"
    assert (turn["user"], turn["tools"], turn["turn"]) == (message, ["terminal"], TURN)
    assert turn["schema"] == 1 and turn["truncated"] is False
    assert stat.S_IMODE((worker / end["answer"]).stat().st_mode) == 0o600


def test_a_turn_that_only_began_says_what_was_asked(context: Context, worker: Path) -> None:
    message = f"line one\nuse {KEY} " + "x" * 500
    context.hooks["pre_llm_call"](**COMMON, user_message=message, platform="cli", model="m")
    (file,) = (worker / "turns").iterdir()
    turn = json.loads(file.read_bytes())
    assert turn["user"] == message.replace(KEY, "[redacted]")
    assert (turn["done"], turn["answer"], turn["attempt"], turn["platform"]) == (False, "", 3, "cli")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    context.hooks["post_llm_call"](**COMMON, user_message=message, assistant_response="ok", platform="cli")
    after = json.loads(file.read_bytes())
    assert (after["done"], after["answer"], after["began"]) == (True, "ok", turn["began"])
    assert list((worker / "turns").iterdir()) == [file]


def test_a_turn_goes_on_where_its_text_cannot_be_kept(context: Context, worker: Path) -> None:
    (worker / "turns").write_text("in the way")
    context.hooks["pre_llm_call"](**COMMON, user_message="hello", platform="cli")
    assert lines(worker)[-1]["event"] == "pre_llm_call"


@pytest.mark.parametrize(
    ("hook", "keywords", "fields"),
    [
        ("api_request_error",
         {"status_code": 401, "reason": "auth", "retryable": False, "retry_count": 0, "max_retries": 3,
          "error": {"type": "E", "message": "key " + KEY}},
         {"status": 401, "reason": "auth", "retryable": False, "retry": 0, "max_retries": 3,
          "error": "key [redacted]"}),
        ("api_request_error", {"status_code": None, "error": "refused"}, {"error": "refused"}),
        ("post_api_request",
         {"api_call_count": 2, "finish_reason": "stop", "api_duration": 0.18848,
          "usage": {"input_tokens": 5, "output_tokens": 6, "cache_read_tokens": 0, "cache_write_tokens": 0,
                    "reasoning_tokens": 1}},
         {"call": 2, "finish_reason": "stop", "seconds": 0.188,
          "usage": {"in": 5, "out": 6, "cache_read": 0, "cache_write": 0, "reasoning": 1}}),
        ("pre_tool_call",
         {"tool_name": "clarify", "args": {"question": "Which?", "choices": ["a", "b"]}},
         {"question": "Which?", "choices": ["a", "b"], "questions": 1}),
        ("pre_tool_call",  # the form of Hermes 0.22
         {"tool_name": "clarify", "args": {"questions": [{"question": "One?", "choices": ["x"]},
                                                         {"question": "Two?"}]}},
         {"question": "One?", "choices": ["x"], "questions": 2}),
        ("post_tool_call", {"tool_name": "terminal", "status": "ok", "duration_ms": 7,
                            "result": json.dumps({"output": f"a {KEY}\nb " + "x" * 300, "exit_code": 0})},
         {"status": "ok", "ms": 7, "result": "a [redacted] b " + "x" * 184 + "…"}),
        ("pre_tool_call", {"tool_name": "delegate_task", "args": {"tasks": [{}, {}]}}, {"summary": "2 tasks"}),
        ("on_session_end", {"completed": True, "interrupted": False, "failed": False,
                            "turn_exit_reason": "text_response"},
         {"completed": True, "interrupted": False, "failed": False, "reason": "text_response"}),
    ],
)  # fmt: skip
def test_fields(
    context: Context, worker: Path, hook: str, keywords: dict[str, Any], fields: dict[str, Any]
) -> None:
    context.hooks[hook](**COMMON, **keywords, some_new_keyword=object())
    line = lines(worker)[-1]
    assert line["event"] == hook
    assert {key: line.get(key) for key in fields} == fields


def test_approvals_and_children_name_their_session_differently(context: Context, worker: Path) -> None:
    context.hooks["pre_llm_call"](**COMMON, user_message="x", platform="cli")
    context.hooks["pre_approval_request"](
        session_key=SESSION, turn_id=TURN, surface="cli", command="rm -rf /"
    )
    context.hooks["subagent_start"](
        parent_session_id=SESSION, parent_turn_id=TURN, child_session_id="c", child_goal="look"
    )
    approval, child = lines(worker)[-2:]
    assert (approval["session"], approval["platform"], approval["command"]) == (SESSION, "cli", "rm -rf /")
    assert (child["session"], child["turn"], child["child_session"]) == (SESSION, TURN, "c")


def test_an_approval_in_the_background_is_known_by_its_turn(context: Context, worker: Path) -> None:
    session = "bg_134608_cc9b22"
    turn = f"{session}:{session}:d193e3df"
    context.hooks["pre_llm_call"](session_id=session, turn_id=turn, user_message="x", platform="cli")
    for hook in ("pre_approval_request", "post_approval_response"):
        context.hooks[hook](session_key="default", turn_id=turn, surface="cli", command="rm -rf /")
        assert (lines(worker)[-1]["session"], lines(worker)[-1]["platform"]) == (session, "cli")


def test_no_error_and_no_value_reaches_hermes(context: Context, worker: Path) -> None:
    for name, callback in context.hooks.items():
        assert callback() is None, name
        assert callback(error=3, args=[1], usage="x", user_message=b"\xff", session_id=7) is None, name
    shutil.rmtree(worker)
    assert context.hooks["pre_llm_call"](**COMMON, user_message="x") is None


def test_a_long_message_makes_a_short_line(context: Context, worker: Path) -> None:
    context.hooks["pre_llm_call"](**COMMON, user_message="ä" * 500_000, platform="cli")
    last = (worker / "events.jsonl").read_bytes().splitlines()[-1]
    assert len(last) < 2000
    assert json.loads(last)["bytes"] == 1_000_000


def test_a_line_never_exceeds_its_limit() -> None:
    line = encode({"event": "x", "session": "s", "choices": ["é" * 90_000]})
    assert len(line) <= MAX_LINE
    assert json.loads(line) == {"event": "x", "session": "s", "cut": True}


def test_a_key_across_the_cut_leaves_nothing(context: Context, worker: Path) -> None:
    for length in range(170, 205):
        context.hooks["pre_llm_call"](**COMMON, user_message="a" * length + KEY, platform="cli")
    assert b"sk-can" not in (worker / "events.jsonl").read_bytes()


def test_a_key_with_quotes_is_redacted_inside_json(
    worker: Path, plugin: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", 'quo"ted\\key')
    context = Context()
    plugin.register(context)
    context.hooks["pre_tool_call"](**COMMON, tool_name="x", args={"odd": 'see quo"ted\\key'})
    assert "[redacted]" in lines(worker)[-1]["summary"]
    assert "ted" not in lines(worker)[-1]["summary"].replace("[redacted]", "")


def test_the_supervisor_is_woken_and_its_absence_harms_nothing(context: Context, worker: Path) -> None:
    pipe = os.open(worker.parent.parent / "wake", os.O_RDWR | os.O_NONBLOCK)
    try:
        context.hooks["pre_llm_call"](**COMMON, user_message="x")
        assert os.read(pipe, 100).decode() == f"{worker.name}\n"
        while True:  # a supervisor that doesn't read must not block Hermes
            os.write(pipe, b"e" * 4096)
    except BlockingIOError:
        context.hooks["pre_llm_call"](**COMMON, user_message="x")
    finally:
        os.close(pipe)
    assert len(lines(worker)) == 3


def test_lines_of_several_threads_stay_whole(context: Context, worker: Path) -> None:
    def turn(number: int) -> None:
        for count in range(50):
            context.hooks["pre_api_request"](
                session_id=f"s{number}", turn_id=f"t{number}", user_message="y" * 3000, api_call_count=count
            )

    threads = [threading.Thread(target=turn, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(worker)) == 1 + 6 * 50


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"HERMUX_DIR": ""}, False),
        ({"HERMUX_DIR": "/nowhere"}, False),
        ({"HERMUX_ATTEMPT": "4"}, True),  # no pid file: unknown, so report
        ({"HERMUX_ATTEMPT": "x"}, True),
    ],
)
def test_outside_a_worker_it_is_silent(worker: Path, change: dict[str, str], found: bool) -> None:
    assert (find_owner({**os.environ, **change}) is not None) is found


def test_a_hermes_that_a_tool_started_is_silent(worker: Path) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as tool:  # as Hermes starts its tools
        assert find_owner(pid=tool.pid) is None
        tool.kill()
    assert find_owner() is not None


def test_short_keys_are_no_secrets(worker: Path) -> None:
    owner = find_owner({**os.environ, "OPENAI_API_KEY": "none"})
    assert owner is not None and owner.secrets == ()


def test_only_the_newest_turns_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "turns"
    for number in range(KEPT + BATCH - 1):
        path = folder / f"t{number:03}.json"
        save_turn(path, {"turn": str(number)}, user="u", answer="a")
        os.utime(path, (number, number))
    assert len(list(folder.iterdir())) == KEPT + BATCH - 1
    save_turn(folder / "last.json", {}, user="u", answer="a")
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == KEPT
    assert names[:2] == ["last.json", "t020.json"] and names[-1] == f"t{KEPT + BATCH - 2:03}.json"


def test_long_answers_are_cut_between_characters(tmp_path: Path) -> None:
    save_turn(tmp_path / "t.json", {}, user="é" * 200_000, answer="語" * 1_500_000)
    turn = json.loads((tmp_path / "t.json").read_bytes())
    assert turn["truncated"] is True
    assert len(turn["user"]) == 131_072
    assert len(turn["answer"].encode()) <= 4 * 1024 * 1024
    assert set(turn["answer"]) == {"語"}
