"""For all rings: nothing of the person who runs the tests reaches them."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

PREFIXES = ("HERMUX_", "HERMES_", "OPENAI_", "HCA_", "XDG_", "CUSTOM_BASE_URL", "TMUX")
KEPT = {"HERMUX_HERMES"}
"""Which Hermes the end-to-end ring runs; `scripts/test` sets it."""

for name in [name for name in os.environ if name.startswith(PREFIXES) and name not in KEPT]:
    del os.environ[name]

# a shell's `&` starts its commands with SIGINT ignored, nohup with SIGHUP: whatever the tests start would inherit it
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# two cores shared by several pytest workers: a slow example is no bug, and every run tries others
settings.register_profile("hermux", deadline=None, database=None, print_blob=True)
settings.load_profile("hermux")
