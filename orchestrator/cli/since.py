"""`--since`: a moment, as people write it."""

from __future__ import annotations

import re
import time

from orchestrator.errors import UsageError

AHEAD = 60.0
"""Seconds that a moment may lie ahead: another machine's clock."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_since(text: str, *, now: float | None = None) -> float:
    """Return seconds since the epoch; "" is 0. Raises UsageError.

    Known: `90s`, `10m`, `8h`, `2d` ago; `14:30` or `14:30:05`, the last such time; `2026-01-31` and
    `2026-01-31T14:30`, local; a number of seconds since the epoch.
    """
    now = time.time() if now is None else now
    moment = _moment(text, now)
    if moment > now + AHEAD:
        raise UsageError(
            f"--since {text!r} is in the future", hint="for example: 10m, 8h, 14:30, 2026-01-31T14:30"
        )
    return moment


def _moment(text: str, now: float) -> float:
    if not text:
        return 0.0
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text):
        return now - float(found[1]) * _UNITS[found[2]]
    if re.fullmatch(r"\d{9,}(\.\d+)?", text):
        return float(text)
    return _clock(text, now)


def _clock(text: str, now: float) -> float:
    from datetime import datetime, timedelta

    today = datetime.fromtimestamp(now)
    try:
        if re.fullmatch(r"\d{1,2}:\d\d(:\d\d)?", text):
            moment = datetime.fromisoformat(
                f"{today:%Y-%m-%d}T{text.zfill(5) if text.count(':') == 1 else text.zfill(8)}"
            )
            return (moment if moment <= today else moment - timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {text!r} is no time", hint="for example: 10m, 8h, 14:30, 2026-01-31T14:30"
        ) from error
