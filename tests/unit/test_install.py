"""Finding Hermes, with small programs in its place; the real one is found in the end-to-end ring."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from orchestrator.errors import NotReady
from orchestrator.hermes.install import find_hermes, hermes_root

WORD = "Hermes Agent v0.19.0 (2026.7.20)"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment(prefix: Path, version: str, *, head: str = "#!{python}\n") -> Path:
    """Lay out a virtual environment with Hermes in it; its command would fail if it were run."""
    python = prefix / "bin" / "python3"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.symlink_to(sys.executable)
    packages = prefix / "lib" / "python3.11" / "site-packages"
    (packages / "hermes_cli").mkdir(parents=True)
    info = packages / f"hermes_agent-{version}.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[console_scripts]\nhermes = hermes_cli.main:main\n")
    return program(prefix / "bin" / "hermes", head.format(python=python) + "raise SystemExit(9)\n")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")}


def test_the_order_is_variable_path_ours(tmp_path: Path, env: dict[str, str]) -> None:
    data = tmp_path / "home" / ".local" / "share" / "hermux"
    with pytest.raises(NotReady) as refused:
        find_hermes(env)
    assert refused.value.hint
    old = environment(data / "hermes-0.9.0", "0.9.0")
    assert find_hermes(env).path == old
    ours = environment(data / "hermes-0.19.0", "0.19.0")
    assert find_hermes(env).path == ours
    on_path = program(tmp_path / "path" / "hermes", f"#!/bin/sh\necho '{WORD}'\n")
    assert find_hermes(env).path == on_path
    named = environment(tmp_path / "named", "0.22.2.post1")
    found = find_hermes({**env, "HERMUX_HERMES": str(named)})
    assert (found.path, found.version) == (named, "0.22.2.post1")


@pytest.mark.parametrize(
    "head", ["#!{python}\n", "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"], ids=["plain", "long"]
)
def test_version_and_folders_are_read_without_running_it(
    tmp_path: Path, env: dict[str, str], head: str
) -> None:
    path = environment(
        tmp_path / "a b" / "venv" if "exec" in head else tmp_path / "venv", "0.19.0", head=head
    )
    found = find_hermes({**env, "HERMUX_HERMES": str(path)})
    assert found.version == "0.19.0"
    assert found.python == path.parent / "python3"
    assert found.site_packages == path.parent.parent / "lib" / "python3.11" / "site-packages"


def test_a_link_to_an_environment_is_followed(tmp_path: Path, env: dict[str, str]) -> None:
    path = environment(tmp_path / "venv", "0.19.0")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "hermes").symlink_to(path)
    found = find_hermes(env)
    assert (found.path, found.version) == (tmp_path / "path" / "hermes", "0.19.0")
    assert found.site_packages is not None


def test_a_wrapper_is_asked_once(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "code" / "hermes_cli").mkdir(parents=True)
    count = tmp_path / "count"
    path = program(
        tmp_path / "path" / "hermes",
        f"#!/bin/sh\necho x >>'{count}'\necho '{WORD}'\necho 'Install directory: {tmp_path / 'code'}'\n",
    )
    first, second = find_hermes(env), find_hermes(env)
    assert first == second
    assert (first.version, first.site_packages) == ("0.19.0", tmp_path / "code")
    assert count.read_text() == "x\n"
    path.write_text(path.read_text().replace("0.19.0", "0.20.1"))
    os.utime(path, (1, 1))
    assert find_hermes(env).version == "0.20.1"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("#!/bin/sh\necho 'no module hermes_cli' >&2\nexit 1\n", "no module hermes_cli"),
        ("#!/gone\n", "--version"),
    ],
)
def test_a_hermes_that_does_not_run_is_refused(
    tmp_path: Path, env: dict[str, str], text: str, word: str
) -> None:
    program(tmp_path / "path" / "hermes", text)
    with pytest.raises(NotReady, match=word):
        find_hermes(env)


def test_a_variable_that_names_nothing_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "path" / "hermes", f"#!/bin/sh\necho '{WORD}'\n")
    with pytest.raises(NotReady, match="HERMUX_HERMES"):
        find_hermes({**env, "HERMUX_HERMES": "/no/such/hermes"})


def test_a_cache_that_cannot_be_used_costs_only_time(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "path" / "hermes", f"#!/bin/sh\necho '{WORD}'\n")
    cache = tmp_path / "home" / ".cache" / "hermux" / "hermes.json"
    cache.parent.mkdir(parents=True)
    for content in ("{", "[]", '{"x": 1}'):
        cache.write_text(content)
        assert find_hermes(env).version == "0.19.0"
    assert find_hermes({**env, "XDG_CACHE_HOME": str(tmp_path / "path" / "hermes")}).version == "0.19.0"


@pytest.mark.parametrize(
    ("given", "root"),
    [("", "home/.hermes"), ("home/.hermes", "home/.hermes"), ("home/.hermes/profiles/x", "home/.hermes"),
     ("opt/data", "opt/data"), ("opt/data/profiles/x", "opt/data")],
)  # fmt: skip
def test_the_root_is_where_hermes_has_it(tmp_path: Path, env: dict[str, str], given: str, root: str) -> None:
    value = {"HERMES_HOME": str(tmp_path / given)} if given else {}
    assert hermes_root({**env, **value}) == tmp_path / root
