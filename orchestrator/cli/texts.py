"""Where the text of a message comes from: the command line, a file, or standard input."""

from __future__ import annotations

import sys

from orchestrator.errors import UsageError


def text_and_workers(words: list[str], file: str) -> tuple[str, list[str]]:
    """Split `W… TEXT`; with `--file`, all words are workers. `-` reads standard input. Raises UsageError."""
    if file:
        return _file(file), words
    if len(words) < 2:
        raise UsageError(
            "no text was given", hint="write: W TEXT, or W --file FILE, or W - for standard input"
        )
    *workers, text = words
    return (_standard_input() if text == "-" else text), workers


def _file(name: str) -> str:
    from orchestrator.api.order import read_text

    return _standard_input() if name == "-" else read_text(name)


def _standard_input() -> str:
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"standard input, line {line}: not UTF-8") from error
