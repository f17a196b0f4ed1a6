"""Turns hooks into event lines and answers into turn files; remembers only what a line lacks."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .feed import FeedWriter
from .hooks import HANDLERS, Block, Fields, Line, session_of, turn_of
from .owner import Owner
from .text import cut, file_safe, one_line, plain, redact
from .turns import save_turn

REMEMBERED = 64
"""Sessions and turns kept in memory, for the platform and the tools of a turn."""


class Recorder:
    """Writes one line a hook. Safe from several threads: children run in threads of their own."""

    def __init__(self, feed: FeedWriter, owner: Owner) -> None:
        self._feed = feed
        self._owner = owner
        self._platforms: OrderedDict[str, str] = OrderedDict()
        """By session."""
        self._sessions: OrderedDict[str, str] = OrderedDict()
        """By turn."""
        self._tools: OrderedDict[str, list[str]] = OrderedDict()
        self._began: OrderedDict[str, float] = OrderedDict()
        """By turn, seconds since the epoch."""
        self._lock = threading.Lock()

    def hook(self, name: str, kwargs: Mapping[str, Any]) -> None:
        """Record one call of the hook `name`."""
        fields = HANDLERS[name](kwargs)
        if name == "pre_tool_call":
            self._remember_tool(turn_of(kwargs), str(kwargs.get("tool_name")))
        with suppress(OSError):  # a full disk must not cost the event as well
            if name == "pre_llm_call":
                self._save(kwargs, answer=None)
            elif name == "post_llm_call":
                fields["answer"] = self._save(kwargs, answer=plain(kwargs.get("assistant_response")))
        self.report(name, kwargs, fields)

    def report(self, name: str, kwargs: Mapping[str, Any], fields: Fields) -> None:
        """Write the line of an event and wake the supervisor."""
        session, platform = self._whose(kwargs)
        line: Fields = {
            "v": 1,
            "t": time.time(),
            "pid": os.getpid(),
            "attempt": self._owner.attempt,
            "event": name,
            "session": session,
            "platform": platform,
            "turn": turn_of(kwargs),
        }
        cleaned = {key: self._clean(value) for key, value in fields.items()}
        line.update((key, value) for key, value in cleaned.items() if value is not None and value != "")
        self._feed.append(line)

    def _clean(self, value: Any) -> Any:
        """Return `value` redacted, then cut: a key that straddles the limit must not leave half of it."""
        if isinstance(value, Line):
            return one_line(redact(value.text, self._owner.secrets), value.limit)
        if isinstance(value, Block):
            return cut(redact(value.text, self._owner.secrets), value.limit)
        if isinstance(value, str):
            return cut(redact(value, self._owner.secrets), 500)
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        return value

    def _whose(self, kwargs: Mapping[str, Any]) -> tuple[str, str]:
        """Return session and platform of a hook, from what earlier hooks said where it lacks them.

        Tool hooks carry no platform. Approval hooks of children and of /background carry neither: their
        session key is "default", only the turn is right (0.19.0).
        """
        turn, session = turn_of(kwargs), str(kwargs.get("session_id") or "")
        platform = str(kwargs.get("platform") or "")
        with self._lock:
            session = session or self._sessions.get(turn, "") or session_of(kwargs)
            platform = platform or self._platforms.get(session, "")
            if platform and session:
                _keep(self._platforms, session, platform)
            if turn and session:
                _keep(self._sessions, turn, session)
        return session, platform

    def _remember_tool(self, turn: str, tool: str) -> None:
        with self._lock:
            names = self._tools.get(turn, [])
            if tool not in names and len(names) < REMEMBERED:
                _keep(self._tools, turn, [*names, tool])

    def _save(self, kwargs: Mapping[str, Any], *, answer: str | None) -> str:
        """Save what is known of the turn and return the file's path below the worker's folder."""
        turn, now = turn_of(kwargs), time.time()
        session, platform = self._whose(kwargs)
        with self._lock:
            tools = self._tools.pop(turn, []) if answer is not None else []
            began = self._began.setdefault(turn, now)
            _keep(self._began, turn, began)
        save_turn(
            self._owner.directory / "turns" / file_safe(turn),
            {
                "turn": turn,
                "session": session,
                "platform": platform,
                "attempt": self._owner.attempt,
                "began": began,
                "time": now,
                "tools": tools,
            },
            user=redact(plain(kwargs.get("user_message")), self._owner.secrets),
            answer=None if answer is None else redact(answer, self._owner.secrets),
        )
        return f"turns/{file_safe(turn)}"


def _keep(store: OrderedDict[str, Any], key: str, value: Any) -> None:
    store[key] = value
    store.move_to_end(key)
    while len(store) > REMEMBERED:
        store.popitem(last=False)
