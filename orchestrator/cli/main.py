"""The command `hermux`: finds the verb, runs it, and turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from orchestrator.cli.quick import quick
from orchestrator.cli.show import out, runnable, talk
from orchestrator.cli.verbs import BY_NAME, VERBS, Verb
from orchestrator.errors import HermuxError, UsageError
from orchestrator.version import __version__

if TYPE_CHECKING:
    import typer

FLEET_FLAGS = ("-F", "--fleet")
SWITCHES = ("--json", "-q", "--quiet", "-v", "--verbose")
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run one command line and exit with its code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def run(words: list[str]) -> int:
    """Run one command line and return its exit code; errors have been told on stderr."""
    try:
        words = _verb_first(words)
        return 0 if quick(words) else _run(_watch(words))
    except HermuxError as error:
        tell(error, _fleet(words))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        tell(HermuxError(_system(error)))
        return 1


def tell(error: HermuxError, fleet: str = "") -> None:
    """Print an error as a person reads it: what is wrong, then what to type next."""
    talk(f"hermux: {error}" + (f"\n  → {runnable(error.hint, fleet)}" if error.hint else ""))


def _fleet(words: Sequence[str]) -> str:
    """Return the fleet that a command line names, "" if none."""
    for place, word in enumerate(words):
        if word in FLEET_FLAGS and place + 1 < len(words):
            return words[place + 1]
        if word.startswith("--fleet="):
            return word.removeprefix("--fleet=")
    return ""


def build(verbs: Sequence[Verb]) -> typer.Typer:
    """Return the command line with these verbs; each one's module is imported."""
    import typer

    app = typer.Typer(
        name="hermux",
        help="Launch, watch and drive a fleet of Hermes Agents in tmux.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for verb in verbs:
        target = getattr(importlib.import_module(f"orchestrator.cli.{verb.module}"), verb.target)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=verb.name, help=verb.help)
        else:
            app.command(
                verb.name, help=target.__doc__ or verb.help, short_help=verb.help, hidden=bool(verb.alias_of)
            )(target)
    return app


def _root() -> None:
    """Launch, watch and drive a fleet of Hermes Agents in tmux."""


def _run(words: list[str]) -> int:
    if not words:
        words = ["--help"]
    if words[0] in ("--version", "-V", "version"):
        out(__version__)
        return 0
    verb = BY_NAME.get(words[0])
    if verb is None and not words[0].startswith("-"):
        raise _unknown(words[0])
    import typer
    from typer.exceptions import TyperException

    app = build(VERBS if verb is None else [verb])
    try:
        code = app(words, prog_name="hermux", standalone_mode=False)
    except TyperException as error:
        said = _sentence(error.format_message())
        raise UsageError(said, hint=_dash(words, said) or _help(words)) from error
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _verb_first(words: list[str]) -> list[str]:
    """Move the flags that every verb has behind the verb: `hermux -F x ls` is `hermux ls -F x`."""
    moved: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        if rest[0] in FLEET_FLAGS and len(rest) > 1:
            moved += [rest.pop(0), rest.pop(0)]
        elif rest[0] in SWITCHES or rest[0].startswith("--fleet="):
            moved.append(rest.pop(0))
        else:
            break
    return [*rest[:1], *moved, *rest[1:]] if rest else moved


def _watch(words: list[str]) -> list[str]:
    """Give `-w` its usual 2 seconds where no number follows."""
    if words[:1] not in (["ls"], ["ps"], ["status"], ["inbox"]):
        return words
    found: list[str] = []
    for place, word in enumerate(words):
        found.append(word)
        after = words[place + 1] if place + 1 < len(words) else ""
        if word in ("-w", "--watch") and not after.replace(".", "", 1).isdigit():
            found.append("2")
    return found


def _unknown(word: str) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(word, BY_NAME, n=1)
    hint = f"did you mean: hermux {close[0]}" if close else "hermux --help lists the verbs"
    return UsageError(f"no verb {word!r}", hint=hint)


def _sentence(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line[:1].lower() + line[1:]


def _dash(words: list[str], said: str) -> str:
    """Return what to type where a text that begins with a dash was taken for a flag, else ""."""
    if words[0] not in ("send", "ask", "answer") or not said.startswith("no such option"):
        return ""
    return f'a text that begins with a dash goes after "--": hermux {words[0]} W -- TEXT'


def _help(words: list[str]) -> str:
    return f"hermux {words[0]} --help" if words[0] in BY_NAME else "hermux --help"


def _system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


if __name__ == "__main__":
    main()
