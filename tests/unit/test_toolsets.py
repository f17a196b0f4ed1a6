"""The toolsets of a Hermes, read from its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.hermes.install import HermesInstall
from orchestrator.hermes.toolsets import check_toolsets, known_toolsets

SOURCE = """
NOT_THIS = {"wrong": 1}
TOOLSETS: dict = {
    "terminal": {"tools": ["terminal"]},
    "file": {"tools": [], "includes": ["inner"]},
}
"""


@pytest.fixture
def install(tmp_path: Path) -> HermesInstall:
    (tmp_path / "toolsets.py").write_text(SOURCE)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "x.py").write_text("registry.register(\n    toolset='browser-cdp',\n)\n")
    return HermesInstall(tmp_path / "hermes", "9.9.9", None, tmp_path)


def test_keys_of_the_table_and_what_tools_register(install: HermesInstall) -> None:
    assert known_toolsets(install) == {"terminal", "file", "browser-cdp", "all", "*"}
    check_toolsets(["terminal", "browser-cdp", "all", "my-server"], install, also=["my-server"], where="x")


def test_every_unknown_name_with_the_nearest(install: HermesInstall) -> None:
    with pytest.raises(UsageError) as refused:
        check_toolsets(["termnal", "file", "zzz"], install, where="role mine")
    said = str(refused.value)
    assert said == ("role mine: Hermes 9.9.9 has no toolset 'termnal'; did you mean 'terminal'?; 'zzz'")


@pytest.mark.parametrize("source", [None, "TOOLSETS = make()\n", "def (:\n", "\0"])
def test_where_nothing_is_known_nothing_is_refused(source: str | None, tmp_path: Path) -> None:
    if source is not None:
        (tmp_path / "toolsets.py").write_text(source)
    check_toolsets(["anything"], HermesInstall(tmp_path, "1", None, tmp_path), where="x")
    check_toolsets(["anything"], HermesInstall(tmp_path, "1", None, None), where="x")
