"""The configuration of a wall's own throw-away tmux server: keys, titles, and that it ends with its client.

Two modes, by tmux' key table. In `wall` every pane's input is off and keys select, turn pages and leave.
In `open` one tile has the whole window and the keys, but for the one that goes back. tmux takes the first
character of a paste for a key: opening and leaving happen a moment later, and keys until then do nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.terminal.command import quote
from orchestrator.terminal.config import PREFIX
from orchestrator.terminal.terminfo import first_known

SESSION = "wall"
WORKER, WORD, TEXT, COLOUR = "@worker", "@word", "@text", "@colour"
"""What a tile's title is made of, options of its pane."""
SUMMARY = "@summary"
"""Pages and who waits, for the status line."""
NEXT, PREVIOUS, WAITING = "next", "previous", "waiting"
"""What keys ask of the wall: the window is renamed so, of which tmux tells a control client at once."""
PAUSE = "0.15"
"""Seconds between Enter and the first key for the worker; a paste comes within milliseconds."""
HELP = "arrows or 1-9 select | Enter opens | n p next, previous page | w next that waits | q leaves"


def write_wall_config(path: Path, *, fleet: str, read_only: bool, env: Mapping[str, str]) -> None:
    """Write the configuration to `path` (0600, atomically); `env` tells which terminal descriptions exist."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(0o600)
    fresh.write_text(render_wall_config(fleet=fleet, read_only=read_only, env=env))
    fresh.replace(path)


def render_wall_config(*, fleet: str, read_only: bool, env: Mapping[str, str]) -> str:
    """Return the configuration as text."""
    term = first_known(("tmux-256color", "screen-256color", "screen"), env)
    lines = [*_server(term), *_keys(read_only), *_titles(), *_status(fleet, read_only)]
    return "# Written by hermux for a wall; changes are lost.\n" + "\n".join(lines) + "\n"


def _server(term: str) -> list[str]:
    return [
        "set -s exit-empty on",
        "set -s message-limit 0",
        "set -s escape-time 10",
        "set -s set-clipboard off",
        f"set -s default-terminal {quote(term)}",
        'set -g update-environment ""',
        "set -g default-shell /bin/sh",
        "set -g destroy-unattached on",
        "set -g remain-on-exit on",  # a tile whose client ended is started anew, in its place
        "set -gq remain-on-exit-format ''",
        "set -g history-limit 0",
        "set -g window-size latest",
        "set -g automatic-rename off",
        "set -g allow-rename off",
        "set -g set-titles off",
        "set -g monitor-bell off",
        "set -g mouse off",
    ]


def _keys(read_only: bool) -> list[str]:
    typing = "" if read_only else "select-pane -e ; "
    opened = f"if -F '#{{==:#{{key-table}},still}}' {{ {typing}set -g key-table open }}"
    moves = {
        "Left": "-L",
        "h": "-L",
        "Right": "-R",
        "l": "-R",
        "Up": "-U",
        "k": "-U",
        "Down": "-D",
        "j": "-D",
    }
    asked = {
        NEXT: ("n", "NPage", "Space"),
        PREVIOUS: ("p", "PPage"),
        WAITING: ("w",),
    }
    return [
        "unbind -aT root",
        "unbind -aT prefix",
        "set -g prefix None",
        "set -g prefix2 None",
        "set -g pane-base-index 1",
        "set -g key-table wall",
        *(f"bind -T wall {key} select-pane {way}" for key, way in moves.items()),
        *(f"bind -T wall {key} select-pane -t :.{key}" for key in range(1, 10)),
        "bind -T wall Tab select-pane -t :.+",
        "bind -T wall BTab select-pane -t :.-",
        *(f"bind -T wall {key} rename-window {word}" for word, keys in asked.items() for key in keys),
        *(f"bind -T wall {key} {_later('resize-pane -Z ; ', opened)}" for key in ("Enter", "z")),
        *(f"bind -T wall {key} {_later('', 'detach-client -s ' + SESSION)}" for key in ("q", "d", "C-c")),
        f"bind -T wall {quote(PREFIX)} set -g @none 0",
        f"bind -T wall Any display-message {quote(HELP)}",
        "bind -T still Any set -g @none 0",
        f"bind -T open {quote(PREFIX)} {{ {CLOSE} }}",
    ]


CLOSE = (
    "set -g key-table wall ; select-pane -d ; if -F '#{window_zoomed_flag}' { resize-pane -Z } ; "
    "rename-window closed"
)
"""Back from an open tile to all."""


def _later(now: str, then: str) -> str:
    return f"{{ set -g key-table still ; {now}run-shell -b -d {PAUSE} -C {quote(then)} }}"


def _titles() -> list[str]:
    open_ = "#{==:#{key-table},open}"
    mark = f"#{{?pane_active,#{{?{open_},#[bg=colour28]#[fg=colour231] ✎,#[reverse] ▶}},}}"
    state = f"#[fg=#{{{COLOUR}}}]#{{{WORD}}}#[default]"
    return [
        "set -g pane-border-status top",
        f"set -g pane-border-format {quote(f'{mark} #{{{WORKER}}} #[default] {state} #{{{TEXT}}} ')}",
        "set -g pane-border-style fg=colour240",
        f"set -g pane-active-border-style {quote(f'#{{?{open_},fg=colour34,fg=colour220}}')}",
    ]


def _status(fleet: str, read_only: bool) -> list[str]:
    back = PREFIX.replace("C-", "Ctrl-")
    typing = "read-only" if read_only else "what you type goes to #{@worker}"
    opened = f"#[bold]{typing}#[nobold] | {back} goes back "
    usual = "Enter opens | n p page | w waits | q leaves "
    return [
        "set -g status on",
        "set -g status-interval 0",
        "set -g display-time 3000",
        f"set -g status-style {quote('#{?#{==:#{key-table},open},bg=colour22,bg=colour236},fg=colour252')}",
        f"set -g status-left {quote(f'[wall {fleet}] #{{{SUMMARY}}} ')}",
        "set -g status-left-length 100",
        f"set -g status-right {quote(f'#{{?#{{==:#{{key-table}},open}},{opened},{usual}}}')}",
        "set -g status-right-length 100",
        "set -g window-status-format ''",
        "set -g window-status-current-format ''",
    ]
