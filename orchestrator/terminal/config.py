"""The configuration of the fleet's own tmux server; the user's tmux.conf is never read.

It must be in force before the first window exists: without `remain-on-exit` a command that fails at
once takes its window and its error text with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.terminal.command import quote
from orchestrator.terminal.terminfo import first_known

PREFIX = "C-]"
"""Not C-b: a fleet is often looked at from inside another tmux."""
COLUMNS, ROWS = 120, 40
HISTORY_LINES = 5000
"""A history of 50,000 lines costs up to 120 MB a pane and 29 ms a capture (tmux 3.3a)."""
FLEET_OPTION = "@hermux_fleet"
"""Marks the server as ours, with the fleet's name."""
ROOT_OPTION = "@hermux_root"
"""The folder of the fleet that the server belongs to: another home's fleet of the same name has another."""
STATUS_OPTION = "@hermux_status"
WAITING_OPTION = "@hermux_waiting"
"""Sessions that wait for a person, `|a|b|a|`: the first stands at the end again, so each has a next one."""
NEXT_KEY = "w"

COUNT_BELL = 'set-option -w -F @bells "#{e|+:#{?@bells,#{@bells},0},1}"'
"""`window_bell_flag` has no edge; this count has. tmux runs it once for each write that rings."""

TILE_FLAG = "active-pane"
"""The client flag by which a tile of a wall is known: nothing else of ours sets it. Its status line is empty."""
_IN_TILE = f"#{{m:*{TILE_FLAG}*,#{{client_flags}}}}"

_BACK = "resize-window -t #{window_id} #{@size} ; set-option -w -u -t #{window_id} window-size ; "
_KEPT = "resize-window -t #{window_id} #{@size} ; "
_WATCHED = f"#{{W:#{{?#{{&&:#{{@size}},#{{==:#{{window-size}},manual}}}},{_KEPT},}}}}"
BACK_TO_SIZE = f'run-shell -C "#{{S:#{{?session_attached,{_WATCHED},#{{W:#{{?@size,{_BACK},}}}}}}}}"'
"""Give every window that nobody looks at the size it was made with, and one that is only watched
(`Server.watch_argv`). Per window: a global `window-size manual` crashes tmux 3.3a at the next
`new-session`."""

_HERE = "[|]#{session_name}[|]([^|]+).*"
_AFTER = f"#{{s/^.*{_HERE}/\\\\1/:{WAITING_OPTION}}}"
_FIRST = f"#{{s/^[|]([^|]+).*/\\\\1/:{WAITING_OPTION}}}"
_NEXT = f"#{{?#{{m:*|#{{session_name}}|*,#{{{WAITING_OPTION}}}}},{_AFTER},{_FIRST}}}"
NEXT_WAITING = (
    f"if-shell -F '#{{{WAITING_OPTION}}}' {{ run-shell -C \"switch-client -t '={_NEXT}'\" }} "
    "{ display-message 'no worker waits for a person' }"
)
"""Go to the next worker that waits, in the ring of `WAITING_OPTION`; from elsewhere to its first."""

ENDED = "the process ended; `hermux why #{session_name}` says why"
"""Shown in the status line: a `remain-on-exit-format` would scroll the dead screen by a row."""


def write_config(
    path: Path, *, fleet: str, prefix: str = PREFIX, env: Mapping[str, str] | None = None
) -> bool:
    """Write the configuration to `path` (0600, atomically) and return whether that changed the file."""
    text = render_config(
        fleet=fleet, prefix=prefix, root=path.absolute().parent, env=os.environ if env is None else env
    )
    if path.is_file() and path.read_text() == text:
        return False
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(0o600)
    fresh.replace(path)
    return True


def render_config(*, fleet: str, root: Path, prefix: str = PREFIX, env: Mapping[str, str]) -> str:
    """Return the configuration as text; `env` tells which terminal descriptions exist."""
    term = first_known(("tmux-256color", "screen-256color", "screen"), env)
    lines = [*_server(term), *_keys(prefix), *_windows(), *_status(fleet, root, prefix), *_hooks()]
    return "# Written by hermux at every start; changes are lost.\n" + "\n".join(lines) + "\n"


def _server(term: str) -> list[str]:
    return [
        "set -s exit-empty off",
        "set -s message-limit 0",  # show-messages would keep what was typed, values included
        "set -s escape-time 10",
        "set -s focus-events off",
        "set -s set-clipboard off",
        f"set -s default-terminal {quote(term)}",
        'set -g update-environment ""',
        "set -g default-shell /bin/sh",
        'set -g default-command ""',
    ]


def _keys(prefix: str) -> list[str]:
    return [
        f"set -g prefix {quote(prefix)}",
        "unbind C-b",
        f"bind {quote(prefix)} send-prefix",
        f"bind {NEXT_KEY} {NEXT_WAITING}",
        "set -g mouse off",
    ]


def _windows() -> list[str]:
    return [
        "set -g remain-on-exit on",
        "set -gq remain-on-exit-format ''",  # since tmux 3.3
        f"set -g history-limit {HISTORY_LINES}",
        f"set -g default-size {COLUMNS}x{ROWS}",
        "set -g window-size latest",
        "set -g aggressive-resize off",
        "set -g allow-rename off",
        "set -g automatic-rename off",
        "set -gq allow-passthrough off",
        "set -g set-titles off",
        "set -g monitor-bell on",
        "set -g bell-action any",  # the alert-bell hook runs only then
        "set -g visual-bell off",
        "set -g monitor-activity off",
    ]


def _status(fleet: str, root: Path, prefix: str) -> list[str]:
    key = prefix.replace("C-", "Ctrl-")
    jump = f"#{{?{WAITING_OPTION}, | next who waits: {key} then {NEXT_KEY},}}"
    right = f"#{{?pane_dead,{ENDED},#{{{STATUS_OPTION}}}}}{jump} | detach: {key} then d "
    return [
        f"set -g {FLEET_OPTION} {quote(fleet)}",
        f"set -g {ROOT_OPTION} {quote(str(root))}",
        f'set -goq {WAITING_OPTION} ""',
        f'set -goq {STATUS_OPTION} ""',  # -o: a text that is shown stays over a reload
        "set -g status on",
        "set -g status-interval 2",  # seconds; a new text redraws it at once, a death does not
        f"set -g status-style {quote(f'#{{?{_IN_TILE},default,bg=colour236#,fg=colour252}}')}",
        f"set -g status-left {quote(f'#{{?{_IN_TILE},,[hermux {fleet}] #{{session_name}} }}')}",
        "set -g status-left-length 70",
        f"set -g status-right {quote(f'#{{?{_IN_TILE},,{right}}}')}",
        "set -g status-right-length 160",
        "set -g window-status-format ''",
        "set -g window-status-current-format ''",
    ]


def _hooks() -> list[str]:
    return [
        f"set-hook -g alert-bell {{ {COUNT_BELL} }}",
        f"set-hook -g client-detached {{ {BACK_TO_SIZE} }}",
        f"set-hook -g client-session-changed {{ {BACK_TO_SIZE} }}",
    ]
