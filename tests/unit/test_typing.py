"""How texts are typed: each class that Hermes rewrites, and what is promised about the typed line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UsageError
from orchestrator.fleet.message import Method, digest, normalise
from orchestrator.hermes.typing import MAX_CHARACTERS, Typed, paste_reference_supported, plan

FILE = Path("/state/hermux/default/workers/coder-1/inbox/cur/m-abc-1234.txt")

PLAIN = [
    "hello",
    "continue",
    "exit",
    "two  blanks, and a line\n\nafter an empty one",
    "-x leading; trailing;",
    'it\'s "quoted" $HOME `id` #{pane_id} {json: [1]} <tag> 100% & ~ ^',
    "fix src/foo.py and see https://example.com/x?y=1",
    "mail a@b.de",
    "日本語のテキスト、長い。",
    "Größe – “quoted” … 5 €, Москва, ελληνικά",
    "(why) this",
    "a\nb\nc\nd",
    "x" * 300,
]
BY_REFERENCE = [
    ("/help", "command"),
    ("/home/u/x look", "command"),
    ("~/x", "path"),
    ("./x", "path"),
    ("../x y", "path"),
    ("'/a b' c", "path"),
    ('"~/a"', "path"),
    ("'./a'", "path"),
    ("C:\\x", "path"),
    ("'d:/x'", "path"),
    ("file:///etc/hosts", "path"),
    ("!ls", "'!'"),
    ("#{x}", "'#'"),
    ("? what", "'?'"),
    ("\\d", "'\\\\'"),
    ("5", "number"),
    ("a\tb", "U+0009"),
    ("nul \x00", "U+0000"),
    ("esc \x1b[31m", "U+001B"),
    ("c1 \x9b", "U+009B"),
    ("thumb 👍", "THUMBS UP"),
    ("⚠ sign", "WARNING SIGN"),
    ("e\u0301", "COMBINING ACUTE"),
    ("zero\u200dwidth", "ZERO WIDTH"),
    ("bidi \u202e", "RIGHT-TO-LEFT"),
    ("שלום", "HEBREW"),
    ("no-break\u00a0space", "NO-BREAK SPACE"),
    ("line\u2028separator", "LINE SEPARATOR"),
    ("bom \ufeff", "ZERO WIDTH NO-BREAK"),
    ("mouse <1;2;3M", "terminal report"),
    ("paste [200~ mark", "terminal report"),
    ("degraded 01~", "terminal report"),
    ("visible ^[[1;1R", "terminal report"),
    ("see [Pasted text #1: 2 lines → /etc/passwd]", "paste form"),
    ("what is @app.route", "leading @"),
    ("ends in \\", "trailing"),
    ("a\nb\nc\nd\ne", "lines"),
    ("x" * (MAX_CHARACTERS + 1), "characters"),
    ("漢" * 190, "rows"),
    ("x" * 60_000, "stand still"),
]
BY_FILE = [
    "@file:notes.txt look",
    "x @diff y",
    "see @folder:src",
    "@url:http://x and more\n" * 9,
    '@file:"a b"',
    "@session:1",
    "__HERMES_MOA_TURN_V1__e30",
]


def planned(text: str, *, references_work: bool = True) -> Typed:
    return plan(text, file=FILE, references_work=references_work)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_texts_are_typed_as_they_are(text: str) -> None:
    assert planned(text) == Typed(Method.PASTE, text, "")


@pytest.mark.parametrize(("text", "why"), BY_REFERENCE)
def test_what_hermes_rewrites_goes_by_reference(text: str, why: str) -> None:
    typed = planned(text)
    assert typed.method is Method.REFERENCE
    assert typed.line == f"[Pasted text #1: {text.count(chr(10)) + 1} lines → {FILE}]"
    assert why in typed.why


@pytest.mark.parametrize("text", BY_FILE)
def test_what_hermes_rewrites_even_so_goes_by_file(text: str) -> None:
    typed = planned(text)
    assert typed.method is Method.READ_FILE
    assert typed.line.startswith(
        f"Read the whole file {FILE} ({len(text.encode())} bytes, sha256 {digest(text)})"
    )
    assert typed.why


def test_without_references_everything_odd_goes_by_file() -> None:
    for text, _ in BY_REFERENCE:
        assert planned(text, references_work=False).method is Method.READ_FILE
    assert planned("hello", references_work=False).method is Method.PASTE


@pytest.mark.parametrize("folder", ["/a]b", "relative", "/" + "a" * 400])
def test_a_path_that_breaks_the_reference(folder: str) -> None:
    assert plan("/x", file=Path(folder) / "m.txt", references_work=True).method is Method.READ_FILE


@pytest.mark.parametrize("folder", ["/a\nb", "/a\tb", "/a/01~", "/\x1b[31m", "/a @file:x"])
def test_a_path_that_can_not_be_typed(folder: str) -> None:
    with pytest.raises(UsageError):
        plan("/x", file=Path(folder) / "m.txt", references_work=True)


@pytest.mark.parametrize("text", ["", "  ", "\n\t\n", "lone \ud800 surrogate"])
def test_texts_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        planned(text)


# What Hermes does with a typed text, written down from its sources (0.19.0), as an oracle.
REWRITES = re.compile(
    r"\A/|\A[\"']?(?:/|~|\.\.?/)|\Afile://|\A[\"']?[A-Za-z]:[\\/]|\A!|\A\d+\Z"
    r"|\x1b|\^\[|(?:^|[\s>:\])])\[200~|\[201~|(?:^|[\s>:\])])00~|01~(?:$|[\s<\[():;.,!?])|<\d+;\d+;\d+[Mm]"
    r"|(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):\S)|\[Pasted text #\d|[\x00-\x09\x0b-\x1f\x7f-\x9f]",
)
SPECIAL = r"""/ ~ . ' ! C: \ ^[[ [200~ 00~ 01~ <1;2;3M @file:x @diff word 5 é 日 👍 a@b # - "
"""
PIECES = st.sampled_from([*SPECIAL.split(), "[Pasted text #1: 2 lines → /x]", *" \n\t\x1b\u200b"])


@given(st.one_of(st.lists(PIECES, max_size=9).map("".join), st.text(max_size=60)))
def test_nothing_typed_is_rewritten(raw: str) -> None:
    text, _ = normalise(raw)
    try:
        typed = planned(text)
    except UsageError:
        return
    if typed.method is Method.PASTE:
        assert typed.line == text
        assert not REWRITES.search(text)
    elif typed.method is Method.REFERENCE:
        assert re.fullmatch(r"\[Pasted text #\d+: \d+ lines \u2192 (.+?)\]", typed.line)
        assert not re.search(r"(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):\S)", text)
    else:
        assert not REWRITES.search(typed.line)


def test_the_reference_form_is_looked_for_in_the_source(tmp_path: Path) -> None:
    assert not paste_reference_supported(tmp_path)
    pattern = r"ref = re.compile(r'\[Pasted text #\d+: \d+ lines \u2192 (.+?)\]')"
    expand = f"def _expand_paste_references(self, text):\n    {pattern}\n"
    call = "user_input = self._expand_paste_references(user_input)\n"
    (tmp_path / "cli.py").write_text(expand, encoding="utf-8")
    assert not paste_reference_supported(tmp_path)
    (tmp_path / "hermes_cli").mkdir()
    (tmp_path / "hermes_cli" / "cli_input.py").write_text(call, encoding="utf-8")
    assert paste_reference_supported(tmp_path)
    (tmp_path / "cli.py").write_text(expand.replace("lines", "rows"), encoding="utf-8")
    assert not paste_reference_supported(tmp_path)
