"""People at screens while work is delivered: the wall over real workers, and hands on a worker's keyboard."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pytest

from tests.e2e.play import conversation, said, script, shell
from tests.e2e.sandbox import Sandbox, sandbox
from tests.until import until

OWN_SIZE = "120x40"
MESSAGES = 30
TYPES_FOR = 60.0
"""Seconds for which the person keeps typing."""


@pytest.fixture(scope="module")
def floor(hermes: Path) -> Iterator[Sandbox]:
    with sandbox(hermes) as box:
        box.out("spawn", "3", "--name", "w", timeout=300)
        yield box


def sizes(box: Sandbox) -> set[str]:
    """Return the sizes of the workers' windows."""
    rows = box.tmux("list-windows", "-a", "-F", "#{session_name} #{window_width}x#{window_height}")
    return {row.split()[1] for row in rows.splitlines() if row.startswith("w-")}


@dataclass
class Desk:
    """A person's terminal, which is another real tmux: what is drawn there can be read."""

    box: Sandbox
    name: str = "desk"

    def run(self, *words: str) -> str:
        return Sandbox(self.box.home, self.name, self.box.env).tmux(*words)

    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "=mine:")

    def shows(self, *texts: str, timeout: float = 40) -> str:
        until(
            lambda: all(text in self.screen() for text in texts),
            timeout,
            every=0.1,
            what=f"on screen: {texts}",
        )
        return self.screen()

    def keys(self, *names: str) -> None:
        for name in names:
            self.run("send-keys", "-t", "=mine:", "--", name)


@contextmanager
def desk(box: Sandbox, command: str, *, columns: int, rows: int) -> Iterator[Desk]:
    """Run a command in a person's terminal; at the end the terminal is closed."""
    made = Desk(box)
    size = ("-x", str(columns), "-y", str(rows))
    made.run("-f", "/dev/null", "new-session", "-d", *size, "-s", "mine", f"{command}; echo left; exec cat")
    made.run("set-option", "-g", "status", "off")
    try:
        yield made
    finally:
        made.run("kill-server")


def test_the_wall_shows_prompt_and_last_output_and_sizes_nobody(floor: Sandbox) -> None:
    for name in ("w-1", "w-2", "w-3"):
        floor.out("ask", name, script(said(f"last words of {name}")))
    with desk(floor, "hermux attach --wall", columns=130, rows=50) as wall:
        wall.shows(*(f"last words of {name}" for name in ("w-1", "w-2", "w-3")))
        wall.shows(*(f"{name}  ready" for name in ("w-1", "w-2", "w-3")))
        until(lambda: len(re.findall(r"hx-\S+-w-\d ❯", wall.screen())) == 3, 20, what="three prompts")
        assert sizes(floor) == {OWN_SIZE}
        wall.run("resize-window", "-t", "=mine:", "-x", "80", "-y", "24")
        wall.shows("page 1/3", "last words of w-1", "w-1 ❯")
        assert sizes(floor) == {OWN_SIZE}
        sent = floor.out("send", "-q", "w-1", script(shell("sleep 3"), said("done while watched")))
        wall.shows("w-1  busy")
        wall.shows("done while watched", "w-1  ready")
        assert floor.place("w-1", sent) == "done"
        wall.keys("q")
        wall.shows("left")
    until(lambda: sizes(floor) == {OWN_SIZE}, 10)
    assert [floor.worker(name)["attempt"] for name in ("w-1", "w-2", "w-3")] == [1, 1, 1]


def test_what_is_typed_in_an_opened_tile_is_asked(floor: Sandbox) -> None:
    with desk(floor, "hermux a --wall", columns=200, rows=60) as wall:
        wall.shows("▶ w-1", "w-2  ready", "w-3  ready")
        wall.keys("Right")
        wall.shows("▶ w-2")
        wall.keys("Enter")
        wall.shows("what you type goes to w-2")
        wall.run("send-keys", "-l", "-t", "=mine:", "--", "a person asks here")
        wall.shows("a person asks here", "w-2  draft")
        wall.keys("Enter")
        until(lambda: conversation(floor, "a person asks here"), 60, every=0.2)
        wall.keys("C-]")
        wall.shows("▶ w-2", "w-1  ready", "w-2  ready")
    floor.out("wait", "w-2", "--timeout", "60")


