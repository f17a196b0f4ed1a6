"""A stand-in for Hermes, for the rows that need more workers than a machine holds; nothing else runs it.

It paints Hermes' prompt line and reports what the plugin would, through the plugin's own writer where it is
busy. Its names say what it does: `idle-*` sits at the prompt and prints nothing, as an idle Hermes does;
`busy-*` is in a turn and paints and reports five times a second.
"""

from __future__ import annotations

import sys
from pathlib import Path

from home import Home

ROOT = Path(__file__).resolve().parents[2]
EVENTS_PER_SECOND = 5
SETTINGS = "memory: {headroom_mb: 64, worker_mb: 4}\n"
"""A stand-in has 2 MB, so the memory that a Hermes needs is no reason to keep one waiting."""
IDLE = r"""#!/bin/sh
[ "$1" != --version ] || { echo 'Hermes Agent v0.19.0'; exit; }
case $HERMUX_WORKER in busy-*) exec @PYTHON@ -P @BUSY@ ;; esac
rule=$(printf '%120s' '' | sed 's/ /─/g')
printf ' ⚕ stand-in │ 0 │ 0s\n%s\n%s ❯ \n%s\n\033[2A\033[%dC' "$rule" "$2" "$rule" $((${#2} + 3))
printf '{"v":1,"t":%s,"pid":%s,"attempt":%s,"event":"plugin_loaded","session":"","platform":"","turn":""}\n' \
    "$(date +%s.%N)" $$ "$HERMUX_ATTEMPT" >>"$HERMUX_DIR/events.jsonl"
printf e >"$HERMUX_WAKE"
exec sleep 100000
"""
BUSY = """\
import itertools, os, sys, time
sys.path.insert(0, @ROOT@)
from orchestrator.hermes.plugin.feed import FeedWriter
from orchestrator.hermes.plugin.owner import find_owner
from orchestrator.hermes.plugin.recorder import Recorder
owner = find_owner()
recorder, rule = Recorder(FeedWriter(owner), owner), "─" * 120
who = {"session_id": "s1", "turn_id": "t1", "platform": "cli"}
recorder.report("plugin_loaded", {}, {"version": "0", "hermes_version": "0.19.0", "python": "3"})
print(f"\\n ⚕ stand-in │ 0 │ 0s\\n{rule}\\n❯ \\n{rule}\\x1b[1A\\r\\x1b[2C", end="", flush=True)
time.sleep(2)
recorder.report("pre_llm_call", who, {"preview": "work"})
for number in itertools.count():
    print(f"\\x1b[H step {number}\\n ⚕ stand-in │ {number} │ 0s\\n{rule}\\n"
          f"⚕ ❯ msg=interrupt · /queue\\n{rule}\\x1b[1A\\r\\x1b[4C", end="", flush=True)
    name = ("pre_api_request", "post_api_request", "pre_tool_call", "post_tool_call")[number % 4]
    recorder.report(name, who, {"tool": "terminal", "summary": f"step {number}", "model": "stand-in"})
    time.sleep(1 / @RATE@)
"""


def install(home: Home) -> Home:
    """Return the home with a stand-in for Hermes and the two roles that it plays."""
    busy = home.path / "busy.py"
    values = {"ROOT": repr(str(ROOT)), "RATE": str(EVENTS_PER_SECOND)}
    busy.write_text(_filled(BUSY, values))
    program = home.path / "stand-in"
    program.write_text(_filled(IDLE, {"PYTHON": sys.executable, "BUSY": str(busy)}))
    program.chmod(0o755)
    roles = home.path / ".config" / "hermux" / "roles"
    for name in ("idle", "busy"):
        (roles / name).mkdir(parents=True)
        (roles / name / "role.yaml").write_text(f"description: A stand-in that is {name}\n")
        (roles / name / "SOUL.md").write_text("You are a stand-in.\n")
    (roles.parent / "config.yaml").write_text(SETTINGS)
    home.env["HERMUX_HERMES"] = str(program)
    return home


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
