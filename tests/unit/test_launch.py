"""The launch script, run for real by /bin/sh, with small programs in Hermes' place."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.hermes.launch import Exit, hermes_arguments, read_exit, read_pid, render_launch
from tests.until import until

SPEC = WorkerSpec(
    name="coder-1",
    role="coder",
    cwd="/",
    hermes_profile="hx-default-coder-1",
    endpoint=Endpoint("http://127.0.0.1:1/v1", "m", 131072),
)
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)] or ["sh"]


class Launch:
    """A worker's folder with a launch script whose Hermes is a shell script with the given text."""

    def __init__(self, folder: Path, hermes: str, *, spec: WorkerSpec = SPEC, env: str = "") -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        program = folder / "her mes"
        program.write_text("#!/bin/sh\n" + hermes)
        program.chmod(0o755)
        if env:
            (folder / "env").write_text(env)
        self.script = folder / "launch.sh"
        self.render(spec, program)

    def render(self, spec: WorkerSpec, program: Path) -> None:
        text = render_launch(
            self.folder,
            spec,
            fleet="default",
            wake=self.folder.parent / "wake",
            hermes=program,
            hermes_root=self.folder / "hermes root",
        )
        self.script.write_text(text)
        self.script.chmod(0o700)

    def start(self, *words: str, shell: str = "") -> subprocess.Popen[bytes]:
        prefix = {"": [], "busybox": ["busybox", "sh"]}.get(shell, [shell])
        return subprocess.Popen(
            [*prefix, str(self.script), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "TMUX": "/tmp/x,1,0", "OPENAI_BASE_URL": "http://elsewhere"},
        )

    def run(self, *words: str, shell: str = "") -> tuple[Exit, str]:
        process = self.start(*words, shell=shell)
        out, _ = process.communicate(timeout=20)
        ended = read_exit(self.folder / "attempts" / words[0])
        assert ended is not None
        return ended, out.decode()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("hermes", "code", "number"),
    [("exit 0", 0, None), ("exit 75", 75, None), ("kill -9 $$", None, 9), ("kill -15 $$", None, 15)],
)
def test_the_outcome_is_written(
    tmp_path: Path, shell: str, hermes: str, code: int | None, number: int | None
) -> None:
    ended, _ = Launch(tmp_path / "w", hermes).run("1", shell=shell)
    assert (ended.code, ended.signal, ended.why) == (code, number, "")
    assert abs(ended.time - (tmp_path / "w/attempts/1/exit.json").stat().st_mtime) < 1
    assert json.loads((tmp_path / "w/attempts/1/exit.json").read_bytes())["schema"] == 1


def test_hermes_gets_its_arguments_and_environment(tmp_path: Path) -> None:
    odd = 'it\'s $HOME; "x" `y` \\ *\n#{z}'
    launch = Launch(
        tmp_path / "w o'r$k",
        'printf "%s|" "$@"; echo; env',
        spec=replace(SPEC, toolsets=("terminal", "file")),
        env="export OPENAI_API_KEY='sk-1'\nexport OPENAI_API_BASE=http://elsewhere HERMUX_WORKER=other\n",
    )
    _, out = launch.run("12", "--resume", odd)
    arguments, _, env = out.partition("|\n")
    assert arguments.split("|") == [
        "-p", "hx-default-coder-1", "--cli", "-t", "terminal,file", "--resume", odd,
    ]  # fmt: skip
    variables = dict(entry.split("=", 1) for entry in env.splitlines() if "=" in entry)
    assert variables["HERMUX_FLEET"] == "default"
    assert variables["HERMUX_WORKER"] == "coder-1"
    assert variables["HERMUX_ATTEMPT"] == "12"
    assert variables["HERMUX_DIR"] == str(launch.folder)
    assert variables["HERMUX_WAKE"] == str(launch.folder.parent / "wake")
    assert variables["HERMES_HOME"] == str(launch.folder / "hermes root")
    assert variables["PROMPT_TOOLKIT_NO_CPR"] == variables["HERMES_NONINTERACTIVE"] == "1"
    assert variables["OPENAI_API_KEY"] == "sk-1"
    assert not {"TMUX", "OPENAI_BASE_URL", "OPENAI_API_BASE"} & set(variables)


