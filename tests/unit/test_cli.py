"""The command line: exit codes, one line on stderr, JSON as documented, reference pages up to date."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli import listing, main
from orchestrator.cli.quick import quick
from orchestrator.cli.reference import pages
from orchestrator.cli.schemas import SCHEMAS, undocumented
from orchestrator.cli.show import Column, table, text_width
from orchestrator.cli.since import parse_since
from orchestrator.cli.verbs import VERBS
from orchestrator.cli.why import next_steps
from orchestrator.errors import UsageError
from orchestrator.fleet.memory import dump
from orchestrator.fleet.picture import picture as entry_of
from orchestrator.fleet.worker import Want, Worker
from tests.unit.stage import Stage, spec

ROOT = Path(__file__).parents[2]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with Stage(tmp_path) as stage:
        for name in list(os.environ):
            if name.startswith(("HERMUX", "OPENAI", "HCA_", "HERMES", "XDG")):
                monkeypatch.delenv(name)
        for name, value in stage.env.items():
            monkeypatch.setenv(name, value)
        stage.worker("coder-1")
        yield stage


def hermux(*words: str) -> int:
    return main.run(list(words))


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("nope", 2, "no verb 'nope'"),
        ("lss", 2, "did you mean: hermux ls"),
        ("ls --size 3", 2, "no such option: --size"),
        ("peek coder-1 --verbose", 2, "no such option"),
        ("send coder-1 -x", 2, "hermux send W -- TEXT"),
        ("ls extra", 2, "unexpected extra argument"),
        ("ls -F Bad", 2, "'Bad' is no fleet name"),
        ("ask", 2, "missing argument"),
        ("ask coder-1", 2, "no text was given"),
        ("ask coder-1 qa-1 text", 2, "ask takes one worker"),
        ("why coder-2", 2, "did you mean coder-1?"),
        ("spawn 0", 2, "0 workers cannot be started"),
        ("spawn 10000", 2, "64 at most"),
        ("spawn x", 2, "'x' is no number of workers"),
        ("spawn --role codr", 2, "did you mean 'coder'?"),
        ("spawn --name ls", 2, "a word of hermux itself"),
        ("spawn --name Bad", 2, "is no worker name"),
        ("spawn --name coder-1", 2, "--replace"),
        ("spawn --cwd /no/such/place", 2, "does not exist"),
        ("spawn --env-file /no/such/file", 2, "cannot read"),
        ("spawn --size 10x10", 2, "64 to 1000 columns"),
        ("spawn --replace", 2, "--replace needs the --name"),
        ("spawn --env =x", 2, "no name of a variable"),
        ("scale many", 2, "is no number of workers"),
        ("scale coder=x", 2, "is no number of workers"),
        ("scale 3 4", 2, "is not ROLE=N"),
        ("wait", 2, "no worker was named"),
        ("wait coder-1 --state happy", 2, "'happy' is no state"),
        ("wait coder-1 --state busy --timeout 0.05", 124, "not busy yet"),
        ("logs coder-1 --since yesterday", 2, "is no time"),
        ("unsend m-x-0000", 2, "no message m-x-0000"),
        ("attach coder-1", 2, "attach needs a terminal"),
        ("rm coder-1", 2, "hermux stop coder-1"),
        ("stop coder-1 --now --grace 3", 2, "exclude each other"),
        ("supervise", 1, "supervised already"),
        ("send coder-1 --timeout 3 x", 2, "--timeout goes with --wait"),
    ],
)
def test_bad_input_gets_a_line_a_hint_and_a_code(
    stage: Stage, capsys: pytest.CaptureFixture[str], line: str, code: int, told: str
) -> None:
    before = stage.paths.desired.read_text()
    assert hermux(*line.split()) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("hermux: ") and told in said.err
    assert len(said.err.splitlines()) <= 2
    assert stage.paths.desired.read_text() == before
    assert [path.name for path in stage.paths.workers.iterdir()] == ["coder-1"]


def test_every_role_fault_is_told(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    role = Path(stage.env["HOME"]) / ".config" / "hermux" / "roles" / "mine"
    role.mkdir(parents=True)
    (role / "role.yaml").write_text("descriptio: x\nmax_turns: many\n")
    (role / "SOUL.md").write_text("be good")
    assert hermux("spawn", "--role", "mine") == 2
    said = capsys.readouterr().err
    assert "role.yaml:1" in said and "role.yaml:2" in said and "did you mean" in said


def test_a_damaged_file_is_named(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.paths.desired.write_text("{")
    assert hermux("ls") == 1
    assert str(stage.paths.desired) in capsys.readouterr().err


def test_an_empty_fleet(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert hermux("ls", "-F", "other") == 0
    assert capsys.readouterr() == ("", "no workers in fleet other → hermux spawn -F other\n")
    assert hermux("-F", "other", "ls", "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_ls_shows_state_witness_and_age(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.worker(
        "coder-1", since=time.time() - 300, session="s1", tokens={"in": 12000, "out": 345}, restarts=2
    )
    stage.worker("qa-1", word="waiting", waiting={"kind": "approval", "text": "rm\n-rf x", "since": 1.0})
    assert hermux("ls") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "ROLE", "STATE", "DOING", "RESTARTS", "TOKENS", "SESSION", "PROFILE"]
    assert "ready (event 5 m)" in lines[1] and "12k" in lines[1]
    assert "approval: rm -rf x" in lines[2]
    assert lines[3] == listing.REHEARSAL_NOTICE


def test_ls_says_that_no_supervisor_runs(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.lock.release()
    assert hermux("ls") == 0
    assert "no supervisor runs: this picture is 0 s old" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["ls", "ls -v", "ls -q", "ls -F other", "ls --json", "ps", "status --verbose -q"]
)
def test_the_quick_way_prints_what_the_usual_way_does(
    stage: Stage, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    stage.worker("coder-1", since=0.0)
    assert quick(line.split())
    fast = capsys.readouterr()
    main._run(line.split())
    usual = capsys.readouterr()
    if "--json" in line:
        assert set(json.loads(fast.out)) == set(json.loads(usual.out))
    else:
        assert fast == usual


def test_ls_imports_neither_typer_nor_anything_heavy() -> None:
    code = "import sys; from orchestrator.cli.main import run; run(['ls', '-F', 'none']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    heavy = {
        "typer",
        "pydantic",
        "yaml",
        "libtmux",
        "rich",
        "psutil",
        "subprocess",
        "asyncio",
        "urllib.request",
    }
    assert not heavy & set(done.stdout.split())


def documents(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, object]]:
    """Run every verb that prints JSON and needs neither Hermes nor tmux."""
    lines = {
        "ls": ["ls", "--json"],
        "why": ["why", "coder-1", "--json"],
        "send": ["send", "coder-1", "hello\r\n", "--json"],
        "interrupt": ["interrupt", "coder-1", "--json"],
        "keys": ["keys", "coder-1", "Enter", "--json"],
        "wait": ["wait", "coder-1", "--state", "ready", "--json"],
        "start": ["start", "coder-1", "--json"],
        "endpoint show": ["endpoint", "show", "--json"],
    }
    for verb, line in lines.items():
        assert hermux(*line) == 0, capsys.readouterr().err
        yield verb, json.loads(capsys.readouterr().out)


def test_json_is_as_documented(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    worker = Worker(spec("coder-1"), Want.RUN, 1)
    stage.entries["coder-1"] |= {
        "memory": dump(worker),
        **entry_of(worker),
        "phase": "up",
        "word": "ready",
        "attempt": 1,
    }
    stage.draw()
    for verb, document in documents(stage, capsys):
        assert undocumented(verb, document) == [], verb
        assert isinstance(document, dict) and document["schema"] == 1


def test_a_person_is_told_what_to_type_next(stage: Stage) -> None:
    stage.worker("coder-1", word="waiting", waiting={"kind": "approval", "text": "x"})
    picture = stage.fleet.picture()
    assert next_steps("coder-1", picture.workers["coder-1"], [], picture)[0] == "hermux attach coder-1"
    for word in ("busy", "failed", "draft", "unknown", "held", "ready", "background"):
        assert next_steps("coder-1", {"word": word, "phase": "up"}, [], picture)


def test_messages_from_a_file_and_from_nowhere(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"one\ntwo \xff")
    assert hermux("send", "coder-1", "--file", str(file)) == 2
    assert f"{file}:2: not UTF-8" in capsys.readouterr().err
    file.write_text("one\r\ntwo\n")
    assert hermux("send", "coder-1", "--file", str(file)) == 0
    assert "line ends became LF" in capsys.readouterr().out
    (message,) = stage.fleet.worker("coder-1").messages()
    assert message["bytes"] == 7
    assert hermux("unsend", message["id"]) == 0


def test_a_text_may_begin_with_a_dash_after_two(stage: Stage) -> None:
    assert hermux("send", "coder-1", "--", "-x") == 0
    assert stage.fleet.worker("coder-1").messages()[0]["preview"] == "-x"


def test_an_interrupted_ask_says_where_the_message_is(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.api.ready.time.sleep", interrupted)
    assert hermux("ask", "coder-1", "hello") == 130
    (message,) = stage.fleet.worker("coder-1").messages()
    assert f"hermux unsend {message['id']}" in capsys.readouterr().err


def test_the_pages_are_up_to_date() -> None:
    for name, text in pages().items():
        assert (ROOT / "docs" / name).read_text() == text, "run scripts/gen-reference"


def test_every_json_verb_has_a_schema() -> None:
    import inspect
    from importlib import import_module

    known = {verb for schema in SCHEMAS for verb in schema.verbs}
    for verb in VERBS:
        target = getattr(import_module(f"orchestrator.cli.{verb.module}"), verb.target)
        if callable(target) and "json" in inspect.signature(target).parameters:
            assert verb.name in known or verb.alias_of in known, verb.name


def test_a_table_fits() -> None:
    columns = (
        Column("NAME"),
        Column("DOING", least=6),
        Column("SESSION", optional=True, least=3),
        Column("X", optional=True),
    )
    rows = [["coder-1", "日本語 words and words", "20261129_1", ""]]
    for width in range(18, 60):
        lines = table(columns, rows, width=width).splitlines()
        assert len(lines) == 2 and all(text_width(line) <= width for line in lines)
        assert lines[1].startswith("coder-1")
    assert "X" not in table(columns, rows).splitlines()[0]


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172800), ("1000000000", None), ("", None)],
)
def test_since(text: str, ago: float | None) -> None:
    now = 1_800_000_000.0
    assert parse_since(text, now=now) == (float(text or 0) if ago is None else now - ago)
    assert now - 86400 < parse_since("14:30", now=now) <= now
    with pytest.raises(UsageError):
        parse_since("soon", now=now)
