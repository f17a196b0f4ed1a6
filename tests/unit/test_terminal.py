"""The pure parts of the terminal: protocol, words, rows, environments."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import TerminalError
from orchestrator.terminal import command
from orchestrator.terminal.config import render_config
from orchestrator.terminal.environment import UTF8, attach_env, server_env
from orchestrator.terminal.pane import PaneRow, parse_row
from orchestrator.terminal.protocol import Block, Parser
from orchestrator.terminal.terminfo import known

STREAM = (
    b"%begin 5 266 0\n%end 5 266 0\n"
    b"%session-changed $0 _hermux\n"
    b"%begin 5 272 1\nrow\n%end 5 271 1\n%end\n%sessions-changed\n\xff\n%end 5 272 1\n"
    b"%begin 5 273 1\nparse error: unknown command: foo\n%error 5 273 1\n"
    b"%exit\n"
)
MEANT: list[Block | str] = [
    Block(number=266, ours=False, ok=True, lines=()),
    "%session-changed $0 _hermux",
    Block(
        number=272, ours=True, ok=True, lines=("row", "%end 5 271 1", "%end", "%sessions-changed", "\ufffd")
    ),
    Block(number=273, ours=True, ok=False, lines=("parse error: unknown command: foo",)),
    "%exit",
]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_answers_are_found_however_the_stream_is_torn(cuts: list[int]) -> None:
    parser, found = Parser(), []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(edges):
        found += parser.feed(STREAM[start:end])
    assert found == MEANT


@given(data=st.binary(max_size=300))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    Parser().feed(data + b"\n")


@given(word=st.text(st.characters(exclude_characters="\0")))
def test_a_quoted_word_is_one_line(word: str) -> None:
    assert "\n" not in command.quote(word) and command.quote(word)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("%1|10|0||||1795959500||120|40|1|3|4|coder-1", (None, None, False, 0)),
        ("%1|10|1|7||0|1795959500|2|120|40|1|3|4|coder-1", (7, None, False, 2)),
        ("%1|10|1||9|1|1795959500|2|120|40|1|3|4|coder-1", (None, 9, True, 2)),
        ("%1|10|1||kill|1|1795959500|2|120|40|1|3|4|coder-1", (None, 9, True, 2)),
        ("%1|10|1||no-such|2|1795959500|2|120|40|1|3|4|coder-1", (None, None, True, 2)),
    ],
)
def test_rows(line: str, expected: tuple[int | None, int | None, bool, int]) -> None:
    row = parse_row(line)
    assert isinstance(row, PaneRow)
    assert (row.dead_status, row.dead_signal, row.in_mode, row.bells) == expected
    assert (row.session, row.columns, row.rows, row.cursor_x, row.cursor_y) == ("coder-1", 120, 40, 3, 4)


@pytest.mark.parametrize("line", ["", "%1", "no|row", "%1|x|0||||1|0|1|1|0|0|0|s", "a" * 13 + "|" * 13])
def test_what_is_no_row(line: str) -> None:
    assert parse_row(line) is None


@pytest.mark.parametrize("name", ["", "a.b", "a:b", "a b", "=x", "*", "%1;", "ä"])
def test_names_that_tmux_would_bend(name: str) -> None:
    with pytest.raises(TerminalError):
        command.session_target(name)


def test_targets() -> None:
    assert command.target("coder-1") == "=coder-1:"
    assert command.target("%12") == "%12"
    with pytest.raises(TerminalError):
        command.target("%x")
    with pytest.raises(TerminalError, match="NUL"):
        command.quote("a\0b")
    with pytest.raises(TerminalError, match="no program"):
        command.program([])


@pytest.mark.parametrize("word, argument", [("a;", r"a\;"), (";", r"\;"), (";a", ";a"), (r"a\;", r"a\\;")])
def test_a_last_semicolon_is_no_separator(word: str, argument: str) -> None:
    assert command.argument(word) == argument


def test_the_server_inherits_no_key() -> None:
    env = {"PATH": "/bin", "HOME": "/h", "LC_TIME": "C", "XDG_STATE_HOME": "/s", "LANG": "de_DE.UTF-8"}
    secrets = {"OPENAI_API_KEY": "k", "TMUX": "/x,1,0", "HERMES_HOME": "/y", "LD_PRELOAD": "z"}
    assert server_env({**env, **secrets}) == env


@pytest.mark.parametrize("env", [{}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}])
def test_a_locale_without_utf8_is_repaired(env: dict[str, str]) -> None:
    repaired = server_env({"PATH": "/bin", **env})
    assert repaired["LC_CTYPE"] == UTF8 and "LC_ALL" not in repaired


@pytest.mark.parametrize(
    "term, becomes", [("good", "good"), ("", "xterm-256color"), ("dumb", "xterm-256color")]
)
def test_a_poor_terminal_type_is_replaced(tmp_path: Path, term: str, becomes: str) -> None:
    for name in ("g/good", "x/xterm-256color", "d/dumb"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    env = {"TERMINFO": str(tmp_path), "TERM": term, "TMUX": "x", "TMUX_PANE": "%1", "KEPT": "yes"}
    assert attach_env(env) == {"TERMINFO": str(tmp_path), "TERM": becomes, "KEPT": "yes"}


def test_terminal_descriptions_in_hexadecimal_folders(tmp_path: Path) -> None:
    (tmp_path / "67").mkdir()
    (tmp_path / "67" / "good").touch()
    assert known("good", {"TERMINFO_DIRS": f"/none:{tmp_path}"})
    assert not known("../67/good", {"TERMINFO": str(tmp_path)})


def test_the_configuration_names_no_file_of_the_users() -> None:
    text = render_config(fleet="night", root=Path("/nowhere/night"), env={"HOME": "/nowhere"})
    assert "source" not in text and "window-size manual" not in text
    assert "set -g @hermux_fleet night" in text
