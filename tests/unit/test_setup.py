"""The setup command of a worktree: once until it succeeded, shown, and never in a crash loop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.fleet.decide import decide
from orchestrator.fleet.observation import DesiredSeen, Glanced, Gone, Launched, SettingUp, Swept, Wanted
from orchestrator.fleet.picture import picture
from orchestrator.fleet.spec import WorkerSpec, Worktree
from orchestrator.fleet.worker import Glance, Life, Outcome, OutcomeKind, Phase, PromptKind, Want, Worker
from orchestrator.hermes.launch import read_pid, setup_runs
from tests.unit.test_launch import SHELLS, SPEC, Launch
from tests.until import until


def tree(folder: Path, setup: str) -> WorkerSpec:
    return replace(SPEC, setup=setup, port=21007, worktree=Worktree("/r", str(folder), "b", "0"))


@pytest.mark.parametrize("shell", SHELLS)
def test_it_runs_once_at_the_top_without_the_key(tmp_path: Path, shell: str) -> None:
    setup = 'pwd >ran; echo "key=$OPENAI_API_KEY port=$PORT mine=$MINE"; echo x >>times'
    launch = Launch(
        tmp_path / "w o'rk", "echo hermes port=$PORT", spec=tree(tmp_path, setup), env="export OPENAI_API_KEY=sk MINE=1"
    )  # fmt: skip
    ended, out = launch.run("1", shell=shell)
    assert (ended.code, ended.why) == (0, "")
    assert "key= port=21007 mine=1" in out and "hermes port=21007" in out
    assert (tmp_path / "ran").read_text() == f"{tmp_path}\n"
    assert "key=" not in launch.run("2", shell=shell)[1]
    assert (tmp_path / "times").read_text() == "x\n"
    launch.render(tree(tmp_path, setup + "; true"), launch.folder / "her mes")
    launch.run("3", shell=shell)
    assert (tmp_path / "times").read_text() == "x\nx\n", "another command has not succeeded yet"


@pytest.mark.parametrize("shell", SHELLS)
def test_its_failure_is_the_reason_with_its_last_words(tmp_path: Path, shell: str) -> None:
    setup = 'for n in 1 2 3 4 5 6 7; do echo "line $n \\"quoted\\" \\\\"; done; echo bad >&2; test -e ok'
    launch = Launch(tmp_path / "w", "echo hermes", spec=tree(tmp_path, setup))
    ended, out = launch.run("1", shell=shell)
    assert "hermes\n" not in out
    assert ended.why.startswith("the setup command failed (exit 1): line 4 ")
    assert ended.why.endswith('line 7 "quoted" \\ / bad')
    (tmp_path / "ok").touch()
    assert launch.run("2", shell=shell)[0].why == ""


@pytest.mark.parametrize("setup", ["exit 3", "kill -9 $$", "no-such-program", "if", "cat; exit 4"])
def test_whatever_goes_wrong_ends_the_attempt(tmp_path: Path, setup: str) -> None:
    ended, _ = Launch(tmp_path / "w", "exit 0", spec=tree(tmp_path, setup)).run("1")
    assert ended.why.startswith("the setup command failed (exit ")


def test_what_it_leaves_in_the_background_holds_nothing(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "w", "echo hermes", spec=tree(tmp_path, "sleep 30 & echo $! >pid; echo up"))
    ended, out = launch.run("1")
    assert ended.code == 0 and out.endswith("hermes\n")
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_while_it_runs(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "w", "exit 0", spec=tree(tmp_path, "until [ -e go ]; do sleep 0.05; done"))
    process, folder = launch.start("1"), tmp_path / "w/attempts/1"
    assert until(lambda: setup_runs(folder))
    assert until(lambda: read_pid(folder), what="a stop finds the setup command")
    (tmp_path / "go").touch()
    process.communicate(timeout=20)
    assert not setup_runs(folder) and not (folder / "setup.pipe").exists()


def starting(now: float) -> Mapping[str, Worker]:
    spec = replace(SPEC, setup="npm ci\nsecond line", worktree=Worktree("/r", "/w", "b", "0"))
    fleet, _ = decide({}, [DesiredSeen({spec.name: Wanted(spec, Want.RUN, 1)})], now)
    life = Life("%1", 10, now, now)
    fleet, _ = decide(fleet, [Launched(spec.name, 1, life)], now)
    return fleet


def test_a_prompt_of_the_setup_is_not_hermes() -> None:
    name, fleet = SPEC.name, starting(100.0)
    fleet, _ = decide(fleet, [SettingUp(name, 1, True)], 101.0)
    for at in (102.0, 103.0, 104.0):
        glance = Glance(PromptKind.READY, at)
        fleet, _ = decide(fleet, [Glanced(name, 1, glance)], at)
    assert fleet[name].phase is Phase.STARTING
    shown = picture(fleet[name])
    assert shown["setting_up"] is True and shown["why"] == "the setup command runs: npm ci"
    fleet, _ = decide(fleet, [SettingUp(name, 1, False)], 105.0)
    assert fleet[name].set_up_at == 105.0 and not fleet[name].setting_up
    for at in (106.0, 107.0):
        fleet, _ = decide(fleet, [Glanced(name, 1, Glance(PromptKind.READY, at))], at)
    assert fleet[name].phase is Phase.UP


def test_its_failure_holds_at_once_and_start_tries_again() -> None:
    name, fleet, spec = SPEC.name, starting(100.0), starting(100.0)[SPEC.name].spec
    outcome = Outcome(OutcomeKind.FAILED_TO_START, 1, "the setup command failed (exit 1): no space")
    fleet, _ = decide(fleet, [SettingUp(name, 1, True)], 101.0)
    fleet, actions = decide(fleet, [Gone(name, 1, outcome)], 102.0)
    token = next(action.token for action in actions if type(action).__name__ == "Sweep")
    fleet, _ = decide(fleet, [Swept(name, token, 0)], 102.1)
    if fleet[name].phase is not Phase.HELD:  # without events its database is asked first
        from orchestrator.fleet.observation import Autopsied

        op = fleet[name].op
        assert op is not None
        fleet, _ = decide(fleet, [Autopsied(name, op.token, {})], 102.2)
    assert fleet[name].phase is Phase.HELD
    assert picture(fleet[name])["why"] == outcome.why
    assert decide(fleet, [], 10_000.0)[1] == []
    again, actions = decide(fleet, [DesiredSeen({name: Wanted(spec, Want.RUN, 2)})], 10_001.0)
    assert again[name].phase is not Phase.HELD and actions