def test_no_resume_and_no_toolsets_means_no_arguments() -> None:
    assert hermes_arguments(SPEC) == ["-p", "hx-default-coder-1", "--cli"]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    cwd = str(tmp_path / 'no "such" $place')
    ended, _ = Launch(tmp_path / "w", "exit 0", spec=replace(SPEC, cwd=cwd)).run("1")
    assert (ended.code, ended.signal, ended.why) == (None, None, f"no such directory: {cwd}")
    assert read_pid(tmp_path / "w/attempts/1") is None


@pytest.mark.parametrize("shell", SHELLS)
def test_a_missing_hermes_is_named(tmp_path: Path, shell: str) -> None:
    launch = Launch(tmp_path / "w", "exit 0")
    launch.render(SPEC, tmp_path / "gone")
    ended, _ = launch.run("1", shell=shell)
    assert (ended.code, ended.why) == (127, f"cannot run {tmp_path / 'gone'}")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_broken_env_file_still_leaves_an_outcome(tmp_path: Path, shell: str) -> None:
    ended, _ = Launch(tmp_path / "w", "exit 0", env="export X='unclosed\n").run("1", shell=shell)
    assert ended.code == 0 or ended.why == "launch.sh itself failed"


@pytest.mark.parametrize("shell", SHELLS)
def test_signals_to_the_group_end_hermes_and_not_the_report(tmp_path: Path, shell: str) -> None:
    launch = Launch(tmp_path / "w", "trap 'exit 3' HUP\necho up\nwhile :; do sleep 0.05; done")
    process = launch.start("1", shell=shell)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    for number in (signal.SIGHUP, signal.SIGTSTP):
        os.killpg(process.pid, number)
    assert process.wait(timeout=10) == 3
    process.communicate()
    ended = read_exit(tmp_path / "w/attempts/1")
    assert ended is not None and (ended.code, ended.signal) == (3, None)


def test_the_pid_is_that_of_hermes_and_kill_9_always_leaves_an_outcome(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "w", "exec sleep 60")
    for attempt in map(str, range(8)):
        process = launch.start(attempt)
        folder = tmp_path / "w/attempts" / attempt
        pid = until(lambda folder=folder: read_pid(folder))  # type: ignore[misc]
        assert pid is not None and pid != process.pid
        os.kill(pid, signal.SIGKILL)
        out, errors = process.communicate(timeout=10)
        ended = read_exit(folder)  # there before the script is gone
        assert ended is not None and ended.signal == 9
        assert (out, errors) == (b"", b"")  # "Killed" would spoil the last screen


@pytest.mark.parametrize("content", ["", "12", "x\n", "{}", '{"code": 1', '{"schema": 1}', "[]", "null"])
def test_half_files_are_no_answer(tmp_path: Path, content: str) -> None:
    (tmp_path / "exit.json").write_text(content)
    (tmp_path / "pid").write_text(content)
    assert read_exit(tmp_path) is None
    assert read_pid(tmp_path) is None
    assert read_exit(tmp_path / "gone") is None
    assert read_pid(tmp_path / "gone") is None


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("env", "told"),
    [
        ("", "localhost,127.0.0.1,::1"),
        ("export NO_PROXY='x y'", "localhost,127.0.0.1,::1,x y"),
        ("export NO_PROXY=x no_proxy=x", "localhost,127.0.0.1,::1,x"),
        ("export NO_PROXY=x no_proxy=y", "localhost,127.0.0.1,::1,x,y"),
        ("export no_proxy=y", "localhost,127.0.0.1,::1,y"),
        ("export NO_PROXY='*'", "*"),
        ("export NO_PROXY=x no_proxy='y,*'", "*"),
    ],
)
def test_no_proxy_is_asked_for_this_machine(tmp_path: Path, shell: str, env: str, told: str) -> None:
    launch = Launch(tmp_path / "w", 'printf "%s|%s" "$NO_PROXY" "$(env | grep ^no_proxy=)"', env=env)
    assert launch.run("1", shell=shell)[1] == f"{told}|no_proxy={told}"


def test_no_proxy_is_asked_for_an_endpoint_here(tmp_path: Path) -> None:
    spec = replace(SPEC, endpoint=replace(SPEC.endpoint, base_url="http://127.0.0.2:1/v1"))
    launch = Launch(tmp_path / "w", 'printf %s "$NO_PROXY"', spec=spec)
    assert launch.run("1")[1] == "localhost,127.0.0.1,::1,127.0.0.2"
