"""Every class of text arrives as one message, byte for byte, whatever Hermes does to what is typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from orchestrator.rehearsal.server import RehearsalServer
from tests.e2e.play import user_texts
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

ROOMY = 4_000_000
"""Tokens of context: room for a megabyte of text."""
TEXTS = {
    "one line": "Say hello.",
    "many lines": "\n".join(f"line {n}" for n in range(40)) + "\n\n\nafter three blank lines",
    "four lines": "a\n  indented\n\nd",
    "bang": "!ls -la",
    "dash": "-v --help is what I ask about",
    "slash": "/exit is a command, this is a text",
    "slash alone": "/quit",
    "existing path": "/etc/hostname what is this?",
    "home": "~/.hermes and ~root are paths",
    "quoted path": '"/etc/hostname" in quotes',
    "semicolon": "echo a; echo b;",
    "backslash": "a trailing backslash \\",
    "tmux formats": "#{pane_id} #S #[fg=red] #(touch /tmp/never) %if",
    "tabs": "a\tb\t\tc\n\tindented",
    "quotes": """it's "quoted" `twice` and $HOME $(id) \\n ${x:-y}""",
    "cjk": "请用中文回答：你好，世界。日本語とハングル 한국어",
    "emoji": "🙂 👨‍👩‍👧 🏳️‍🌈 é (combining: e\u0301) \u202eright to left\u202c שלום",
    "at file": "look at @file:/etc/hostname and @diff please",
    "at url": "@url:http://127.0.0.1:9/x is not to be fetched",
    "paste form": "[Pasted text #1: 3 lines → /etc/hostname]",
    "paste form inside": "before [Pasted text #7: 2 lines → /nowhere] after",
    "escape-like": "\\x1b[200~ ^[[A [200~pasted[201~ ESC[6n <0;35;12M \\033[31m",
    "real escapes": "\x1b[31mred\x1b[0m \x07bell \x1b[200~x\x1b[201~ \x7f",
    "number": "42",
    "yes": "y",
    "prompt glyph": "❯ and ⚕ ❯ msg=interrupt · /queue · Ctrl+C cancel",
    "steps in prose": 'a {"brace} that is no JSON, [1, 2',
    "long line": "word " * 1_999 + "end",
    "400 characters": "x" * 400,
    "trailing colon": "Answer with these words:",
    "question": "?",
    "hash": "# heading\n\n- item\n- [ ] task",
}
MEGABYTE = "".join(f"{n:07d} é漢 the quick brown fox; #{{x}} $HOME\n" for n in range(24_000)).strip()


@dataclass(frozen=True, slots=True)
class Mail:
    """A worker on a model with room, and the ids of what was sent to it."""

    box: Sandbox
    model: RehearsalServer
    ids: dict[str, str]

    def delivered(self, name: str) -> dict[str, Any]:
        """Wait until a text was taken, and return its file."""
        file = self.box.dir / "workers" / "mail" / "inbox" / "done" / f"{self.ids[name]}.json"
        until(lambda: self.box.place("mail", self.ids[name]) in ("done", "failed"), 150, every=0.1, what=name)
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def user_texts(self) -> list[str]:
        """Return every user message of the conversation that the model has seen."""
        newest = max(self.model.requests, key=lambda request: len(request.messages), default=None)
        return user_texts(list(newest.messages)) if newest else []

    def count(self, text: str) -> int:
        """Wait until the model was asked with a text (its receipt comes a moment earlier), and count it."""
        until(lambda: text in self.user_texts(), 30, every=0.1, what=text[:60])
        return self.user_texts().count(text)


@pytest.fixture(scope="module")
def mail(hermes: Path) -> Iterator[Mail]:
    """All texts are queued at once: they are delivered in order, each in a turn of its own."""
    with RehearsalServer(context=ROOMY) as model, sandbox(hermes) as box:
        box.hire("mail", "--endpoint", model.url)
        ids = {name: box.out("send", "-q", "mail", "-", stdin=text) for name, text in TEXTS.items()}
        yield Mail(box, model, ids)


