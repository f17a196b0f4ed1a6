"""The report: a table for the terminal, docs/bench.md, and every value as JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from row import Row, number

from orchestrator.hermes.install import find_hermes
from orchestrator.terminal.binary import find_tmux
from orchestrator.version import __version__


def machine() -> dict[str, str]:
    """Return what the figures depend on; no name, path or user of this machine."""
    memory = psutil.virtual_memory().total / 2**30
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, {platform.system()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "hermux": __version__,
        "Hermes Agent": find_hermes(os.environ).version,
        "tmux": find_tmux(os.environ).version,
        "Python": platform.python_version(),
    }


def lines(row: Row) -> list[str]:
    """Return a row for the terminal."""
    shown = [
        f"{row.name}: {row.what}: promise {row.promise}: {row.verdict}",
        f"    {row.ours.name}: {row.ours}",
    ]
    for peer, ratio in zip(row.peers, row.ratios, strict=True):
        shown.append(f"    {peer.name}: {peer}; ratio {number(ratio)}")
    return [*shown, *(f"    {note}" for note in row.notes)]


def markdown(rows: Sequence[Row], about: dict[str, str]) -> str:
    """Return docs/bench.md."""
    table = [
        "| row | hermux | peer, in the same run | ratio | promise | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        for place, (peer, ratio) in enumerate(zip(row.peers, row.ratios, strict=True)):
            ours = f"{row.ours.name}: {row.ours}" if place == 0 else ""
            first = f"`{row.name}`" if place == 0 else ""
            tail = [row.promise, row.verdict] if place == 0 else ["", ""]
            cells = [first, ours, f"{peer.name}: {peer}", number(ratio), *tail]
            table.append(f"| {' | '.join(cells)} |")
    told = [f"- `{row.name}`: {row.what}." + "".join(f" {_sentence(n)}" for n in row.notes) for row in rows]
    return "\n".join(
        [
            "# Measured, beside peers in the same run",
            "",
            "Written by `scripts/bench`. Medians with the quartiles (of fewer than four values: least and greatest)",
            "in brackets. Times depend on the machine and on what else runs on it; the ratios are what to look at.",
            "",
            "; ".join(f"{name} {value}" for name, value in about.items()) + ".",
            "",
            *table,
            "",
            *told,
            "",
        ]
    )


def write_json(path: Path, rows: Sequence[Row], about: dict[str, str]) -> None:
    """Write every single value."""
    each: list[dict[str, Any]] = [
        {**asdict(row), "ratios": row.ratios, "median": row.ours.median, "verdict": row.verdict}
        for row in rows
    ]
    path.write_text(
        json.dumps({"schema": 1, "about": about, "rows": each}, ensure_ascii=False, indent=1) + "\n"
    )


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]
