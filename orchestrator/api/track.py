"""Following one message through the events: which turns belong to it, and when its answer is there.

A turn that delegated is over when its children's answer came: Hermes then starts a turn by itself, with
"[ASYNC DELEGATION … COMPLETE" as its message (0.19.0, one a `delegate_task` call). A turn that a crash cut
short goes on in the first turn of a later attempt. Nothing is read or waited for here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.fleet.events import Event, EventName

DELEGATION = "ASYNC DELEGATION"
WRITERS = frozenset(
    {"write_file", "patch", "terminal", "execute_code", "process", "delegate_task", "image_generate"}
)
"""Tools of Hermes that can write a file (0.19.0)."""


@dataclass(slots=True)
class Track:
    """What has become of a message whose turn is `turn`."""

    turn: str
    attempt: int = 0
    ended: bool = False
    interrupted: bool = False
    failed: bool = False
    error: str = ""
    """What the API said last, while nothing better came after it."""
    turns: list[str] = field(default_factory=list)
    children: set[str] = field(default_factory=set)
    expected: int = 0
    """Delegations whose results Hermes has not handed to the worker yet."""
    delegated: int = 0
    tools: list[str] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0

    def __post_init__(self) -> None:
        self.turns.append(self.turn)

    @property
    def done(self) -> bool:
        """Whether the answer is final."""
        return self.ended and not self.children and not self.expected

    @property
    def settling(self) -> bool:
        """Whether only a turn of Hermes' own is awaited, which an idle worker would have started."""
        return self.ended and not self.children

    @property
    def wrote(self) -> bool:
        """Whether a tool that can write was called."""
        return any(tool in WRITERS for tool in self.tools)

    def add(self, event: Event) -> None:
        """Take one more event, in the order of the feed."""
        if event.attempt > self.attempt and self.attempt:
            self.children.clear()  # they died with their attempt
        if event.name is EventName.TURN_START and event.main:
            self._turn_start(event)
        if event.turn not in self.turns:
            return
        match event.name:
            case EventName.TURN_END if event.turn == self.turn:
                self.ended = True
                self.interrupted = bool(event.data.get("interrupted"))
                self.failed = bool(event.data.get("failed"))
            case EventName.REQUEST_ERROR:
                self.error = _said(event)
            case EventName.RESPONSE:
                self._usage(event)
            case EventName.TOOL_START:
                self.tools.append(str(event.data.get("tool", "")))
            case EventName.TOOL_END if event.data.get("tool") == "delegate_task":
                self._delegation(event)
            case EventName.CHILD_START:
                self.children.add(str(event.data.get("child_session", "")))
            case EventName.CHILD_END:
                self.children.discard(str(event.data.get("child_session", "")))
            case _:
                pass

    def _turn_start(self, event: Event) -> None:
        if event.turn == self.turn:
            self.attempt = event.attempt
        elif self.attempt and not self.ended and event.attempt > self.attempt:
            self.expected = 0
            self._go_on(event)
        elif self.ended and self.expected and DELEGATION in str(event.data.get("preview", "")):
            self.expected -= 1
            self._go_on(event)

    def _go_on(self, event: Event) -> None:
        self.turn, self.attempt, self.ended, self.error = event.turn, event.attempt, False, ""
        self.turns.append(event.turn)

    def _delegation(self, event: Event) -> None:
        if event.data.get("status") not in ("error", "failed", "blocked"):
            self.expected += 1
            self.delegated += 1

    def _usage(self, event: Event) -> None:
        self.error = ""
        usage = event.data.get("usage")
        if isinstance(usage, dict):
            self.tokens_in += int(usage.get("in") or 0)
            self.tokens_out += int(usage.get("out") or 0)


def _said(event: Event) -> str:
    status, text = event.data.get("status"), str(event.data.get("error") or event.data.get("reason") or "")
    return f"HTTP {status}: {text}" if status and f"HTTP {status}" not in text else text or "API error"
