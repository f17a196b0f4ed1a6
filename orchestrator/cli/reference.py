"""The reference pages, made from the code: `python -m orchestrator.cli.reference docs`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.cli.schemas import SCHEMAS
from orchestrator.cli.schemas.shape import Schema
from orchestrator.cli.verbs import VERBS

EXIT_CODES = (
    (0, "ok"),
    (1, "the job failed: something outside is missing or refuses"),
    (2, "wrong usage: nothing was done"),
    (3, "a worker failed, or its turn did"),
    (5, "a person is needed: an approval or a question waits"),
    (124, "timed out; nothing was undone"),
    (130, "interrupted"),
)
ERRORS = (
    "Errors are one line on stderr, `hermux: what is wrong`, and a second one, `  → what to type next`. Data goes "
    "to stdout, talk to stderr."
)


def pages() -> dict[str, str]:
    """Return the content of each generated page by its file name."""
    return {"reference.md": commands(), "json.md": documents()}


def commands() -> str:
    """Return the page of commands, flags and exit codes."""
    from typer.main import get_command

    from orchestrator.cli.main import build

    root: Any = get_command(build(VERBS))
    names = [verb for verb in VERBS if not verb.alias_of]
    lines = [
        "# Commands",
        "",
        "Made from the code by `scripts/gen-reference`.",
        "",
        ERRORS,
        "",
        "## Exit codes",
        "",
    ]
    lines += ["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in EXIT_CODES), ""]
    lines += ["## Verbs", "", "| verb | what it does |", "|---|---|"]
    lines += [f"| [`{verb.name}`](#hermux-{verb.name}) | {verb.help} |" for verb in names]
    for verb in names:
        aliases = [each.name for each in VERBS if each.alias_of == verb.name]
        lines += ["", *_command(root.commands[verb.name], f"hermux {verb.name}", aliases)]
    return "\n".join(lines) + "\n"


def documents() -> str:
    """Return the page of JSON documents."""
    lines = [
        "# JSON",
        "",
        "Made from the code by `scripts/gen-reference`. Every document carries `schema`, its version; fields may be",
        "added within a version, so readers ignore those that they do not know. `logs` and `events` print one object",
        "a line, with `v` in its place.",
    ]
    for schema in SCHEMAS:
        lines += ["", f"## {', '.join(schema.verbs)}", "", *_schema(schema)]
    return "\n".join(lines) + "\n"


def _command(command: Any, path: str, aliases: list[str]) -> Iterator[str]:
    yield f"{'##' if path.count(' ') == 1 else '###'} {path}"
    yield ""
    yield from _usage(command, path)
    text = " ".join((command.help or "").split())
    if aliases:
        text += f" Also: {', '.join(f'`{name}`' for name in aliases)}."
    yield from (text, "")
    rows = [_parameter(each) for each in command.params if each.name != "help"]
    if rows:
        yield from ("| | |", "|---|---|", *rows)
    for name, inner in getattr(command, "commands", {}).items():
        yield ""
        yield from _command(inner, f"{path} {name}", [])


def _usage(command: Any, path: str) -> Iterator[str]:
    given = [each for each in command.params if each.param_type_name == "argument"]
    arguments = [_word(each) if each.required else f"[{_word(each)}]" for each in given]
    flags = ["[FLAGS]"] if any(each.param_type_name == "option" for each in command.params) else []
    if getattr(command, "commands", None):
        arguments = ["|".join(command.commands)]
    yield from ("```", " ".join([path, *arguments, *flags]), "```", "")


def _parameter(each: Any) -> str:
    if each.param_type_name == "argument":
        return f"| `{_word(each)}` | {each.help or ''} |".replace(" | R=", " \\| R=")
    value = f" {each.metavar}" if each.metavar and not each.is_flag else ""
    shown = ", ".join(f"`{name}{value}`" for name in each.opts)
    default = each.default
    given = f" (default {default:g})" if isinstance(default, float) and default else ""
    if isinstance(default, int | str) and not isinstance(default, bool) and default not in ("", 0):
        given = f" (default {default})"
    variable = f" (or `{each.envvar}`)" if each.envvar else ""
    return f"| {shown} | {each.help or ''}{given}{variable} |".replace("<", "&lt;")


def _word(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _schema(schema: Schema) -> Iterator[str]:
    yield from ("| field | type | |", "|---|---|---|")
    for field in schema.fields:
        kind = field.kind.replace("|", " or ")
        yield f"| `{field.path}` | {kind} | {field.what} |"


def main(arguments: list[str]) -> int:
    """Write the pages into a folder; with `--check`, only tell which differ (exit code 1)."""
    check = "--check" in arguments
    folder = Path(next((each for each in arguments if not each.startswith("-")), "docs"))
    stale = [name for name, text in pages().items() if not _same(folder / name, text)]
    for name in stale:
        if not check:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(pages()[name])
        sys.stdout.write(f"{folder / name} {'is out of date' if check else 'written'}\n")
    return 1 if check and stale else 0


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
