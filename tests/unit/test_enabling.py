"""Our plugin in a profile of the user's: one word in a text that stays the user's."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.errors import UsageError
from orchestrator.hermes.enabling import (
    has_plugin,
    put_plugin,
    refresh_put,
    take_plugin,
    was_put,
    with_plugin,
    without_plugin,
)

TEXTS = {
    "none": "# mine\nmodel: x  # here\n",
    "no newline": "model: x",
    "empty list": "plugins:\n  enabled: []   # none\nmodel: x\n",
    "flow list": "plugins: {enabled: [a, 'b'], disabled: []}\n",
    "flow without": "plugins: {disabled: [z]}\n",
    "flow empty": "plugins: {}\n",
    "block list": "plugins:\n  enabled:\n  - a   # first\n  - b\nmodel: x\n",
    "deep block list": "plugins:\n    enabled:\n        - a\n\n# end\n",
    "block without": "plugins:\n  # about\n  disabled: [z]\n",
    "umlauts": 'model: "gr\u00fc\u00df \u2620"\nplugins:\n  enabled:\n  - a\n',
}


def home(tmp_path: Path, text: str) -> Path:
    (tmp_path / "config.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
def test_put_and_taken_away_to_the_byte(name: str, tmp_path: Path) -> None:
    profile, text = home(tmp_path, TEXTS[name]), TEXTS[name]
    put_plugin(profile)
    written = (profile / "config.yaml").read_text()
    before, after = yaml.safe_load(text), yaml.safe_load(written)
    listed = (before.get("plugins") or {}).get("enabled") or []
    assert after["plugins"]["enabled"] == ["hermux", *listed]
    after["plugins"]["enabled"] = listed
    assert {**before, "plugins": {"enabled": [], **before.get("plugins", {})}} == after
    assert has_plugin(profile) and was_put(profile)
    refresh_put(profile)
    assert take_plugin(profile) == ""
    assert (profile / "config.yaml").read_text() == text
    assert sorted(path.name for path in profile.iterdir()) == ["config.yaml"]


@pytest.mark.parametrize("name", TEXTS)
def test_taken_away_after_hermes_wrote_the_file_anew(name: str, tmp_path: Path) -> None:
    profile = home(tmp_path, TEXTS[name])
    put_plugin(profile)
    config = yaml.safe_load((profile / "config.yaml").read_text())
    (profile / "config.yaml").write_text(yaml.safe_dump({**config, "more": 1}, sort_keys=False))
    assert take_plugin(profile) == ""
    left = yaml.safe_load((profile / "config.yaml").read_text())
    assert "hermux" not in (left["plugins"]["enabled"] or [])
    assert left["more"] == 1


@pytest.mark.parametrize(
    "text", ["{model: x}\n", "plugins: 5\n", "plugins:\n  enabled: true\n", "plugins:\n", "a: [\n"]
)
def test_a_text_that_is_too_unusual_is_left_alone(text: str, tmp_path: Path) -> None:
    assert with_plugin(text) is None
    profile = home(tmp_path, text)
    with pytest.raises(UsageError, match="a way that hermux does not change"):
        put_plugin(profile)
    assert (profile / "config.yaml").read_text() == text
    assert not (profile / "plugins").exists()


def test_a_folder_of_that_name_which_is_not_ours_stays(tmp_path: Path) -> None:
    profile = home(tmp_path, "model: x\n")
    (profile / "plugins" / "hermux").mkdir(parents=True)
    (profile / "plugins" / "hermux" / "__init__.py").write_text("mine\n")
    with pytest.raises(UsageError, match="is there already"):
        put_plugin(profile)
    assert "not put there by hermux" in take_plugin(profile)
    assert (profile / "plugins" / "hermux" / "__init__.py").read_text() == "mine\n"


def test_a_plugin_that_was_changed_stays(tmp_path: Path) -> None:
    profile = home(tmp_path, "model: x\n")
    put_plugin(profile)
    changed = profile / "plugins" / "hermux" / "hooks.py"
    changed.write_text(changed.read_text() + "# mine\n")
    refresh_put(profile)
    assert changed.read_text().endswith("# mine\n")
    assert "was changed since" in take_plugin(profile)
    assert has_plugin(profile)


def test_rights_and_links_of_the_file_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("model: x\n")
    real.chmod(0o640)
    profile = tmp_path / "profile"
    profile.mkdir()
    (profile / "config.yaml").symlink_to(real)
    put_plugin(profile)
    assert (profile / "config.yaml").is_symlink()
    assert "hermux" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plugins: {enabled: [hermux]}\n", "plugins: {enabled: []}\n"),
        ("plugins: {enabled: [a, hermux]}\n", "plugins: {enabled: [a]}\n"),
        ("plugins: {enabled: [hermux, a]}\n", "plugins: {enabled: [a]}\n"),
        ("plugins:\n  enabled:\n  - a\n  - hermux\n", "plugins:\n  enabled:\n  - a\n"),
        ("plugins: {enabled: [a]}\n", None),
    ],
)
def test_without(text: str, left: str | None) -> None:
    assert without_plugin(text) == left
