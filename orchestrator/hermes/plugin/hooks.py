"""From a hook's keywords to the fields of an event line; pure, one small function a hook.

The names are those of Hermes 0.19.0; 0.22 adds keywords (`failed`, `turn_exit_reason`) and another
shape of clarify (`questions`). Strings are cut by the recorder, after it redacted them: a handler
returns them whole, wrapped in `Line` or `Block` with their limit.
"""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .text import outcome, plain, sha256, summarise


@dataclass(frozen=True, slots=True)
class Line:
    """A text that becomes one line of at most `limit` characters."""

    text: str
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Block:
    """A text of at most `limit` characters that keeps its lines."""

    text: str
    limit: int


Fields = dict[str, Any]
Handler = Callable[[Mapping[str, Any]], Fields]


def known_hooks() -> frozenset[str]:
    """Return the hook names that this Hermes has: registering others makes it warn in its log."""
    plugins = sys.modules.get("hermes_cli.plugins")
    return frozenset(getattr(plugins, "VALID_HOOKS", None) or HANDLERS)


def hermes_version() -> str:
    """Return Hermes' own version, or "" where it doesn't say."""
    return str(getattr(sys.modules.get("hermes_cli"), "__version__", ""))


def session_of(kwargs: Mapping[str, Any]) -> str:
    """Return the session that a hook speaks of; approvals and children name it differently."""
    for key in ("session_id", "session_key", "parent_session_id"):
        if kwargs.get(key):
            return str(kwargs[key])
    return ""


def turn_of(kwargs: Mapping[str, Any]) -> str:
    """Return the turn that a hook speaks of, "" between turns."""
    return str(kwargs.get("turn_id") or kwargs.get("parent_turn_id") or "")


def _digest(text: str) -> Fields:
    return {"sha256": sha256(text), "bytes": len(text.encode("utf-8", "replace"))}


def _session(kwargs: Mapping[str, Any]) -> Fields:
    return {"model": kwargs.get("model"), "reason": kwargs.get("reason")}


def _finalize(kwargs: Mapping[str, Any]) -> Fields:
    return {**_session(kwargs), "by": ended_by() if kwargs.get("reason") == "shutdown" else ""}


def ended_by(terminal: int = 0) -> str:
    """Return who ends this Hermes: "signal", "hangup" (its terminal has gone), "person", "" = it cannot be told.

    A person: /exit, Ctrl-C or Ctrl-D in the pane. Exit code, screen and events are the same for all; only the
    timer that Hermes 0.19 arms when a signal comes (`cli._signal_watchdog_armed`) tells them apart. A hangup
    may be read as the end of the input before its signal comes (tmux's server or the pane was killed).
    """
    armed = getattr(sys.modules.get("cli"), "_signal_watchdog_armed", None)
    try:
        termios.tcgetattr(terminal)
    except (termios.error, OSError):
        return "hangup"
    return "" if armed is None else "signal" if armed else "person"


def _turn_start(kwargs: Mapping[str, Any]) -> Fields:
    text = plain(kwargs.get("user_message"))
    return {**_digest(text), "preview": Line(text)}


def _answer(kwargs: Mapping[str, Any]) -> Fields:
    """The digest is the user message's, as a receipt; size and preview are the answer's."""
    answer = plain(kwargs.get("assistant_response"))
    return {
        "sha256": sha256(plain(kwargs.get("user_message"))),
        "bytes": len(answer.encode("utf-8", "replace")),
        "preview": Line(answer),
    }


def _request(kwargs: Mapping[str, Any]) -> Fields:
    text = plain(kwargs.get("user_message"))
    return {**_digest(text), "call": kwargs.get("api_call_count"), "model": kwargs.get("model")}


def _response(kwargs: Mapping[str, Any]) -> Fields:
    usage = kwargs.get("usage") or {}
    return {
        "call": kwargs.get("api_call_count"),
        "finish_reason": kwargs.get("finish_reason"),
        "seconds": round(float(kwargs.get("api_duration") or 0), 3),
        "usage": {
            "in": usage.get("input_tokens"),
            "out": usage.get("output_tokens"),
            "cache_read": usage.get("cache_read_tokens"),
            "cache_write": usage.get("cache_write_tokens"),
            "reasoning": usage.get("reasoning_tokens"),
        },
    }