def send(mail: Mail, text: str, *flags: str) -> str:
    """Send a text of a test's own, and return its id."""
    return mail.box.out("send", "-q", *flags, "mail", "-", stdin=text)


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.startswith("at ")])
def test_arrives_byte_for_byte(mail: Mail, name: str) -> None:
    text, message = TEXTS[name], mail.delivered(name)
    assert message["receipt"]["method"] in ("paste", "reference")
    assert message["receipt"]["sha256"] == sha256(text.encode()).hexdigest()
    assert message["changed"] == []
    assert mail.count(text) == 1


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("at ")])
def test_what_hermes_would_replace_is_read_from_a_file(mail: Mail, name: str) -> None:
    """The request names a file that holds the text, with its size and digest."""
    text, message = TEXTS[name], mail.delivered(name)
    assert message["receipt"]["method"] == "read_file"
    digest = sha256(text.encode()).hexdigest()
    until(lambda: any(digest in said for said in mail.user_texts()), 30, every=0.1)
    request = [said for said in mail.user_texts() if digest in said]
    assert len(request) == 1
    found = re.search(r"file (/\S+) \((\d+) bytes", request[0])
    assert found, request
    assert Path(found[1]).read_bytes() == text.encode()
    assert int(found[2]) == len(text.encode())
    assert message["receipt"]["sha256"] == sha256(request[0].encode()).hexdigest()


def test_in_order_and_nothing_else(mail: Mail) -> None:
    for name in TEXTS:
        mail.delivered(name)
    plain = [text for name, text in TEXTS.items() if not name.startswith("at ")]
    mail.count(plain[-1])
    assert [text for text in mail.user_texts() if text in plain] == plain
    assert not Path("/tmp/never").exists()
    assert mail.box.worker("mail")["attempt"] == 1


def test_a_megabyte(mail: Mail) -> None:
    assert len(MEGABYTE.encode()) > 1_000_000
    (mail.box.home / "big").write_text(MEGABYTE)
    done = mail.box.run("ask", "mail", "--file", "big", "--json", timeout=170)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer = json.loads(done.stdout)
    assert answer["receipt"]["method"] == "reference"
    assert answer["receipt"]["sha256"] == sha256(MEGABYTE.encode()).hexdigest()
    assert mail.count(MEGABYTE) == 1


def test_line_ends_and_outer_blanks_are_said_to_change(mail: Mail) -> None:
    sent = send(mail, "\r\n  windows\r\nlines \n\n")
    done = mail.box.run("wait", "--message", sent, "--timeout", "150")
    assert done.returncode == 0, done.stderr
    assert mail.count("windows\nlines") == 1
    file = mail.box.dir / "workers" / "mail" / "inbox" / "done" / f"{sent}.json"
    assert json.loads(file.read_text())["changed"] == ["line ends became LF", "outer blanks removed"]


def test_a_text_with_a_dash_on_the_command_line(mail: Mail) -> None:
    shown = mail.box.out("send", "--wait", "--timeout", "150", "mail", "--", "--json is what I say")
    assert "delivered  by paste" in shown
    assert mail.count("--json is what I say") == 1


def test_slash_sends_a_command(mail: Mail) -> None:
    for name in TEXTS:
        mail.delivered(name)
    mail.box.out("wait", "mail", "--timeout", "150")
    before = len(mail.model.requests)
    mail.box.out("send", "--slash", "--wait", "--timeout", "60", "mail", "/title the mail room")
    until(lambda: "the mail room" in mail.box.out("peek", "mail", "-n", "40"), 20, every=0.3)
    assert len(mail.model.requests) == before
    assert mail.box.worker("mail")["attempt"] == 1


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (b"fine\nbut \xff\xfe not", "standard input, line 2: not UTF-8"),
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"a\0b", "NUL"),
    ],
)
def test_what_is_no_text_is_refused(mail: Mail, stdin: bytes, says: str) -> None:
    before = sorted((mail.box.dir / "workers" / "mail" / "inbox").glob("*/*.json"))
    done = mail.box.run("send", "mail", "-", stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr.splitlines()[0]
    left = set((mail.box.dir / "workers" / "mail" / "inbox").glob("*/*.json"))
    assert {path.name for path in left} <= {path.name for path in before}


@pytest.mark.parametrize("text", ["no slash", "/two\nlines"])
def test_slash_takes_one_line_with_a_slash(mail: Mail, text: str) -> None:
    done = mail.box.run("send", "--slash", "mail", "-", stdin=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert "starts with '/'" in done.stderr
