"""Which part may import which: arrows point one way, and outside libraries have one way in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "orchestrator"
BASE = {"errors", "version"}
MAY_IMPORT = {
    "": {"api"} | BASE,
    "__main__": {"cli"} | BASE,
    "api": {"store", "fleet", "hermes", "health", "terminal", "git", "doctor"} | BASE,
    "cli": {"api", "fleet", "selftest"} | BASE,
    "doctor": {"store", "fleet", "hermes", "health", "terminal"} | BASE,
    "errors": set(),
    "fleet": {"errors"},
    "git": {"errors"},
    "health": {"fleet", "hermes"} | BASE,
    "hermes": {"fleet"} | BASE,
    "rehearsal": BASE,
    "selftest": {"api", "doctor", "store", "fleet", "hermes", "terminal", "rehearsal"} | BASE,
    "store": {"fleet"} | BASE,
    "supervise": {"fleet", "store", "terminal", "hermes", "health", "git"} | BASE,
    "terminal": {"errors"},
    "version": set(),
}
OUTSIDE = {"libtmux": ("terminal/",), "pynvml": ("health/gpu.py",), "typer": ("cli/",), "rich": ("cli/",)}
IMPURE = {
    "os",
    "time",
    "random",
    "subprocess",
    "socket",
    "threading",
    "datetime",
    "logging",
    "tempfile",
    "uuid",
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "hermes/plugin" not in path.as_posix())


def imports(path: Path) -> Iterator[str]:
    """Every dotted name that a file imports, also inside functions; `from . import x` resolved."""
    here = ("orchestrator", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports(path: Path) -> None:
    file = path.relative_to(PACKAGE).as_posix()
    part = file.split("/")[0].removesuffix(".py").removesuffix("__init__")
    part = "api" if part.startswith("api_") else part
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "orchestrator":
            target = "api" if rest[0].startswith("api_") else rest[0]
            assert target in MAY_IMPORT[part] | {part}, f"{file} imports {name}"
        assert file.startswith(OUTSIDE.get(top, "")), f"{file} imports {name}: only {OUTSIDE[top]} may"
        assert not (part == "fleet" and top in IMPURE), f"{file} imports {name}, but fleet is pure"
