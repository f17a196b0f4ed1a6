"""The Hermes that workers run: where it is, which Python runs it, and what this version does differently."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from orchestrator.doctor.check import Check, fail, ok, warn
from orchestrator.hermes.install import HINT, HermesInstall, find_hermes
from orchestrator.hermes.typing import paste_reference_supported

TESTED = (0, 19)
NEWEST = (0, 22)
"""The newest version of which anything was measured: docs/hermes-versions.md."""
PLUGINS = "hermes_cli/plugins.py"
HOOKS = ("pre_llm_call", "post_llm_call", "pre_api_request", "api_request_error")
"""Without these the plugin cannot tell how a turn goes."""


def hermes(env: Mapping[str, str]) -> Check:
    """Look at the installation; nothing of Hermes is started but its interpreter."""
    found = find_hermes(env)
    number = _numbers(found.version)
    python = _python(found)
    place = f"{found.path}, {python}, {found.site_packages or 'site-packages not found'}"
    seen = f"{found.version} at {place}"
    if number is None:
        return warn("hermes", f"says no version: {place}", f"to see it: {found.path} --version")
    if number[:2] < TESTED:
        return fail("hermes", f"{found.version} is older than 0.19, of which hermux knows nothing", HINT)
    if number[:2] > NEWEST:
        return warn(
            "hermes",
            f"{seen}; newer than any tested",
            "if workers misbehave: pip install hermes-agent==0.19.0",
        )
    return ok("hermes", seen)


def quirks(env: Mapping[str, str]) -> Check:
    """Look into Hermes' source for what hermux depends on and where versions differ."""
    found = find_hermes(env)
    folder = found.site_packages
    if folder is None:
        return warn(
            "hermes quirks",
            "its source is not found: long messages go as 'read this file'",
            "point HERMUX_HERMES at the `hermes` of a virtual environment",
        )
    missing = _missing_hooks(folder)
    if missing:
        return fail(
            "hermes quirks",
            f"its plugins have no {', '.join(missing)}: workers would run on the screen alone",
            HINT,
        )
    told = [
        "long messages by paste reference"
        if paste_reference_supported(folder)
        else "long messages as 'read this file' (no paste references)"
    ]
    if (_numbers(found.version) or TESTED)[:2] >= (0, 22):
        told += [
            "first-run question answered",
            "recovery ladder off",
            "`hermux interrupt` may not work (use: hermux keys W C-c)",
        ]
        return warn("hermes quirks", "; ".join(told), "docs/hermes-versions.md has what differs in 0.22")
    return ok("hermes quirks", "; ".join(told))


def _python(found: HermesInstall) -> str:
    if found.python is None:
        return "interpreter not seen (a wrapper)"
    try:
        done = subprocess.run(
            [found.python, "-V"],
            capture_output=True,
            text=True,
            timeout=10,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        said = (done.stdout or done.stderr).strip()
    except (OSError, subprocess.TimeoutExpired):
        said = "a Python that does not run"
    return f"{said} ({found.python})"


def _missing_hooks(folder: Path) -> list[str]:
    try:
        source = (folder / PLUGINS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []  # laid out anew: nothing is known of it
    return [hook for hook in HOOKS if hook not in source]


def _numbers(version: str) -> tuple[int, ...] | None:
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(part) for part in found.groups() if part) if found else None


def project_env(env: Mapping[str, str]) -> Path | None:
    """Return the `.env` beside Hermes' own source, which 0.19 reads over a worker's variables; None = none."""
    folder = find_hermes(env).site_packages
    path = folder / ".env" if folder is not None else None
    return path if path is not None and path.is_file() and os.access(path, os.R_OK) else None
