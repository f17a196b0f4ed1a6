"""Every command on the troubleshooting page, and in the doctor's own advice, exists with its flags."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import build
from orchestrator.cli.verbs import BY_NAME

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
PROSE = ("knows", "reads", "takes", "did", "doctor:")
"""What stands behind the name where it is no command."""
SYMPTOMS = (
    "401", "404", "refused", "no choices", "oauth", "wrong environment", "name conflict", "empty screen",
    "empty folder although the agent said done", "approval that nobody saw", "pending for memory",
    "tool calls printed as text", "held after auth",
)  # fmt: skip


def commands_of_page() -> list[str]:
    """Return every `hermux …` in code, less what stands behind a `#`."""
    text = PAGE.read_text()
    inline = re.findall(r"`(?:cd \"\$\()?(hermux [^`]+?)(?:\)\")?`", text)
    blocks = re.findall(r"^(hermux .+?)(?: +#.*)?$", text, re.MULTILINE)
    return sorted({*inline, *blocks})


def commands_of_source() -> list[str]:
    """Return every `hermux VERB …` in the texts of the doctor; what is filled in is an X."""
    found = set()
    for path in [*ROOT.glob("orchestrator/doctor/*.py"), *ROOT.glob("orchestrator/api/*.py")]:
        if path.parent.name == "doctor" or path.stem in ("doctor", "suspect", "trial"):
            for text in texts(ast.parse(path.read_text())):
                found |= {each.rstrip() for each in re.findall(r"hermux [a-z-][^;',)(\n]*", text)}
    return sorted(each for each in found if each.split()[1] not in PROSE)


def texts(tree: ast.AST) -> list[str]:
    """Return the texts of a module that are no docstrings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append(
                "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
            )
        elif isinstance(node, ast.Constant) and id(node) not in documents | inner:
            found += [node.value] if isinstance(node.value, str) else []
    return found


def known_flags(words: list[str]) -> tuple[set[str], str]:
    """Return the flags of the command that the words begin with, and what is wrong with its name."""
    import typer.main

    words = words[2:] if words[:1] == ["-F"] else words
    verb = BY_NAME.get(words[0]) if words else None
    if verb is None:
        return set(), f"no verb {words[:1]}"
    command: Any = typer.main.get_command(build([verb]))
    command = command.commands[verb.name] if hasattr(command, "commands") else command
    if hasattr(command, "commands") and len(words) > 1:
        if words[1] not in command.commands:
            return set(), f"{words[0]} has no {words[1]!r}"
        command = command.commands[words[1]]
    return {flag for param in command.params for flag in param.opts} | {"-F", "--fleet"}, ""


@pytest.mark.parametrize("line", [*commands_of_page(), *commands_of_source()])
def test_a_command_exists(line: str) -> None:
    words = shlex.split(line.replace("`", ""))[1:]
    known, wrong = known_flags(words)
    assert not wrong, line
    for word in words:
        if re.fullmatch(r"--?[a-z][a-z-]*", word):
            assert word in known, f"{line}: {word}"


def test_each_symptom_has_its_place() -> None:
    text = PAGE.read_text().lower()
    heads = " | ".join(re.findall(r"^###? (.+)$", text, re.MULTILINE))
    assert [symptom for symptom in SYMPTOMS if symptom not in heads] == []
    assert len(commands_of_page()) > 30 and len(commands_of_source()) > 15
