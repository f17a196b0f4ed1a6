"""Faults that a person's hands and terminal make."""

from __future__ import annotations

import sys
import time

import pexpect

from orchestrator.selftest.fault import Blow, Fault
from orchestrator.selftest.stage import Stage

A_WHILE = 2.0
"""Seconds for which a person leaves things as they are."""
DRAFT = "a half-typed thought"


def attach(stage: Stage, victim: str, *, columns: int, rows: int) -> pexpect.spawn:
    """Put a real terminal on a worker's screen, as `hermux attach` does."""
    words = ["-m", "orchestrator", "attach", victim, "-F", stage.fleet.name]
    client = pexpect.spawn(
        sys.executable, words, env=dict(stage.fleet.env), dimensions=(rows, columns), timeout=20
    )
    stage.until(lambda: stage.tmux("list-clients", "-t", f"={victim}:", "-F", "#{client_tty}") != "", 20)
    return client


def leave(client: pexpect.spawn) -> None:
    """Close the terminal, as a person closes its window."""
    client.close(force=True)


def types(stage: Stage, victim: str) -> Blow | str:
    """A person types a draft, lets it stand while a message waits, wipes it and leaves."""
    client = attach(stage, victim, columns=120, rows=40)
    stage.until(stage.through, 60)
    client.send(DRAFT)
    shown = stage.until(lambda: DRAFT in stage.tmux("capture-pane", "-p", "-t", f"={victim}:"), 20)
    if shown is None:
        leave(client)
        return "the draft did not show in the pane"
    ident = stage.send(victim)

    def wipe() -> None:
        time.sleep(A_WHILE)
        waited.append(stage.fleet.message(ident)[0])
        client.send("\x15" + "\x7f" * len(DRAFT))
        time.sleep(0.5)
        leave(client)

    waited: list[str] = []
    return Blow(
        noticed=lambda: stage.entry(victim).get("word") == "draft",
        heal=wipe,
        wrong=lambda: "the message was typed into the draft" if waited == ["done"] else "",
    )


def tiny(stage: Stage, victim: str) -> Blow | str:
    """A terminal of 20x5 attaches for 2 s while messages come."""
    client = attach(stage, victim, columns=20, rows=5)
    stage.send(victim)

    def close() -> None:
        time.sleep(A_WHILE)
        leave(client)

    return Blow(
        heal=close,
        recovered=lambda: (
            stage.tmux("display-message", "-p", "-t", f"={victim}:", "#{window_width}x#{window_height}")
            == "120x40"
        ),
    )


def copy_mode(stage: Stage, victim: str) -> Blow | str:
    """The pane is put into copy mode, which swallows keys, for 2 s."""
    pane = str(stage.entry(victim).get("pane"))
    stage.tmux("copy-mode", "-t", pane)
    stage.send(victim)

    def end() -> None:
        time.sleep(A_WHILE)
        stage.tmux("send-keys", "-t", pane, "-X", "cancel")

    return Blow(heal=end)


def second_window(stage: Stage, victim: str) -> Blow | str:
    """A window and a split are opened in the worker's session, and stand in front while messages come."""
    window = stage.tmux("new-window", "-P", "-F", "#{window_id}", "-t", f"={victim}:", "cat")
    split = stage.tmux(
        "split-window", "-P", "-F", "#{pane_id}", "-t", str(stage.entry(victim)["pane"]), "cat"
    )
    ident = stage.send(victim)

    def close() -> None:
        stage.until(lambda: stage.fleet.message(ident)[0] == "done", 60)
        stage.tmux("kill-window", "-t", window)
        stage.tmux("kill-pane", "-t", split)

    return Blow(heal=close)


FAULTS = (
    Fault("user-types", "a person types a draft and wipes it", types),
    Fault("tiny-client", "a terminal of 20x5 attaches", tiny),
    Fault("copy-mode", "the pane is in copy mode for 2 s", copy_mode),
    Fault("second-window", "a window and a split in the worker's session", second_window),
)
