"""What the plugin inside Hermes reports: one JSON object a line, parsed into `Event`.

The names are Hermes' own hook names (0.19.0, hermes-facts §11), plus `plugin_loaded`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class EventName(StrEnum):
    """The events that hermux reads; a line with any other name is kept in the file and ignored."""

    PLUGIN_LOADED = "plugin_loaded"
    SESSION_START = "on_session_start"
    SESSION_RESET = "on_session_reset"
    SESSION_FINALIZE = "on_session_finalize"
    TURN_START = "pre_llm_call"
    REQUEST = "pre_api_request"
    RESPONSE = "post_api_request"
    REQUEST_ERROR = "api_request_error"
    TOOL_START = "pre_tool_call"
    TOOL_END = "post_tool_call"
    APPROVAL = "pre_approval_request"
    APPROVAL_END = "post_approval_response"
    TURN_ANSWER = "post_llm_call"
    TURN_END = "on_session_end"
    CHILD_START = "subagent_start"
    CHILD_END = "subagent_stop"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of `events.jsonl`.

    `offset` is the byte offset just after the line (of the whole feed, rotation included), so a
    reader can say "events after offset X"; `time` is seconds since the epoch, by Hermes' clock.
    """

    name: EventName
    time: float
    pid: int
    attempt: int
    session: str = ""
    platform: str = ""
    """"cli" = the main agent (a /background one has a session id `bg_…`), "subagent" = a child."""
    turn: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    """The other fields of the line, bounded by the plugin."""
    offset: int = 0

    @property
    def main(self) -> bool:
        """Whether it belongs to the conversation that a person sees in the pane."""
        return self.platform == "cli" and not self.session.startswith("bg_")