def test_attach_without_a_name_and_to_one_that_is_stopped(hermes: Path) -> None:
    with sandbox(hermes) as box:
        box.out("spawn", "2", "--name", "w", timeout=300)
        several = box.terminal("attach")
        several.expect_exact("attach takes one of 2 running workers")
        several.expect_exact("hermux attach w-1")
        several.expect(pexpect.EOF)
        several.close()
        assert several.exitstatus == 2
        box.out("stop", "w-1")
        stopped = box.terminal("attach", "w-1")
        stopped.expect_exact("w-1 is stopped")
        stopped.expect_exact("hermux start w-1")
        stopped.expect(pexpect.EOF)
        stopped.close()
        assert stopped.exitstatus == 1
        only = box.terminal("attach")
        only.expect_exact("[hermux")
        only.expect_exact("w-2")
        only.send("\x1dd")
        only.expect(pexpect.EOF)
        only.close()
        assert only.exitstatus == 0


@dataclass
class Person:
    """Types words into an attached client at random moments, and looks before pressing Enter."""

    box: Sandbox
    worker: str
    terminal: pexpect.spawn
    dice: random.Random
    submitted: list[str] = field(default_factory=list)
    typed: int = 0
    saw_both: int = 0

    def pause(self, least: float, most: float) -> None:
        """Let time pass as a person does; the terminal is read meanwhile, as any terminal reads."""
        end = time.monotonic() + self.dice.uniform(least, most)
        while (left := end - time.monotonic()) > 0:
            with suppress(pexpect.TIMEOUT):
                self.terminal.read_nonblocking(65536, timeout=left)

    def prompt(self) -> str:
        """Return what stands in the prompt; "?" while none is shown."""
        rows = self.box.tmux("capture-pane", "-p", "-t", f"={self.worker}:").splitlines()
        found = [place for place, row in enumerate(rows) if re.match(r"(\S+ )?\S? ?❯", row)]
        if not found:
            return "?"
        rest = rows[found[-1] :]
        body = rest[: next((n for n, row in enumerate(rest) if row.startswith("──")), len(rest))]
        return " ".join("".join(body).partition("❯")[2].split())

    def once(self) -> None:
        """Type a word; then send it, if it stands there alone, or take it back."""
        word = f"draft{self.typed}" + self.dice.choice(("", "x", "yz"))
        self.typed += 1
        for letter in word:
            self.terminal.send(letter)
            self.pause(0.01, 0.2)
        self.pause(0.3, 1.5)
        shown = self.prompt()
        if shown == word and self.dice.random() < 0.5:
            self.submitted.append(word)
            self.terminal.send("\r")
            return
        self.saw_both += int(word in shown and shown != word)
        self.clear()

    def clear(self) -> None:
        """Wipe the prompt, as long as anything of the person's own stands there."""

        def wiped() -> bool:
            if "draft" not in self.prompt():
                return True
            self.terminal.send("\x15")
            return False

        until(wiped, 60, every=0.3, what="the prompt is clear")


@pytest.mark.timeout(480)
def test_a_person_types_at_random_moments_while_messages_are_delivered(floor: Sandbox) -> None:
    """Each message arrives once and byte-equal; each word that was sent is a turn of its own."""
    texts = [f"message {n} of {MESSAGES}: " + "é漢 " * (n % 4) + "end" for n in range(1, MESSAGES + 1)]
    terminal = floor.terminal("attach", "w-3")
    terminal.expect("detach: Ctrl-] then d")
    seed = int(os.environ.get("HERMUX_TEST_SEED", time.time_ns() % 1_000_000))
    person = Person(floor, "w-3", terminal, random.Random(seed))
    with ThreadPoolExecutor(1) as post:
        sent = [post.submit(floor.out, "send", "-q", "w-3", text) for text in texts]
        end = time.monotonic() + TYPES_FOR
        while time.monotonic() < end:
            person.once()
            person.pause(*person.dice.choice([(0.1, 1.5), (2.0, 5.0)]))
        person.clear()
        ids = [each.result() for each in sent]
    terminal.send("\x1dd")
    terminal.expect(pexpect.EOF)
    terminal.close()
    places = until(
        lambda: (
            (found := [floor.place("w-3", each) for each in ids])
            and set(found) <= {"done", "failed"}
            and found
        ),
        300,
        every=0.5,
        what=f"all are delivered (seed {seed})",
    )
    floor.out("wait", "w-3", "--timeout", "120")
    assert places == ["done"] * MESSAGES, f"seed {seed}"
    heard = conversation(floor, texts[-1])
    assert [text for text in heard if "message" in text] == texts, f"seed {seed}"
    assert sorted(text for text in heard if "draft" in text) == sorted(person.submitted), f"seed {seed}"
    assert person.submitted and person.typed > 5
