"""Variables of a worker: the file `env` that its launch script reads, and `--env-file` files of the user."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.store.files import write_text
from orchestrator.store.paths import WorkerPaths

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def check_variable(name: str, value: str, *, where: str = "") -> None:
    """Raise UsageError for a name or value that no environment can hold; the value is never shown."""
    prefix = f"{where}: " if where else ""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{prefix}{name[:40]!r} is no name of a variable", hint="use letters, digits and '_'"
        )
    if "\0" in value:
        raise UsageError(f"{prefix}the value of {name} holds a NUL byte")


def write_env(paths: WorkerPaths, variables: Mapping[str, str]) -> None:
    """Write `export NAME='value'` lines, mode 0600; raises UsageError for a bad name."""
    for name, value in variables.items():
        check_variable(name, value)
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    write_text(paths.env, "".join(lines), mode=0o600)


def read_env(paths: WorkerPaths) -> dict[str, str]:
    """Read the file back; an absent one is an empty mapping."""
    try:
        words = shlex.split(paths.env.read_text())
    except FileNotFoundError:
        return {}
    pairs = (word.partition("=") for word in words if word != "export")
    return {name: value for name, _, value in pairs}


def parse_env_file(path: Path) -> dict[str, str]:
    """Read a file of `KEY=VALUE` lines: `#` comments, `export`, single and double quotes.

    In double quotes `\\n \\t \\r \\" \\\\ \\$` are known; nothing else is expanded. Raises UsageError with
    file and line; the message never holds a value.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(_decoded(path).splitlines(), start=1):
        bare = line.strip().removeprefix("export ").lstrip()
        if not bare or bare.startswith("#"):
            continue
        where = f"{path}:{number}"
        name, equals, value = bare.partition("=")
        if not equals:
            raise UsageError(f"{where}: no '=' in this line", hint="write KEY=VALUE, one a line")
        check_variable(name.rstrip(), value, where=where)
        found[name.rstrip()] = _unquoted(value.strip(), where)
    return found


def _decoded(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}", hint="--env-file takes a file of KEY=VALUE lines"
        ) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8", hint="save the file as UTF-8") from error


def _unquoted(value: str, where: str) -> str:
    if value[:1] in ("'", '"'):
        quote = value[0]
        end = _closing(value, quote)
        rest = value[end + 1 :].strip()
        if end < 0 or (rest and not rest.startswith("#")):
            raise UsageError(f"{where}: the quote is not closed, or text follows it")
        inner = value[1:end]
        return inner if quote == "'" else re.sub(r'\\([ntr"\\$])', lambda m: _ESCAPES[m[1]], inner)
    return re.split(r"\s#", value, maxsplit=1)[0].rstrip()


def _closing(value: str, quote: str) -> int:
    at = 1
    while at < len(value):
        if value[at] == "\\" and quote == '"':
            at += 1
        elif value[at] == quote:
            return at
        at += 1
    return -1