def _request_error(kwargs: Mapping[str, Any]) -> Fields:
    error = kwargs.get("error") or {}
    message = error.get("message") if isinstance(error, Mapping) else error
    return {
        "call": kwargs.get("api_call_count"),
        "status": kwargs.get("status_code"),
        "reason": kwargs.get("reason"),
        "retryable": kwargs.get("retryable"),
        "retry": kwargs.get("retry_count"),
        "max_retries": kwargs.get("max_retries"),
        "error": Block(plain(message), 500),
    }


def _tool_start(kwargs: Mapping[str, Any]) -> Fields:
    arguments = kwargs.get("args")
    fields: Fields = {
        "tool": kwargs.get("tool_name"),
        "call_id": kwargs.get("tool_call_id"),
        "summary": Line(summarise(arguments)),
    }
    if kwargs.get("tool_name") == "clarify" and isinstance(arguments, Mapping):
        fields.update(_question(arguments))
    return fields


def _question(arguments: Mapping[str, Any]) -> Fields:
    questions = arguments.get("questions")
    listed = questions if isinstance(questions, list) else []
    first = listed[0] if listed and isinstance(listed[0], Mapping) else arguments
    choices = first.get("choices")
    text = plain(first.get("question"))
    return {
        "summary": Line(text),
        "question": Block(text, 2000),
        "choices": [Line(plain(choice)) for choice in choices[:20]] if isinstance(choices, list) else [],
        "questions": max(1, len(listed)),
    }


def _tool_end(kwargs: Mapping[str, Any]) -> Fields:
    return {
        "tool": kwargs.get("tool_name"),
        "call_id": kwargs.get("tool_call_id"),
        "status": kwargs.get("status"),
        "ms": kwargs.get("duration_ms"),
        "error": Line(plain(kwargs.get("error_message"))),
        "result": Line(outcome(kwargs.get("result"))),
    }


def _approval(kwargs: Mapping[str, Any]) -> Fields:
    return {
        "surface": kwargs.get("surface"),
        "command": Block(plain(kwargs.get("command")), 2000),
        "description": Line(plain(kwargs.get("description")), 500),
        "call_id": kwargs.get("tool_call_id"),
    }


def _approval_end(kwargs: Mapping[str, Any]) -> Fields:
    return {
        "surface": kwargs.get("surface"),
        "choice": kwargs.get("choice"),
        "call_id": kwargs.get("tool_call_id"),
    }


def _turn_end(kwargs: Mapping[str, Any]) -> Fields:
    return {
        "completed": kwargs.get("completed"),
        "interrupted": kwargs.get("interrupted"),
        "failed": kwargs.get("failed"),
        "reason": kwargs.get("turn_exit_reason") or kwargs.get("reason"),
    }


def _child(kwargs: Mapping[str, Any]) -> Fields:
    return {
        "child_session": kwargs.get("child_session_id"),
        "goal": Line(plain(kwargs.get("child_goal"))),
        "status": kwargs.get("child_status"),
        "summary": Block(plain(kwargs.get("child_summary")), 500),
    }


def _human_input(kwargs: Mapping[str, Any]) -> Fields:
    """0.22 only (sudo, clarify, approval); Hermes redacts `prompt` and never hands over what was typed."""
    return {
        "kind": kwargs.get("kind"),
        "request": kwargs.get("request_id"),
        "prompt": Line(plain(kwargs.get("prompt"))),
        "outcome": kwargs.get("outcome"),
    }


HANDLERS: dict[str, Handler] = {
    "on_session_start": _session,
    "on_session_reset": _session,
    "on_session_finalize": _finalize,
    "pre_llm_call": _turn_start,
    "pre_api_request": _request,
    "post_api_request": _response,
    "api_request_error": _request_error,
    "pre_tool_call": _tool_start,
    "post_tool_call": _tool_end,
    "pre_approval_request": _approval,
    "post_approval_response": _approval_end,
    "post_llm_call": _answer,
    "on_session_end": _turn_end,
    "subagent_start": _child,
    "subagent_stop": _child,
    "on_human_input_request": _human_input,
    "on_human_input_resolved": _human_input,
}
