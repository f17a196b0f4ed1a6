"""What a role takes over from the user's own Hermes profile: read only, and no secret in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.errors import UsageError
from orchestrator.fleet.role import Role, Skills
from orchestrator.hermes.inherit import bequeath, read_inheritance
from orchestrator.hermes.install import HermesInstall


@pytest.fixture
def install(tmp_path: Path) -> HermesInstall:
    """A Hermes with one skill that it brings itself, as a checkout has it."""
    folder = tmp_path / "hermes"
    write_skill(folder / "skills", "bundled-one")
    return HermesInstall(folder / "bin" / "hermes", "0.19.0", None, folder)


def write_skill(folder: Path, name: str, text: str = "") -> None:
    place = folder / "kind" / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(text or f"---\nname: {name}\n---\nDo it.\n")


def role(*inherit: str, allow: tuple[str, ...] | None = None, deny: tuple[str, ...] = ()) -> Role:
    return Role("mine", "x", "y", inherit=inherit, skills=Skills(allow, deny))


def servers(root: Path, **entries: Any) -> Path:
    root.mkdir(exist_ok=True)
    (root / "config.yaml").write_text(yaml.safe_dump({"mcp_servers": entries}))
    return root


def test_secrets_become_references(tmp_path: Path, install: HermesInstall) -> None:
    root = servers(
        tmp_path / "root",
        one={
            "command": "npx",
            "args": ["-y", "x", "--key", "${CLI_KEY}"],
            "env": {"TOKEN": "secret-1", "EMPTY": ""},
        },
        two={
            "url": "https://h/mcp?key=secret-2",
            "headers": {"Authorization": "Bearer ${DOT}"},
            "timeout": 9,
        },
        three={"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${env:DOT}", "X": "secret-1"}},
    )
    (root / ".env").write_text("DOT=dot-secret\n")
    found = read_inheritance(role("mcp"), root, install, {"CLI_KEY": "cli-secret", "DOT": "beaten"})
    text = yaml.safe_dump(dict(found.mcp or {}))
    for secret in ("secret-1", "secret-2", "dot-secret", "cli-secret"):
        assert secret not in text
    assert sorted(found.secrets.values()) == [
        "Bearer dot-secret", "cli-secret", "https://h/mcp?key=secret-2", "secret-1",
    ]  # fmt: skip
    assert all(
        name.startswith("AUXILIARY_HERMUX_MCP") and name.endswith("_API_KEY") for name in found.secrets
    )
    mcp = found.mcp or {}
    assert mcp["one"]["env"]["TOKEN"] == mcp["three"]["headers"]["X"]  # one secret, one variable
    assert mcp["one"]["env"]["EMPTY"] == ""
    assert mcp["two"]["timeout"] == 9
    assert mcp["three"]["url"] == "https://h/mcp"
    assert set(found.servers) == {"one", "two", "three"}


@pytest.mark.parametrize("entry", [{"auth": "oauth"}, {"oauth": {"scopes": "x"}}, {"auth": "OAuth "}])
def test_an_oauth_login_is_refused(entry: dict[str, Any], tmp_path: Path, install: HermesInstall) -> None:
    root = servers(tmp_path / "root", linear={"url": "https://h/mcp", **entry}, plain={"command": "x"})
    with pytest.raises(UsageError, match=r"linear in .* rests on an OAuth login") as refused:
        read_inheritance(role("mcp"), root, install, {})
    assert "take `mcp` out of `inherit`" in refused.value.hint
    assert read_inheritance(role("skills"), root, install, {}).mcp is None


def test_a_kept_token_is_a_login_too_and_what_is_off_does_not_count(
    tmp_path: Path, install: HermesInstall
) -> None:
    root = servers(
        tmp_path / "root", **{"a b": {"url": "https://h/mcp"}, "off": {"auth": "oauth", "enabled": False}}
    )
    assert read_inheritance(role("mcp"), root, install, {}).servers == ("a b",)
    (root / "mcp-tokens").mkdir()
    (root / "mcp-tokens" / "a_b.json").write_text("{}")
    with pytest.raises(UsageError, match="OAuth login"):
        read_inheritance(role("mcp"), root, install, {})


def test_the_profile_that_a_bare_hermes_uses_is_the_one(tmp_path: Path, install: HermesInstall) -> None:
    root = servers(tmp_path / "root", wrong={"command": "x"})
    servers(tmp_path / "root" / "profiles", x={"command": "x"})
    servers(tmp_path / "root" / "profiles" / "work", right={"command": "x"})
    (root / "active_profile").write_text("work\n")
    assert read_inheritance(role("mcp"), root, install, {}).servers == ("right",)


def test_skills_are_copied_but_for_those_denied(tmp_path: Path, install: HermesInstall) -> None:
    root = tmp_path / "root"
    for name in ("bake", "launch", "sing"):
        write_skill(root / "skills", name)
    (root / "skills" / "kind" / "bake" / "references").mkdir()
    (root / "skills" / "kind" / "bake" / "references" / "SKILL.md").write_text("not one\n")
    write_skill(root / "skills" / ".hub", "hidden")
    found = read_inheritance(role("skills", deny=("launch",)), root, install, {})
    assert [str(path) for path in found.skills] == ["kind/bake", "kind/sing"]
    assert found.disabled == ("launch",)
    home = tmp_path / "worker"
    (home / "skills" / "kind" / "sing").mkdir(parents=True)
    bequeath(found, home)
    assert (home / "skills" / "kind" / "bake" / "references" / "SKILL.md").is_file()
    assert not list((home / "skills" / "kind" / "sing").iterdir())  # what is there already stays


def test_allowed_are_only_those_also_of_what_hermes_brings(tmp_path: Path, install: HermesInstall) -> None:
    root = tmp_path / "root"
    write_skill(root / "skills", "bake", "no head\n")
    found = read_inheritance(role("skills", allow=("bake",)), root, install, {})
    assert [str(path) for path in found.skills] == ["kind/bake"]
    assert found.disabled == ("bundled-one",)
    nothing = read_inheritance(role("skills", allow=()), root, install, {})
    assert (nothing.skills, nothing.disabled) == ((), ("bundled-one",))
    with pytest.raises(UsageError, match=r"names no skill: 'bke'; did you mean 'bake'\?"):
        read_inheritance(role("skills", allow=("bke",)), root, install, {})
    with pytest.raises(UsageError) as refused:
        read_inheritance(role(allow=("bake",)), root, install, {})
    assert "your own come with `inherit: [skills]`" in refused.value.hint


def test_memories_are_copied_once(tmp_path: Path, install: HermesInstall) -> None:
    root, home = tmp_path / "root", tmp_path / "worker"
    (root / "memories").mkdir(parents=True)
    (root / "memories" / "USER.md").write_text("mine\n")
    found = read_inheritance(role("memories"), root, install, {})
    bequeath(found, home)
    (home / "memories" / "USER.md").write_text("the worker's\n")
    bequeath(found, home)
    assert (home / "memories" / "USER.md").read_text() == "the worker's\n"
    assert (root / "memories" / "USER.md").read_text() == "mine\n"
