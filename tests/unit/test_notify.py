"""hermux' own settings, and how people are called: with real commands, which may fail, hang or talk too much."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.fleet.dialog import Dialog
from orchestrator.hermes.plugin.gap import Gap
from orchestrator.store.settings import Notify, Settings, load_settings, settings_path
from orchestrator.supervise.notify import AT_ONCE, Notifier, run
from tests.until import until


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


def write(env: dict[str, str], text: str) -> Path:
    path = settings_path(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def notifier(env: dict[str, str], terminals: tuple[str, ...] = ()) -> Notifier:
    return Notifier(
        "f", env=env, terminals=lambda: terminals, redact=lambda text: text.replace("s3cret", "[redacted]")
    )


def dialog(text: str = "rm -rf x", **fields: object) -> Dialog:
    return Dialog(3, "approval", text, 1.0, ("Allow once", "Deny"), **fields)  # type: ignore[arg-type]


def test_without_a_file_the_bell_rings(env: dict[str, str]) -> None:
    assert load_settings(env) == Settings(Notify(bell=True, command=()))
    write(env, "# nothing yet\n")
    assert load_settings(env) == Settings()


def test_the_settings_are_read(env: dict[str, str]) -> None:
    write(env, "notify: {bell: false, command: [notify-send, hermux], timeout: 5}\n")
    assert load_settings(env).notify == Notify(False, ("notify-send", "hermux"), 5.0)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("notify:\n  bel: true\n", ":2: notify.bel: unknown field; did you mean 'bell'?"),
        ("notifi: {}\n", ":1: notifi: unknown field; did you mean 'notify'?"),
        (
            "notify:\n  command: notify-send x\n",
            ":2: notify.command: must be a list of program and arguments",
        ),
        ("notify:\n  bell: no\n", ":2: notify.bell: must be boolean, not 'no'"),
        ("notify:\n  timeout: 0\n", ":2: notify.timeout: must be greater than 0, not 0"),
        ("- a\n", ":1: not a list of fields"),
        ("notify: {\n", "not valid YAML"),
    ],
)
def test_a_fault_is_named_with_its_line(env: dict[str, str], text: str, fault: str) -> None:
    path = write(env, text)
    with pytest.raises(UsageError) as raised:
        load_settings(env)
    assert str(raised.value).startswith(str(path))
    assert fault in str(raised.value)


def test_bad_settings_are_a_problem_and_the_old_ones_stay(env: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "told"
    write(env, f"notify: {{command: [sh, -c, 'cat >> {out}']}}\n")
    calling = notifier(env)
    calling.look()
    assert calling.problem == ""
    path = write(env, "notify: [\n")
    calling.look()
    assert "not valid YAML" in calling.problem
    calling.call("coder-1", dialog())
    until(out.exists, 10, what="the command that was understood before is run")
    path.unlink()
    calling.look()
    assert calling.problem == ""


def test_the_command_is_told_without_secrets(env: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "told"
    write(env, f"notify: {{command: [sh, -c, 'cat > {out}.new; mv {out}.new {out}']}}\n")
    notifier(env).call("coder-1", dialog("curl -H s3cret" + "x" * 5000, deadline=time.time() + 50))
    until(out.exists, 10)
    told = json.loads(out.read_text())
    left = told.pop("seconds_left")
    assert 40 < left <= 50
    assert told.pop("text").startswith("curl -H [redacted]x")
    assert told == {
        "schema": 1,
        "fleet": "f",
        "worker": "coder-1",
        "id": "coder-1#3",
        "kind": "approval",
        "choices": ["Allow once", "Deny"],
    }


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("sh", "-c", "cat >/dev/null; echo one; echo two"), "one two"),
        (("sh", "-c", "echo no >&2; exit 3"), "exit 3; no"),
        (("no-such-program",), "cannot be run: No such file or directory"),
        (("true",), ""),
    ],
)
def test_what_came_of_the_command(env: dict[str, str], command: tuple[str, ...], said: str) -> None:
    assert run(Notify(command=command), "x" * 200_000, env) == said


def test_a_command_that_hangs_is_ended_with_its_children(env: dict[str, str]) -> None:
    began = time.monotonic()
    assert (
        run(Notify(command=("sh", "-c", "sleep 60 | sleep 60"), timeout=0.3), "{}", env)
        == "ended by signal 9"
    )
    assert time.monotonic() - began < 10
    assert len(run(Notify(command=("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' a")), "", env)) == 500


def test_calls_do_not_wait_and_few_run_at_once(env: dict[str, str], tmp_path: Path) -> None:
    count = tmp_path / "running"
    count.mkdir()
    script = f"touch {count}/$$; ls {count} | wc -l >> {tmp_path}/most; sleep 0.2; rm {count}/$$; echo x >> {tmp_path}/done"
    write(env, f"notify: {{command: [sh, -c, '{script}']}}\n")
    calling = notifier(env)
    began = time.monotonic()
    for _ in range(10):
        calling.call("coder-1", dialog())
    assert time.monotonic() - began < 2.0
    until(lambda: (tmp_path / "done").exists() and len((tmp_path / "done").read_text().split()) == 10, 30)
    assert max(int(line) for line in (tmp_path / "most").read_text().split()) <= AT_ONCE


def test_the_bell_rings_at_terminals_and_never_waits(env: dict[str, str]) -> None:
    here, there = os.openpty()
    full, stuck = os.openpty()
    try:
        os.set_blocking(stuck, False)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(stuck, b"x" * 4096)
        terminals = (os.ttyname(stuck), "/dev/pts/no-such-terminal", os.ttyname(there))
        notifier(env, terminals).call("coder-1", dialog())
        assert os.read(here, 10) == b"\a"
    finally:
        for handle in (here, there, full, stuck):
            os.close(handle)


def test_dialogs_are_kept_apart() -> None:
    gap = Gap(0.2)
    began = time.monotonic()
    gap.before("pre_approval_request", {"surface": "cli"})
    assert time.monotonic() - began < 0.1, "the first one waits for nothing"
    gap.after("post_approval_response", {"surface": "cli"})
    gap.before("pre_tool_call", {"tool_name": "terminal"})
    assert time.monotonic() - began < 0.15, "what is no dialog waits for nothing"
    gap.before("pre_tool_call", {"tool_name": "clarify"})
    assert time.monotonic() - began >= 0.2
