"""Making, refreshing and removing a worker's Hermes profile."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.errors import NotReady, UsageError
from orchestrator.fleet.spec import Endpoint, WorkerSpec
from orchestrator.hermes.home import (
    MARK,
    archive_home,
    check_home,
    fleet_of,
    has_learned,
    profile_dir,
    refresh_plugin,
    remove_home,
    write_home,
)

PROFILE = "hx-default-coder-1"
SPEC = WorkerSpec(
    name="coder-1",
    role="coder",
    cwd="/",
    hermes_profile=PROFILE,
    endpoint=Endpoint("http://127.0.0.1:8000/v1", "qwen", 131072),
)


def config(home: Path) -> dict[str, Any]:
    content = yaml.safe_load((home / "config.yaml").read_text())
    assert isinstance(content, dict)
    return content


def times(home: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}


def test_a_new_profile_is_complete_and_private(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="You are coder.\n", key=True)
    assert home == tmp_path / "profiles" / PROFILE
    assert check_home(tmp_path, PROFILE) == []
    assert (home / "SOUL.md").read_text() == "You are coder.\n"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in home.rglob("*") if path.is_file())
    written = config(home)
    assert written["model"] == {
        "provider": "custom",
        "base_url": "http://127.0.0.1:8000/v1",
        "default": "qwen",
        "api_key": "${OPENAI_API_KEY}",
        "context_length": 131072,
    }
    assert written["plugins"] == {"enabled": ["hermux"]}
    assert written["approvals"]["timeout"] == written["clarify"]["timeout"] == 86400
    assert not (home / "home").exists()  # Hermes would make it HOME of the tools: no git identity, no ssh
    assert not list(tmp_path.glob("profiles/.hx*"))


def test_without_a_key_none_is_referred_to(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="", key=False)
    assert "OPENAI_API_KEY" not in (home / "config.yaml").read_text()


def test_writing_it_again_touches_nothing(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="s", key=True)
    before = times(home)
    write_home(tmp_path, SPEC, soul="s", key=True)
    assert times(home) == before


def test_what_hermes_and_people_added_stays_and_ours_wins(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="s", key=True)
    written = config(home)
    written["onboarding"]["seen"]["another"] = True
    written["display"]["skin"] = "mono"
    written["approvals"]["mode"] = "off"
    written["hooks"] = {"pre_llm_call": [{"command": "/bin/true"}]}
    written["plugins"]["enabled"] = ["theirs"]
    (home / "config.yaml").write_text(yaml.safe_dump(written))
    endpoint = replace(SPEC.endpoint, model="llama")
    write_home(tmp_path, replace(SPEC, endpoint=endpoint), soul="new", key=True, approvals_timeout=60)
    after = config(home)
    assert after["onboarding"]["seen"]["another"] is True
    assert after["display"]["skin"] == "mono"
    assert after["approvals"] == {"mode": "manual", "timeout": 60, "destructive_slash_confirm": True}
    assert after["hooks"] == {}
    assert after["plugins"]["enabled"] == ["hermux", "theirs"]
    assert after["model"]["default"] == "llama"
    assert (home / "SOUL.md").read_text() == "new"


def test_a_limit_of_turns_is_configured(tmp_path: Path) -> None:
    assert "max_turns" not in config(write_home(tmp_path, SPEC, soul="", key=True))["agent"]
    assert (
        config(write_home(tmp_path, replace(SPEC, max_turns=7), soul="", key=True))["agent"]["max_turns"] == 7
    )


def test_a_role_may_override(tmp_path: Path) -> None:
    overrides = {"display": {"skin": "mono"}, "plugins": {"enabled": ["more"]}}
    after = config(write_home(tmp_path, SPEC, soul="", key=True, overrides=overrides))
    assert after["display"] == {
        "bell_on_complete": True,
        "busy_input_mode": "queue",
        "interface": "cli",
        "resume_display": "minimal",
        "skin": "mono",
    }
    assert after["plugins"]["enabled"] == ["hermux", "more"]


@pytest.mark.parametrize("broken", ["{", "- a\n- b\n", "", "\tx", "a: b: c"])
def test_an_unreadable_config_is_replaced(tmp_path: Path, broken: str) -> None:
    home = write_home(tmp_path, SPEC, soul="", key=True)
    whole = config(home)
    (home / "config.yaml").write_text(broken)
    write_home(tmp_path, SPEC, soul="", key=True)
    assert config(home) == whole


def test_the_plugin_follows_this_version(tmp_path: Path) -> None:
    plugin = write_home(tmp_path, SPEC, soul="", key=True) / "plugins" / "hermux"
    original = (plugin / "hooks.py").read_text()
    (plugin / "hooks.py").write_text("old")
    (plugin / "gone_since.py").write_text("old")
    refresh_plugin(tmp_path, PROFILE)
    assert (plugin / "hooks.py").read_text() == original
    assert not (plugin / "gone_since.py").exists()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert PROFILE in check_home(tmp_path, PROFILE)[0]
    home = write_home(tmp_path, SPEC, soul="", key=True)
    (home / "config.yaml").write_text("")  # as a power cut may leave it
    (home / "plugins" / "hermux" / "plugin.yaml").unlink()
    missing = check_home(tmp_path, PROFILE)
    assert len(missing) == 2 and "config.yaml" in missing[0] and "plugin.yaml" in missing[1]


@pytest.mark.parametrize("mark", [None, "", "{}", '{"schema": 1, "fleet": "a-b", "worker": "c"}'])
def test_a_profile_of_somebody_else_is_left_alone(tmp_path: Path, mark: str | None) -> None:
    home = profile_dir(tmp_path, PROFILE)
    home.mkdir(parents=True)
    (home / "SOUL.md").write_text("mine")
    if mark is not None:
        (home / MARK).write_text(mark)
    with pytest.raises(UsageError) as refused:
        write_home(tmp_path, SPEC, soul="x", key=True)
    assert PROFILE in str(refused.value) and refused.value.hint
    assert (home / "SOUL.md").read_text() == "mine"
    if mark is None:
        for act in (
            lambda: remove_home(tmp_path, PROFILE),
            lambda: archive_home(tmp_path, PROFILE, tmp_path),
        ):
            with pytest.raises(UsageError):
                act()
        assert (home / "SOUL.md").read_text() == "mine"


@pytest.mark.parametrize("profile", ["..", "../..", "", ".", "a/../../b"])
def test_nothing_outside_profiles_is_ever_removed(tmp_path: Path, profile: str) -> None:
    root = tmp_path / "root"
    (root / "profiles").mkdir(parents=True)
    for folder in (tmp_path, root, root / "profiles"):
        (folder / MARK).write_text("{}")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / MARK).write_text("{}")
    with pytest.raises(UsageError):
        remove_home(root, profile)
    assert (tmp_path / "b" / MARK).exists()
    assert (root / "profiles" / MARK).exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    real = write_home(tmp_path, SPEC, soul="", key=True)
    link = profile_dir(tmp_path, "hx-default-link")
    link.symlink_to(real)
    with pytest.raises(UsageError):
        remove_home(tmp_path, "hx-default-link")
    assert (real / "SOUL.md").exists()


def test_archiving_and_removing(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="", key=True)
    assert not has_learned(tmp_path, PROFILE)
    (home / "memories").mkdir()
    assert not has_learned(tmp_path, PROFILE)
    (home / "memories" / "MEMORY.md").write_text("the user likes tea")
    assert has_learned(tmp_path, PROFILE)
    kept = archive_home(tmp_path, PROFILE, tmp_path / "archive" / "coder-1-1")
    assert (kept / "memories" / "MEMORY.md").exists() and not home.exists()
    write_home(tmp_path, SPEC, soul="", key=True)
    remove_home(tmp_path, PROFILE)
    remove_home(tmp_path, PROFILE)
    assert not home.exists()


def test_a_root_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "profiles").write_text("a file where a folder should be")
    with pytest.raises(NotReady) as refused:
        write_home(tmp_path, SPEC, soul="", key=True)
    assert str(tmp_path) in str(refused.value) and refused.value.hint


@pytest.mark.parametrize(
    ("profile", "worker", "fleet"),
    [(PROFILE, "coder-1", "default"), ("hx-a-b-c", "c", "a-b"), ("hx-a-b-c", "b-c", "a"), ("mine", "c", "")],
)
def test_the_fleet_is_in_the_name(profile: str, worker: str, fleet: str) -> None:
    assert fleet_of(replace(SPEC, name=worker, hermes_profile=profile)) == fleet


def test_no_stray_file_is_left(tmp_path: Path) -> None:
    home = write_home(tmp_path, SPEC, soul="", key=True)
    assert not [path for path in home.rglob("*") if path.name.endswith(".tmp")]
    assert sorted(path.name for path in home.iterdir()) == [MARK, "SOUL.md", "config.yaml", "plugins"]
